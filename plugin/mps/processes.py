"""
The processes of MPS daemons, as /proc shows them.

The pid file that a daemon writes is where tenants may write, so it proves nothing. What a process is called and the
pipe directory in the environment that it was started with do, for a process of our own PID namespace: tenants'
processes have the same variable and can take the name, but they are in the namespaces of their containers. A program
that is run by an interpreter goes by another name; it writes to a log directory that nobody else is told of.
"""

import os
import select
import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from policies.contract import CUDA_VISIBLE_DEVICES, MPS_PIPE_DIRECTORY

_PROC = Path("/proc")
_NAME = b"nvidia-cuda-mps"  # of control and server: the kernel keeps 15 characters
_CONTROL = b"nvidia-cuda-mps-control"
_SERVER = b"nvidia-cuda-mps-server"
_DAEMON_FLAGS = (b"-d", b"-f")
_LOG_DIRECTORY = b"CUDA_MPS_LOG_DIRECTORY"
_LARGEST_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Holder:
    """A process that holds a pipe directory."""

    pid: int
    role: Literal["daemon", "server"]
    directory: str
    gpus: str  # that it sees, as CUDA_VISIBLE_DEVICES says it


def holders(proc: Path = _PROC, *, logs: str = "") -> Iterator[Holder]:
    """Yield the daemons and servers of all pipe directories, in no order; what is dead is none, reaped or not."""
    with os.scandir(proc) as entries:
        pids = [int(entry.name) for entry in entries if entry.name.isdecimal()]
    for pid in pids:
        if found := holder(pid, proc, logs=logs):
            yield found


def holder(pid: int, proc: Path = _PROC, *, logs: str = "") -> Holder | None:
    """
    Look at one process; None if it is gone, dead, or something else.

    One that has the log directory *logs* need not have the name.
    """
    try:
        named = _read(proc / f"{pid}/comm").rstrip(b"\n") == _NAME
        if not (named or logs) or _is_in_a_container(proc / f"{pid}/status"):
            return None
        arguments = _read(proc / f"{pid}/cmdline").split(b"\0")
        variables = dict(text.partition(b"=")[::2] for text in _read(proc / f"{pid}/environ").split(b"\0"))
    except OSError:
        return None
    directory = variables.get(MPS_PIPE_DIRECTORY.encode())  # none when dead
    if directory is None or not (named or variables.get(_LOG_DIRECTORY) == os.fsencode(logs)):
        return None
    role = _role(arguments)
    gpus = variables.get(CUDA_VISIBLE_DEVICES.encode(), b"")
    return Holder(pid, role, os.fsdecode(directory), os.fsdecode(gpus)) if role else None


def program_of_mps(pid: int, proc: Path = _PROC) -> Literal["server", "control"] | None:
    """Say which program of MPS a process is, in no container but our own: a server, or a daemon or a command."""
    try:
        if _read(proc / f"{pid}/comm").rstrip(b"\n") != _NAME or _is_in_a_container(proc / f"{pid}/status"):
            return None
        arguments = _read(proc / f"{pid}/cmdline").split(b"\0")
    except OSError:
        return None
    return "server" if _role(arguments) == "server" else "control"


def _role(arguments: list[bytes]) -> Literal["daemon", "server"] | None:
    programs = [os.path.basename(argument) for argument in arguments[:3]]  # noqa: PTH119 - bytes; an interpreter first
    if _SERVER in programs:
        return "server"
    if any(flag in arguments for flag in _DAEMON_FLAGS) or _CONTROL not in programs:
        return "daemon"
    return None  # a command that somebody sends


def send(to: Holder, number: signal.Signals, *, logs: str = "") -> None:
    """Send a signal, and to nobody who took the PID over meanwhile."""
    with suppress(ProcessLookupError):
        process = os.pidfd_open(to.pid)
        try:
            if holder(to.pid, logs=logs) == to:  # looked at again while the PID is held
                signal.pidfd_send_signal(process, number)
        finally:
            os.close(process)


@contextmanager
def watched(pids: Iterable[int]) -> Iterator[Callable[[], bool]]:
    """
    Give the question whether one of these has ended since; what is no process, or has ended already, is not watched.

    A zombie's PID, which a tenant can have its daemon name at every look, would have it look again at once.
    """
    waiting = select.poll()  # unlike select, for descriptors of any number
    with ExitStack() as opened:
        for pid in pids:
            with suppress(OSError, OverflowError):  # the numbers may be a tenant's
                process = os.pidfd_open(pid)
                opened.callback(os.close, process)
                waiting.register(process, select.POLLIN)
        for process, _ in waiting.poll(0):
            waiting.unregister(process)
        yield lambda: bool(waiting.poll(0))


def runs(pid: int) -> bool:
    """Whether there is such a process that has not ended."""
    try:
        process = os.pidfd_open(pid)
    except (OSError, OverflowError):  # the number may be a tenant's
        return False
    try:
        waiting = select.poll()
        waiting.register(process, select.POLLIN)
        return not waiting.poll(0)
    finally:
        os.close(process)


def reap(pid: int) -> None:
    """Take note of a child's end; nothing happens if it is not ours, or lives."""
    with suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)


def _is_in_a_container(status: Path) -> bool:
    """Whether a process has a PID of its own in a namespace below ours."""
    return any(line.startswith(b"NSpid:") and len(line.split()) > 2 for line in _read(status).split(b"\n"))  # noqa: PLR2004


def _read(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(_LARGEST_BYTES)
