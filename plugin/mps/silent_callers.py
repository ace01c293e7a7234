"""
Hangs up on clients that keep an MPS control daemon waiting.

A daemon reads what a client that connects says first, without a time limit, and serves nobody else meanwhile. Any user
may connect, so one program that says nothing would keep all others from the GPU, and in the end have the daemon killed,
with its neighbours' work. The kernel says on which descriptor the daemon waits. Shut down, that reads as a client that
has gone, and the daemon goes on; docs/decisions/0032-what-a-real-gpu-did.md has how that was seen.

A client may be slow: the processor may be taken from it in between. So what counts is for how long a container has kept
the daemon waiting of late, by however many connections. Above that none of its connections is waited for any more, for
a minute. Whoever waits in the queue meanwhile has said its part when its turn comes.
"""

import logging
import os
import platform
import socket
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from plugin.mps.callers import GONE, caller, credentials, has_ended, is_clients, is_ours, name_of
from plugin.mps.patience import Patience
from plugin.mps.process_sockets import shared
from plugin.mps.processes import program_of_mps
from program.log import WarnOnce

_log = logging.getLogger(__name__)

# read, write, sendto, recvfrom, sendmsg, recvmsg: each has the descriptor first. As the kernel numbers them (unistd.h).
_WAITS = {"x86_64": frozenset({0, 1, 44, 45, 46, 47}), "aarch64": frozenset({63, 64, 206, 207, 211, 212})}
_PACE_SECONDS = 0.001  # between two looks while a daemon waits, at first; it costs a processor more the longer it lasts
_SLOWER = 0.01  # of the time that it has lasted
_NOTICED_SECONDS = 1.0  # after which a daemon that waits on a connection that was ended does not wait, but hangs
_MOST_AT_ONCE_SECONDS = 0.05  # counted between two looks: what was before, if we were held up ourselves, is not known
_QUIET_SECONDS = 0.02  # without a wait, after which nobody keeps it
_WATCH_SECONDS = 1.0  # at most, at one look
_UNSEEN = "a client that says nothing can keep an MPS daemon from all others"


@dataclass(frozen=True, slots=True)
class Call:
    """A connection that a daemon waits on."""

    daemon_pid: int
    descriptor: int  # of the daemon's
    socket: str  # as /proc names it, such as socket:[4711]


class SilentCallers:
    """Looks whom a daemon waits for. One thread does that, and any other may ask what it saw."""

    def __init__(self, container_logs: Path) -> None:
        """Name callers by *container_logs*, the directory of the links to the logs of all containers."""
        self._logs = container_logs
        self._patience = Patience()
        self._ended = ("", 0.0)  # the connection that was ended last, and when that began
        self._patience_with_commands = Patience()  # which are waited for all the same
        self.kept_seconds = 0.0  # for which a daemon has been seen to wait for clients, in all; for any thread
        self._warn = WarnOnce(_log)
        if platform.machine() not in _WAITS or not Path("/proc/self/syscall").exists():
            self._warn(_UNSEEN, "this kernel does not say what a process waits for")

    def hang_up(self, daemon_pids: Iterable[int]) -> None:
        """End the connections of all who keep the daemon, these processes, waiting for too long; for up to a second."""
        for pid in daemon_pids:
            try:
                self._watch(pid)
            except ProcessLookupError:  # the daemon has ended
                continue
            except OSError as error:
                self._warn(_UNSEEN, str(error))

    def _watch(self, pid: int) -> None:
        began = looked = waited = time.monotonic()
        while (now := time.monotonic()) - began < _WATCH_SECONDS:
            if (call := call_of(pid)) and self._judged(
                call, now_seconds=now, for_seconds=min(now - looked, _MOST_AT_ONCE_SECONDS)
            ):
                waited = now
                self.kept_seconds += now - looked
            elif waited == began or now - waited > _QUIET_SECONDS:
                return
            looked = now
            time.sleep(max(_PACE_SECONDS, (now - began) * _SLOWER))

    def _judged(self, call: Call, *, now_seconds: float, for_seconds: float) -> bool:
        """Whether it is a client that has kept the daemon waiting; the connection of one that did too long is ended."""
        with _taken(call) as connection:
            if connection is None:
                return False
            pid, user = credentials(connection)
            ended = has_ended(connection)
            if pid and not ended and (program := program_of_mps(pid)):
                if program != "control":  # for a server a daemon waits at its own risk
                    return False
                if is_ours(pid):  # see `free_of`
                    return True
                if self._patience_with_commands.spend(str(pid), for_seconds, now_seconds=now_seconds):
                    said = "a command of MPS that somebody has open keeps its daemon from all others"
                    _log.warning(said, extra={"pid": pid, "user": user})
                return True
            one = GONE if ended else caller(pid)
            if self._patience.spend(one, for_seconds, now_seconds=now_seconds):
                said = "a client that said nothing kept an MPS daemon from all others: its connections are ended"
                _log.warning(said, extra={"caller": name_of(one, self._logs), "user": user})
            if self._patience.is_lost(one, now_seconds=now_seconds):
                with suppress(OSError):  # it has hung up itself
                    connection.shutdown(socket.SHUT_RDWR)
                last, since_seconds = self._ended
                if last == call.socket:
                    return now_seconds - since_seconds < _NOTICED_SECONDS
                self._ended = (call.socket, now_seconds)
        return True


def free_of(daemon_pids: Iterable[int], group: int) -> bool:
    """End the connection of one of a *group* of processes that the daemon, these, waits for; whether there is one."""
    with suppress(OSError):
        for call in filter(None, map(call_of, daemon_pids)):
            with _taken(call) as connection:
                if connection and os.getpgid(credentials(connection)[0]) == group and _has_said_nothing(connection):
                    connection.shutdown(socket.SHUT_RDWR)
                    return True
    return False


def _has_said_nothing(connection: socket.socket) -> bool:
    """Whether nothing is left to read: a daemon that is stopped stands where it waited, whatever was said since."""
    try:
        connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except BlockingIOError:
        return True
    return False


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
        connection = shared(process, call.descriptor)
    finally:
        os.close(process)
    if connection is None:
        yield None
        return
    with connection:
        is_it = str(Path(f"/proc/self/fd/{connection.fileno()}").readlink()) == call.socket
        yield connection if is_it and is_clients(connection) else None
