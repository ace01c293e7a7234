"""
The processes of MPS daemons, as /proc shows them.

The pid file that a daemon writes is in a folder where tenants may write, so it proves nothing. What a process is called
and the pipe folder in the environment that it was started with do, for a process of our own PID namespace: tenants'
processes have the same variable and can take the name, but they are in the namespaces of their containers.
"""

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from policies.contract import MPS_PIPE_DIRECTORY

_PROC = Path("/proc")
_NAME = b"nvidia-cuda-mps"  # of control and server: the kernel keeps 15 characters
_SERVER = b"nvidia-cuda-mps-server"
_DAEMON_FLAGS = (b"-d", b"-f")  # without one it is a command that somebody sends
_LARGEST_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Holder:
    """A process that holds a pipe folder."""

    pid: int
    role: Literal["daemon", "server"]
    folder: str


def holders(proc: Path = _PROC) -> Iterator[Holder]:
    """Yield the daemons and servers of all pipe folders, in no order; what is dead is none, reaped or not."""
    with os.scandir(proc) as entries:
        pids = [int(entry.name) for entry in entries if entry.name.isdecimal()]
    for pid in pids:
        if found := holder(pid, proc):
            yield found


def holder(pid: int, proc: Path = _PROC) -> Holder | None:
    """Look at one process; None if it is gone, dead, or something else."""
    try:
        if _read(proc / f"{pid}/comm").rstrip(b"\n") != _NAME or _is_in_a_container(proc / f"{pid}/status"):
            return None
        arguments = _read(proc / f"{pid}/cmdline").split(b"\0")
        variables = _read(proc / f"{pid}/environ").split(b"\0")  # empty when dead
    except OSError:
        return None
    start = f"{MPS_PIPE_DIRECTORY}=".encode()
    folder = next((text.removeprefix(start) for text in variables if text.startswith(start)), None)
    if folder is None:
        return None
    if _SERVER in (os.path.basename(argument) for argument in arguments[:2]):  # noqa: PTH119 - bytes
        return Holder(pid, "server", os.fsdecode(folder))
    if any(flag in arguments for flag in _DAEMON_FLAGS):
        return Holder(pid, "daemon", os.fsdecode(folder))
    return None


def send(to: Holder, number: signal.Signals) -> None:
    """Send a signal, and to nobody who took the PID over meanwhile."""
    with suppress(ProcessLookupError):
        process = os.pidfd_open(to.pid)
        try:
            if holder(to.pid) == to:  # looked at again while the PID is held
                signal.pidfd_send_signal(process, number)
        finally:
            os.close(process)


def reap(pid: int) -> None:
    """Take note of a child's end; nothing happens if it is not ours, or lives."""
    with suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)


def _is_in_a_container(status: Path) -> bool:
    """Whether a process has a PID of its own in a namespace below ours."""
    return any(line.startswith(b"NSpid:") and len(line.split()) > 2 for line in _read(status).splitlines())  # noqa: PLR2004


def _read(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(_LARGEST_BYTES)
