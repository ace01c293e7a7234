"""What ended containers have left in a directory that all of them could write to, and who uses that directory still."""

import os
import re
from collections.abc import Container, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from secrets import token_hex
from typing import Final, NamedTuple

from plugin.mps.mounts import mounts

_PROC = Path("/proc")
_OWN: Final = "self"
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_MOST_AT_ONCE = 10_000  # files and directories, which takes about a second
_MAPPED = re.compile(rb"\S+ \S+ \S+ ([0-9a-f]+):([0-9a-f]+) ([1-9][0-9]*)(?: |$)")


class FileId(NamedTuple):
    """A file, whatever it is called."""

    device: int
    inode: int


def has_older(directory: int, before_ns: int, kept: Container[FileId] = ()) -> bool:
    """Whether an open directory has an entry that nobody has touched since, other than *kept*."""
    with os.scandir(directory) as entries:
        return any(_is_older(entry.name, directory, before_ns, kept) for entry in entries)


def remove_older(directory: int, before_ns: int, kept: Container[FileId], *, most: int = _MOST_AT_ONCE) -> None:
    """
    Remove from an open directory what nobody has touched since, however deep it is, other than *kept*.

    The time is that of the last change of an inode, which only the kernel sets. What lies in a directory below is moved
    up first. After *most* files and directories the rest is left, for another time.

    Raises:
        OSError: If something cannot be removed.
    """
    _Sweep(directory, before_ns, kept, most).run()


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
            for line in (proc / f"{pid}/maps").read_bytes().split(b"\n"):
                if mapped := _MAPPED.match(line):
                    found.add(FileId(os.makedev(int(mapped[1], 16), int(mapped[2], 16)), int(mapped[3])))
    return frozenset(found)


def is_mounted_elsewhere(device: int, point: str, proc: Path = _PROC) -> bool:
    """Whether a process of another mount namespace than ours has a file system at *point*, as a container has."""
    looked_at = {_namespace(proc / _OWN)}
    wanted = (f"{os.major(device)}:{os.minor(device)}", point)
    for process in [path for path in proc.iterdir() if path.name.isdecimal()]:
        namespace = _namespace(process)
        if namespace not in looked_at:
            with suppress(OSError):  # it has ended: another one may be in the same
                listed = mounts(process / "mountinfo")
                looked_at.add(namespace)
                if any((one.device, one.point) == wanted for one in listed):
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


class _Sweep:
    def __init__(self, directory: int, before_ns: int, kept: Container[FileId], most: int) -> None:
        self._directory = directory
        self._before_ns = before_ns
        self._kept = kept
        self._left = most
        self._moved: set[str] = set()  # names of directories that this has moved up: newer by that alone

    def run(self) -> None:
        ours = self._round(frozenset())
        while ours and self._left > 0:
            ours = self._round(ours)

    def _round(self, ours: Container[str]) -> frozenset[str]:
        """Remove what is older, and what is *ours*; the names of directories that were moved up from those."""
        self._moved = set()
        for entry in self._entries(self._directory, ours):
            if entry.is_dir(follow_symlinks=False):
                self._empty(entry.name)
            else:
                _remove(entry.name, self._directory)
        return frozenset(self._moved)

    def _empty(self, name: str) -> None:
        """Remove a directory, unless something in it is newer; directories in it are moved up."""
        emptied = os.open(name, _DIRECTORY, dir_fd=self._directory)
        try:
            for entry in self._entries(emptied):
                if entry.is_dir(follow_symlinks=False):
                    os.rename(entry.name, beside := token_hex(), src_dir_fd=emptied, dst_dir_fd=self._directory)
                    self._moved.add(beside)
                else:
                    _remove(entry.name, emptied)
        finally:
            os.close(emptied)
        with suppress(OSError):  # not empty
            os.rmdir(name, dir_fd=self._directory)

    def _entries(self, directory: int, ours: Container[str] = ()) -> Iterator[os.DirEntry[str]]:
        """List what is to go, as long as there may be more."""
        with os.scandir(directory) as entries:
            for entry in entries:
                if self._left <= 0:
                    return
                if entry.name in ours or _is_older(entry.name, directory, self._before_ns, self._kept):
                    self._left -= 1
                    yield entry


def _remove(name: str, directory: int) -> None:
    with suppress(FileNotFoundError):
        os.unlink(name, dir_fd=directory)
