"""
What the parts on a node publish for each other: small files, and the clock by which they tell how old they are.

A reader sees the old content or the new, never half of one. Whatever else may lie in a file's place does no harm.

The clock is that of the machine since its boot. Unlike the wall clock it is never set, and unlike Python's monotonic
clock it goes on while the machine sleeps: the age of what another process has written is the difference of two times.
"""

import ctypes
import errno
import os
import stat
import time
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from program.structs import decoder

STATE_DIR = Path("/run/gpu-share")  # unless --state-dir says otherwise
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
LARGEST_BYTES = 16 << 20  # that are read: 5,600 containers, each with a name of 381 bytes, take 4
_T = TypeVar("_T")


def write_atomically(path: Path, content: bytes, *, to_disk: bool = False) -> None:
    """
    Replace the file at *path*; a reader that has it open keeps what it has.

    The content is not forced to the disk unless *to_disk*: most of what is written here is worth nothing after a crash
    of the machine.

    Raises:
        OSError: If the directory is not there or cannot be written to; the old file stays.
    """
    unseen = path.parent / f".{path.name}.{os.getpid()}.new"
    try:
        descriptor = os.open(unseen, _REPLACING, _READABLE)
        try:
            os.fchmod(descriptor, _READABLE)  # whatever the umask
            _write_all(descriptor, content)
            if to_disk:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)
        unseen.replace(path)
        if to_disk:
            _force_entries(path.parent)
    except OSError:
        with suppress(OSError):
            unseen.unlink()
        raise


def _write_all(descriptor: int, content: bytes) -> None:
    while content:  # on a file system that is nearly full less is written than was asked for, and then nothing
        content = content[os.write(descriptor, content) :]


def _force_entries(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


_RESERVED_BYTES = 64 * 1024  # and multiples of it: a node of 64 GPUs with a fault each takes 32 KiB
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2


def write_reserved(path: Path, content: bytes) -> None:
    """
    Write JSON as `write_atomically` does, also into a directory on a file system that is full.

    Room for as much again is held beside the file, from the first write on. In a full directory the content is written
    there, and the two change places, by which nothing is given back that another could take. The JSON is filled up
    with line ends, so that both have the same size.

    Raises:
        OSError: If the directory is not there or cannot be written to, or is full and was so from the first write on.
    """
    padded = content + b"\n" * (-len(content) % _RESERVED_BYTES)
    reserve = path.with_name(f".{path.name}.reserve")
    try:
        write_atomically(path, padded)
    except OSError as error:
        if error.errno not in _FULL or not _wrote_over(reserve, padded):
            raise
        _exchange(reserve, path)
    else:
        with suppress(OSError):  # the next write tries again
            _reserve(reserve, len(padded))


def _reserve(path: Path, size_bytes: int) -> None:
    with suppress(FileNotFoundError):
        if path.lstat().st_size >= size_bytes:
            return
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, _READABLE)
    try:
        os.posix_fallocate(descriptor, 0, size_bytes)
    finally:
        os.close(descriptor)


def _wrote_over(reserve: Path, padded: bytes) -> bool:
    """Whether all of *reserve* is now *padded*; nothing is, if it is too small."""
    try:
        descriptor = os.open(reserve, os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        size_bytes = os.fstat(descriptor).st_size
        if size_bytes < len(padded):
            return False
        os.fchmod(descriptor, _READABLE)
        filled = padded + b"\n" * (size_bytes - len(padded))
        return os.pwrite(descriptor, filled, 0) == size_bytes
    except OSError:
        return False
    finally:
        os.close(descriptor)


def _exchange(one: Path, other: Path) -> None:
    """Let two files change places, in one step."""
    rename = ctypes.CDLL(None, use_errno=True).renameat2
    if rename(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(other))


def read_json(path: Path, of: type[_T]) -> _T | None:
    """Read a file as *of*; None if it is not there, is no file, is too large, or says something else."""
    try:
        content = read_small_file(path)
        return decoder(of).decode(content) if content is not None else None
    except (OSError, ValueError, RecursionError):  # ValueError: no JSON, no UTF-8, or not of that type
        return None


def read_small_file(path: Path) -> bytes | None:
    """
    Read a file as it was at one moment; None if it is none, or too large.

    Raises:
        OSError: If it is not there, or cannot be read.
    """
    while True:
        # Opening a pipe would wait for a writer.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:  # noqa: PTH123 - a descriptor, so that a link is not followed
            opened = os.fstat(descriptor)
            if not stat.S_ISREG(opened.st_mode):
                return None
            content = file.read(LARGEST_BYTES + 1)
            if len(content) > LARGEST_BYTES:
                return None
            if os.fstat(descriptor).st_mtime_ns == opened.st_mtime_ns:
                return content
        # It has become the reserve of `write_reserved`, and was written over meanwhile.
