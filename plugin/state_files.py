"""
What the parts on a node publish for each other: small files, and the clock by which they tell how old they are.

A reader sees the old content or the new, never half of one. Whatever else may lie in a file's place does no harm.

The clock is that of the machine since its boot. Unlike the wall clock it is never set, and unlike Python's monotonic
clock it goes on while the machine sleeps: the age of what another process has written is the difference of two times.
"""

import os
import stat
import time
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import msgspec

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def boot_seconds() -> float:
    """Count the seconds since the machine started."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def boot_id() -> str:
    """
    Name this run of the machine: `boot_seconds` of another run must not be compared with this one's.

    Raises:
        OSError: If /proc is not there.
    """
    return _BOOT_ID.read_text(encoding="ascii").strip()


_READABLE = 0o644
# A link is not followed, and a pipe in the file's place waits for no reader.
_REPLACING = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_LARGEST_BYTES = 1 << 20
_T = TypeVar("_T")


def write_atomically(path: Path, content: bytes) -> None:
    """
    Replace the file at *path*; a reader that has it open keeps what it has.

    The content is not forced to the disk: what is written here is worth nothing after a crash of the machine.

    Raises:
        OSError: If the directory is not there or cannot be written to; the old file stays.
    """
    unseen = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        descriptor = os.open(unseen, _REPLACING, _READABLE)
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
