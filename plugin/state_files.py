"""
Files by which the parts on a node tell each other how they are.

A reader sees the old content or the new, never half of one. Whatever else may lie in a file's place does no harm.
"""

import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import msgspec

_READABLE = 0o644
_LARGEST_BYTES = 1 << 20
_T = TypeVar("_T")


def write_atomically(path: Path, content: bytes) -> None:
    """
    Replace the file at *path*; a reader that has it open keeps what it has.

    The content is not forced to the disk: what is written here is worth nothing after a crash of the machine.

    Raises:
        OSError: If the folder is not there or cannot be written to; the old file stays.
    """
    unseen = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        descriptor = os.open(unseen, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, _READABLE)
        with open(descriptor, "wb") as file:  # noqa: PTH123 - a descriptor, so that a link is not followed
            os.fchmod(descriptor, _READABLE)  # whatever the umask
            file.write(content)
        unseen.replace(path)
    except OSError:
        with suppress(OSError):
            unseen.unlink()
        raise


def read_json(path: Path, of: type[_T]) -> _T | None:
    """Read a file as *of*; None if it is not there, is no file, is too large, or says something else."""
    try:
        # Opening a pipe would wait for a writer.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:  # noqa: PTH123 - a descriptor, so that a link is not followed
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                return None
            content = file.read(_LARGEST_BYTES + 1)
        return msgspec.json.decode(content, type=of) if len(content) <= _LARGEST_BYTES else None
    except (OSError, ValueError, RecursionError):  # ValueError: no JSON, no UTF-8, or not of that type
        return None
