"""
Sockets of other processes, shared with them for a moment: the kernel tells only who has one what it is bound to.

It needs Linux 5.6 and the rights of a privileged container.
"""

import ctypes
import errno
import fcntl
import os
import socket
from collections.abc import Container
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


def bound_to(pid: int, names: Container[str]) -> dict[str, int]:
    """
    Open the files that a process has bound sockets to by one of *names*, each for the caller to close.

    Of several by one name it is the one that the process has had from its start on, rather than one that a client sent.
    What cannot be seen is left out.
    """
    found: dict[str, int] = {}
    with suppress(OSError):
        process = os.pidfd_open(pid)
        try:
            for descriptor in sorted(int(path.name) for path in Path(f"/proc/{pid}/fd").iterdir()):
                if _is_socket(pid, descriptor) and (one := shared(process, descriptor)):
                    with one:
                        if (name := _name(one)) in names and name not in found:
                            found[name] = fcntl.ioctl(one, _SIOCUNIXFILE)
        finally:
            os.close(process)
    return found


def _is_socket(pid: int, descriptor: int) -> bool:
    with suppress(OSError):  # closed by now
        return str(Path(f"/proc/{pid}/fd/{descriptor}").readlink()).startswith("socket:")
    return False


def _name(one: socket.socket) -> str:
    """Say by which name in its directory it was bound, or accepted; empty if it has none."""
    if one.family != socket.AF_UNIX:
        return ""
    bound = one.getsockname()
    return Path(bound).name if isinstance(bound, str) else ""
