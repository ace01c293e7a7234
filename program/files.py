"""Files that others put there: what is no file, or has no end, costs an error and never a wait."""

import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_PIECE_BYTES: Final = 16 * 1024
_KINDS: Final = {
    stat.S_IFDIR: "a directory",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def read_file(path: Path, *, most_bytes: int) -> bytes:
    """
    Read the regular file at *path*, following links, up to *most_bytes*.

    Raises:
        OSError: If it cannot be read, or is no regular file: opening a pipe would wait for a writer, and opening a
            device can do something.
    """
    _check_regular(path.stat())
    # Not to wait, should it have become a pipe by now.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        _check_regular(os.fstat(descriptor))
        return b"".join(_pieces(descriptor, most_bytes))
    finally:
        os.close(descriptor)


def _pieces(descriptor: int, left_bytes: int) -> Iterator[bytes]:
    """Read in pieces: room for the most that a file may have, made for each of thousands, would cost most of it."""
    while left_bytes and (piece := os.read(descriptor, min(left_bytes, _PIECE_BYTES))):
        left_bytes -= len(piece)
        yield piece


def _check_regular(status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        kind = _KINDS.get(stat.S_IFMT(status.st_mode), "something else")
        raise OSError(errno.EINVAL, f"expected a file, got {kind}")
