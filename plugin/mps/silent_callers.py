"""
Hangs up on clients that keep an MPS control daemon waiting.

A daemon reads what a client that connects says first, without a time limit, and serves nobody else meanwhile. Any user
may connect, so one program that says nothing would keep all others from the GPU, and in the end have the daemon killed,
with its neighbours' work. The kernel says on which descriptor the daemon waits. Shut down, that reads as a client that
has gone, and the daemon goes on; docs/decisions/0032-what-a-real-gpu-did.md has how that was seen.
"""

import ctypes
import errno
import logging
import os
import platform
import socket
import struct
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from plugin.mps.control import SOCKETS
from plugin.mps.processes import is_of_mps
from plugin.usage.cgroups import container_of
from plugin.usage.containers import containers
from program.log import WarnOnce

_log = logging.getLogger(__name__)

# read, write, sendto, recvfrom, sendmsg, recvmsg: each has the descriptor first. As the kernel numbers them (unistd.h).
_WAITS = {"x86_64": frozenset({0, 1, 44, 45, 46, 47}), "aarch64": frozenset({63, 64, 206, 207, 211, 212})}
_PIDFD_GETFD = 438  # on every machine; from Linux 5.6 on
_CREDENTIALS = struct.Struct("3i")  # PID, user and group
_PATIENCE_SECONDS = (
    0.005  # with those that queue behind one that was silent: what they say is there when their turn comes
)
_MOST_SECONDS = 1.0  # for all of them at one look

_UNSEEN = "a client that says nothing can keep an MPS daemon from all others"

_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True, slots=True)
class Call:
    """A connection that a daemon waits on."""

    daemon_pid: int
    descriptor: int  # of the daemon's
    socket: str  # as /proc names it, such as socket:[4711]


@dataclass(frozen=True, slots=True)
class Caller:
    """Who made it. The PID is 0 if it is not in our PID namespace."""

    pid: int
    user: int


class SilentCallers:
    """Looks whom daemons wait for; for one thread."""

    def __init__(self, container_logs: Path) -> None:
        """Name callers by *container_logs*, the directory of the links to the logs of all containers."""
        self._logs = container_logs
        self._waited: dict[int, Call] = {}  # by daemon, at the last look
        self._warn = WarnOnce(_log)
        if platform.machine() not in _WAITS or not Path("/proc/self/syscall").exists():
            self._warn(_UNSEEN, "this kernel does not say what a process waits for")

    def hang_up(self, daemon_pids: Iterable[int]) -> None:
        """End the connections on which these daemons have waited since the last look."""
        waiting = {}
        for pid in daemon_pids:
            try:
                call = call_of(pid)
                if call and self._waited.get(pid) == call:
                    call = self._cleared(call)
            except ProcessLookupError:  # the daemon has ended
                continue
            except OSError as error:
                self._warn(_UNSEEN, str(error))
                continue
            if call:
                waiting[pid] = call
        self._waited = waiting

    def _cleared(self, call: Call) -> Call | None:
        """Hang up, and on all who queue behind and are silent as well; the call that is left to wait for, if any."""
        silent: set[Caller] = set()
        is_confirmed = True
        deadline = time.monotonic() + _MOST_SECONDS
        now: Call | None = call
        while now and time.monotonic() < deadline:
            with _taken(now) as connection:
                if connection is None or (caller := _caller_of(connection)) is None:
                    break
                if is_confirmed or caller in silent:
                    with suppress(OSError):  # it has hung up itself
                        connection.shutdown(socket.SHUT_RDWR)
                    silent.add(caller)
                    self._tell(caller)
            time.sleep(_PATIENCE_SECONDS)
            before, now = now, call_of(call.daemon_pid)
            is_confirmed = now == before
        return now

    def _tell(self, caller: Caller) -> None:
        said = "a client that said nothing kept the MPS daemon from all others: its connection was ended"
        self._warn(said, f"{self._name_of(caller)}, user {caller.user}")

    def _name_of(self, caller: Caller) -> str:
        try:
            found = container_of(caller.pid)
            if found is None:
                return f"process {caller.pid} of the node"
            one = containers(self._logs).get(found)
        except OSError:
            one = None
        return f"container {one.namespace}/{one.pod}/{one.container}" if one else "a process of an unknown container"


def call_of(pid: int) -> Call | None:
    """
    Say on which socket a process waits in its main thread; None where it does something else, or is gone.

    Raises:
        OSError: If that may not be seen.
    """
    try:
        called = Path(f"/proc/{pid}/syscall").read_text().split()
        if len(called) < 2 or int(called[0]) not in _WAITS.get(platform.machine(), ()):  # noqa: PLR2004 - "running"
            return None
        descriptor = int(called[1], 16)
        found = str(Path(f"/proc/{pid}/fd/{descriptor}").readlink())
    except (FileNotFoundError, ProcessLookupError):
        return None
    return Call(pid, descriptor, found) if found.startswith("socket:") else None


@contextmanager
def _taken(call: Call) -> Iterator[socket.socket | None]:
    """Share the daemon's end of a connection with it; None if it is another one by now, or none that a client made."""
    process = os.pidfd_open(call.daemon_pid)
    try:
        connection = _shared(process, call.descriptor)
    finally:
        os.close(process)
    if connection is None:
        yield None
        return
    with connection:
        is_it = str(Path(f"/proc/self/fd/{connection.fileno()}").readlink()) == call.socket
        yield connection if is_it and _is_clients(connection) else None


def _shared(process: int, descriptor: int) -> socket.socket | None:
    taken = _libc.syscall(_PIDFD_GETFD, process, descriptor, 0)
    if taken < 0:
        if (number := ctypes.get_errno()) == errno.EBADF:  # closed by now
            return None
        raise OSError(number, f"pidfd_getfd: {os.strerror(number)}")
    try:
        return socket.socket(fileno=taken)
    except OSError:  # something else by now
        os.close(taken)
        return None


def _is_clients(connection: socket.socket) -> bool:
    name = connection.getsockname()  # of the socket that listened
    return connection.family == socket.AF_UNIX and isinstance(name, str) and Path(name).name in SOCKETS


def _caller_of(connection: socket.socket) -> Caller | None:
    """Say who is at the other end; None if that is a server or a command of MPS, which may take its time."""
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    pid, user, _ = _CREDENTIALS.unpack(credentials)
    return None if pid and is_of_mps(pid) else Caller(pid, user)
