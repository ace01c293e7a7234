"""Who keeps an MPS control daemon busy: it serves one client at a time, and who asks it much delays all others."""

import os
import socket
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from plugin.mps.callers import GONE, caller, credentials, has_ended, is_clients, is_ours, name_of
from plugin.mps.process_sockets import sockets_of
from plugin.usage.cgroups import ContainerId

_MOST_RATIO = 0.5  # of the moments that were looked at


class BusyCallers:
    """Looks whom a daemon serves, moment by moment; for one thread."""

    def __init__(self, container_logs: Path) -> None:
        """Name callers by *container_logs*, the directory of the links to the logs of all containers."""
        self._logs = container_logs
        self._served = Counter[ContainerId | str]()  # moments
        self._connections = defaultdict[ContainerId | str, set[int]](set)  # by inode
        self._moments = 0

    def look(self, daemon_pids: Iterable[int]) -> None:
        """Take note of whose connections the daemon, these processes, has now; what is not to be seen is nobody's."""
        self._moments += 1
        seen = set[ContainerId | str]()
        with suppress(OSError):
            for one, connection in (pair for pid in daemon_pids for pair in _served_by(pid)):
                seen.add(one)
                self._connections[one].add(connection)
        self._served.update(seen)

    def most(self) -> tuple[str, int]:
        """Name who was served most of the time, and by how many connections; an empty name if nobody was."""
        if self._served:
            one, moments = self._served.most_common(1)[0]
            if moments >= self._moments * _MOST_RATIO:
                return name_of(one, self._logs), len(self._connections[one])
        return "", 0


def _served_by(pid: int) -> Iterator[tuple[ContainerId | str, int]]:
    for connection in sockets_of(pid):
        if not is_clients(connection) or connection.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
            continue
        by = credentials(connection)[0]
        if not is_ours(by):
            yield GONE if has_ended(connection) else caller(by), os.fstat(connection.fileno()).st_ino
