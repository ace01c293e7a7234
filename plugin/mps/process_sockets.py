"""
Sockets of other processes, shared with them for a moment: the kernel tells only who has one what it is bound to.

It needs Linux 5.6 and the rights of a privileged container.
"""

import ctypes
import errno
import fcntl
import os
import socket
from collections.abc import Container, Iterator
from contextlib import suppress
from pathlib import Path

_PIDFD_GETFD = 438  # on every machine; from Linux 5.6 on
_SIOCUNIXFILE = 0x89E0  # opens, by O_PATH, the file that a socket is bound to, whatever became of its name

_libc = ctypes.CDLL(None, use_errno=True)


def shared(process: int, descriptor: int) -> socket.socket | None:
    """
    Share a socket with a process, given by its pidfd; None if it has none by that number.

    Raises:
        OSError: If that is not permitted, or the kernel is too old for it.
    """
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


def bound_to(pid: int, names: Container[str], directory: Path) -> dict[str, list[int]]:
    """
    Open the files that a process has bound sockets to by some of *names*, each for the caller to close.

    Of several by one name it is the likeliest, since a client may have sent the others: those that take connections,
    then those that were bound in *directory*, and first the one that the process has had for longest. What cannot be
    seen is left out.
    """
    found: dict[str, list[tuple[tuple[bool, bool], int]]] = {}
    with suppress(OSError):
        for one in sockets_of(pid):
            path = _path(one)
            if path.name in names:
                rank = (not _listens(one), path.parent != directory)
                found.setdefault(path.name, []).append((rank, fcntl.ioctl(one, _SIOCUNIXFILE)))
    return {name: _likeliest(files) for name, files in found.items()}


def _likeliest(files: list[tuple[tuple[bool, bool], int]]) -> list[int]:
    """Keep those of the lowest rank, and close the others."""
    best = min(rank for rank, _ in files)
    for rank, file in files:
        if rank != best:
            os.close(file)
    return [file for rank, file in files if rank == best]


def sockets_of(pid: int) -> Iterator[socket.socket]:
    """
    Share all sockets that a process has, one after the other, by descriptor; each is closed before the next.

    Raises:
        OSError: If that cannot be, since it has ended or it is not permitted.
    """
    process = os.pidfd_open(pid)
    try:
        for descriptor in sorted(int(path.name) for path in Path(f"/proc/{pid}/fd").iterdir()):
            if _is_socket(pid, descriptor) and (one := shared(process, descriptor)):
                with one:
                    yield one
    finally:
        os.close(process)


def _is_socket(pid: int, descriptor: int) -> bool:
    with suppress(OSError):  # closed by now
        return str(Path(f"/proc/{pid}/fd/{descriptor}").readlink()).startswith("socket:")
    return False


def _listens(one: socket.socket) -> bool:
    return one.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN) != 0


def _path(one: socket.socket) -> Path:
    """Say what it was bound to, or was accepted by; no name if there is none."""
    bound = one.getsockname() if one.family == socket.AF_UNIX else ""
    return Path(bound if isinstance(bound, str) else "")
