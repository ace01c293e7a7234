"""Who keeps an MPS control daemon busy: it serves one client at a time, and who asks it much delays all others."""

import os
import socket
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from plugin.mps.callers import GONE, caller, credentials, has_ended, is_clients, name_of
from plugin.mps.process_sockets import sockets_of
from plugin.usage.cgroups import ContainerId

_MOST_RATIO = 0.5  # of the moments that were looked at


class BusyCallers:
    """Looks whom a daemon serves, moment by moment; for one thread."""

    def __init__(self, container_logs: Path) -> None:
        """Name callers by *container_logs*, the directory of the links to the logs of all containers."""
        self._logs = container_logs
        self._served = Counter[ContainerId | str]()
        self._moments = 0

    def look(self, daemon_pids: Iterable[int]) -> None:
        """Take note of whose connections the daemon, these processes, has now; what is not to be seen is nobody's."""
        self._moments += 1
        with suppress(OSError):
            self._served.update({one for pid in daemon_pids for one in _served_by(pid)})

    def most(self) -> str:
        """Name who was served most of the time; empty if nobody was."""
        if not self._served:
            return ""
        one, moments = self._served.most_common(1)[0]
        return name_of(one, self._logs) if moments >= self._moments * _MOST_RATIO else ""


def _served_by(pid: int) -> Iterator[ContainerId | str]:
    for connection in sockets_of(pid):
        if not is_clients(connection) or connection.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
            continue
        by = credentials(connection)[0]
        if not _is_ours(by):
            yield GONE if has_ended(connection) else caller(by)


def _is_ours(pid: int) -> bool:
    """Whether a process asks the daemon for this one."""
    with suppress(OSError):
        status = Path(f"/proc/{pid}/stat").read_bytes()
        return int(status.rpartition(b")")[2].split()[1]) == os.getpid()
    return False
