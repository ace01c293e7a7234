"""Who has connected to an MPS control daemon, as the kernel and the node say."""

import errno
import os
import select
import socket
import struct
from contextlib import suppress
from pathlib import Path

from plugin.mps.control import SOCKETS
from plugin.usage.cgroups import ContainerId, container_of
from plugin.usage.containers import containers

_SO_PEERPIDFD = 77
_NO_PROCESS = frozenset({errno.ESRCH, errno.EINVAL})
_CREDENTIALS = struct.Struct("iII")  # PID, user and group
GONE = "a process that has ended"  # and left its connection to another one
UNTOLD = "a process whose container is not known"


def credentials(connection: socket.socket) -> tuple[int, int]:
    """Give the PID and the user of who made a connection; 0 for a process that we cannot see."""
    pid, user, _ = _CREDENTIALS.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
    return pid, user


def is_clients(connection: socket.socket) -> bool:
    """Whether it is the daemon's end of a connection, or the socket that listens for them."""
    name = connection.getsockname()  # of the socket that listened
    return connection.family == socket.AF_UNIX and isinstance(name, str) and Path(name).name in SOCKETS


def has_ended(connection: socket.socket) -> bool:
    """Whether the process that made a connection has ended, so that its PID may be another one's by now."""
    try:
        process = connection.getsockopt(socket.SOL_SOCKET, _SO_PEERPIDFD)
    except OSError as error:
        return error.errno in _NO_PROCESS  # before Linux 6.5 it cannot be asked
    try:
        ended = select.poll()  # unlike select, for descriptors of any number
        ended.register(process, select.POLLIN)
        return bool(ended.poll(0))
    finally:
        os.close(process)


def is_ours(pid: int) -> bool:
    """Whether a process asks the daemon for this one."""
    with suppress(OSError):
        status = Path(f"/proc/{pid}/stat").read_bytes()
        return int(status.rpartition(b")")[2].split()[1]) == os.getpid()
    return False


def caller(pid: int, proc: Path = Path("/proc")) -> ContainerId | str:
    """
    Name who made a connection: its container, whichever process did it, or the process of the node itself.

    One name is for all whose container nobody tells: a container can have any number of processes.
    """
    try:
        found = container_of(pid, proc)
    except (FileNotFoundError, ProcessLookupError):
        return GONE
    except OSError:
        return UNTOLD
    if found is None:
        return f"process {pid}"
    if found.id:
        return found
    return f"a container of the pod {found.pod_uid}" if found.pod_uid else UNTOLD


def name_of(one: ContainerId | str, logs: Path) -> str:
    """Name a caller by *logs*, the directory of the links to the logs of all containers."""
    if isinstance(one, str):
        return one
    try:
        found = containers(logs).find(one)
    except OSError:
        found = None
    return f"{found.namespace}/{found.pod}/{found.container}" if found else one.id
