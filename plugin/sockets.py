"""Unix sockets as files: their names, which is which, and whether anybody answers."""

import re
import socket
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from urllib.parse import quote

from plugin.errors import SocketError

KUBELET_SOCKET = "kubelet.sock"
_LONGEST_NAME, _DIGEST_LENGTH = 64, 12
_LONGEST_PATH_BYTES = 107  # sun_path is 108 with its final zero
_PROBE_TIMEOUT_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class SocketIdentity:
    """
    What tells a socket file from one that took its place.

    File systems give an inode number again at once, so the time of creation counts too. It is the
    time of modification, which nothing changes later; the time of change moves when a label or a
    mode is set.
    """

    device: int
    inode: int
    created_ns: int


def identify(path: Path) -> SocketIdentity | None:
    """Say which socket is at *path* now; None if there is none."""
    try:
        status = path.lstat()
    except OSError:
        return None
    return SocketIdentity(status.st_dev, status.st_ino, status.st_mtime_ns)


def answers(path: Path) -> bool:
    """Whether somebody listens at *path*: a process that crashed leaves its socket file behind."""
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(_PROBE_TIMEOUT_SECONDS)
        try:
            probe.connect(str(path))
        except OSError:
            return False
    return True


def socket_path(directory: Path, resource_name: str) -> Path:
    """
    Name our socket for *resource_name*, one for each resource: a domain has no underscore.

    A long name ends with a digest of it, so that each that the policies know fits into the kubelet's own directory.

    Raises:
        SocketError: If the path is too long for a socket.
    """
    safe = re.sub(r"[^A-Za-z0-9._-]", "-", resource_name.replace("/", "_"))
    if len(safe) > _LONGEST_NAME:
        digest = sha256(resource_name.encode()).hexdigest()[:_DIGEST_LENGTH]
        safe = f"{safe[: _LONGEST_NAME - _DIGEST_LENGTH - 1]}-{digest}"
    path = directory / f"{safe}.sock"
    check_length(path, fix="choose a shorter --kubelet-dir or resource name")
    return path


def check_length(path: Path, *, fix: str = "choose a directory with a shorter path") -> None:
    """
    See that a socket can be at *path*.

    Raises:
        SocketError: If it is too long; *fix* is what the sentence says to do.
    """
    length_bytes = len(str(path).encode())
    if length_bytes > _LONGEST_PATH_BYTES:
        raise SocketError(
            f"{path}: a socket's path has at most {_LONGEST_PATH_BYTES} bytes, this has {length_bytes}: {fix}"
        )


def target(path: Path) -> str:
    """Write *path* as gRPC takes it."""
    return f"unix:{quote(str(path))}"
