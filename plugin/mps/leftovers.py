"""What ended containers have left in a directory that all of them could write to, and who uses that directory still."""

import os
import re
from collections.abc import Container, Iterable
from contextlib import suppress
from pathlib import Path
from secrets import token_hex
from typing import Final, NamedTuple

_PROC = Path("/proc")
_OWN: Final = "self"
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_MOST_ROUNDS = 100_000  # of directories in each other, one a round
_MAPPED = re.compile(r"\S+ \S+ \S+ ([0-9a-f]+):([0-9a-f]+) ([1-9][0-9]*)(?: |$)")


class FileId(NamedTuple):
    """A file, whatever it is called."""

    device: int
    inode: int


def has_older(directory: int, before_ns: int, kept: Container[FileId] = ()) -> bool:
    """Whether an open directory has an entry that nobody has touched since, other than *kept*."""
    with os.scandir(directory) as entries:
        return any(_is_older(entry.name, directory, before_ns, kept) for entry in entries)


def remove_older(directory: int, before_ns: int, kept: Container[FileId]) -> None:
    """
    Remove from an open directory what nobody has touched since, however deep it is, other than *kept*.

    The time is that of the last change of an inode, which only the kernel sets. What lies in a directory below is moved
    up first.

    Raises:
        OSError: If something cannot be removed.
    """
    moved = frozenset[str]()
    for _ in range(_MOST_ROUNDS):
        moved = _swept(directory, before_ns, kept, moved)
        if not moved:
            return


def in_use_by(pids: Iterable[int], proc: Path = _PROC) -> frozenset[FileId]:
    """
    Name the files that processes have open or mapped.

    Raises:
        OSError: If that of one which lives is not to be seen.
    """
    found: set[FileId] = set()
    for pid in pids:
        with suppress(FileNotFoundError, ProcessLookupError):  # it has ended
            for path in (proc / f"{pid}/fd").iterdir():
                with suppress(FileNotFoundError):  # closed by now
                    status = path.stat()
                    found.add(FileId(status.st_dev, status.st_ino))
            for line in (proc / f"{pid}/maps").read_text(encoding="utf-8", errors="replace").splitlines():
                if mapped := _MAPPED.match(line):
                    found.add(FileId(os.makedev(int(mapped[1], 16), int(mapped[2], 16)), int(mapped[3])))
    return frozenset(found)


def is_mounted_elsewhere(device: int, point: str, proc: Path = _PROC) -> bool:
    """Whether a process of another mount namespace than ours has a file system at *point*, as a container has."""
    looked_at = {_namespace(proc / _OWN)}
    wanted = f"{os.major(device)}:{os.minor(device)}"
    for process in [path for path in proc.iterdir() if path.name.isdecimal()]:
        namespace = _namespace(process)
        if namespace not in looked_at:
            with suppress(OSError):  # it has ended: another one may be in the same
                listed = (process / "mountinfo").read_text(encoding="utf-8", errors="replace").splitlines()
                looked_at.add(namespace)
                if any((fields := line.split(" "))[2] == wanted and fields[4] == point for line in listed):
                    return True
    return False


def _namespace(process: Path) -> str:
    with suppress(OSError):
        return str((process / "ns/mnt").readlink())
    return ""


def _is_older(name: str, directory: int, before_ns: int, kept: Container[FileId]) -> bool:
    with suppress(FileNotFoundError):
        status = os.stat(name, dir_fd=directory, follow_symlinks=False)
        return status.st_ctime_ns < before_ns and FileId(status.st_dev, status.st_ino) not in kept
    return False


def _swept(directory: int, before_ns: int, kept: Container[FileId], ours: Container[str]) -> frozenset[str]:
    """Remove what is older, and what is *ours*; the names of directories that were moved up from those."""
    moved: set[str] = set()
    with os.scandir(directory) as entries:
        for entry in entries:
            if not (entry.name in ours or _is_older(entry.name, directory, before_ns, kept)):
                continue
            if entry.is_dir(follow_symlinks=False):
                moved |= _emptied(entry.name, directory, before_ns, kept)
            else:
                _remove(entry.name, directory)
    return frozenset(moved)


def _emptied(name: str, directory: int, before_ns: int, kept: Container[FileId]) -> set[str]:
    """Remove a directory, unless something in it is newer, and name those of it that were moved up."""
    moved: set[str] = set()
    emptied = os.open(name, _DIRECTORY, dir_fd=directory)
    try:
        with os.scandir(emptied) as entries:
            for entry in entries:
                if not _is_older(entry.name, emptied, before_ns, kept):
                    continue
                if entry.is_dir(follow_symlinks=False):
                    os.rename(entry.name, beside := token_hex(), src_dir_fd=emptied, dst_dir_fd=directory)
                    moved.add(beside)
                else:
                    _remove(entry.name, emptied)
    finally:
        os.close(emptied)
    with suppress(OSError):  # not empty
        os.rmdir(name, dir_fd=directory)
    return moved


def _remove(name: str, directory: int) -> None:
    with suppress(FileNotFoundError):
        os.unlink(name, dir_fd=directory)
