"""
The sockets of one GPU's MPS daemon, held open: tenants can take the names of them away, and not what is held.

Who is root in a container can rename the socket and speak with the daemon on, while nobody else finds it, or put one of
his own in its place. So the daemon's are those that its processes have bound, as the kernel shows it.
"""

import logging
import os
import shutil
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from secrets import token_hex

from plugin.mps.control import SOCKETS
from plugin.mps.pipe_directories import drop_acl, opened_child
from plugin.mps.process_sockets import bound_to

_log = logging.getLogger(__name__)

_HELD = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC  # not opened, which no socket can be: kept from being forgotten
_OWN_ALONE = 0o700
_TO_CONNECT = 0o222  # what of a mode lets programs connect
_BESIDE = ".beside"  # the end of the name of what made way: the same for all, or they would fill the directory


class HeldSockets:
    """What a daemon has made in its pipe directory; for one thread."""

    def __init__(self, directory: Path, links: Path) -> None:
        """Hold sockets in *directory*; *links* is where a directory of links to them may be made, out of reach."""
        self._directory = directory
        self._links = links
        self._held: dict[str, int] = {}  # by name
        self._modes: dict[str, int] = {}  # by name, as the daemon made them
        self._seen_modes: dict[str, int] = {}  # likewise, when they were found
        self._made_way = False

    def __bool__(self) -> bool:
        return bool(self._held)

    def find(self, daemon: Iterable[int]) -> bool:
        """Hold what the *daemon* has made by now, have it in its place, and say whether anything had been moved."""
        if not self._held or self.lost():  # it makes them late, or made them anew
            self.take(daemon)
        return self.put_back()

    def take(self, daemon: Iterable[int]) -> None:
        """
        Hold those that the processes of the *daemon* have bound, beside those that are held already.

        Where the kernel shows none of them, it is whatever is in their places.
        """
        shown = [pair for pid in daemon for pair in bound_to(pid, SOCKETS, self._directory).items()]
        for name, files in shown:
            self._hold(name, files)
        for name in () if shown else SOCKETS:
            if name not in self._held:
                with suppress(OSError):
                    self._hold(name, [os.open(self._directory / name, _HELD)])

    def keep_modes(self) -> None:
        """
        Have those of now for what the daemon has made, if that was not known: it has answered, so it is ready.

        But no less open to connect by than when it was found: somebody else may have closed it since.
        """
        for name, file in self._held.items():
            self._modes.setdefault(name, _mode(file) | self._seen_modes[name] & _TO_CONNECT)

    def lost(self) -> list[str]:
        """Say in whose place is not what the daemon has made, be it nothing, a link or another socket."""
        paths = {name: self._directory / name for name in SOCKETS}
        return [
            name
            for name, path in paths.items()
            if (name in self._held and not _is_same(self._held[name], path)) or path.is_symlink()
        ]

    def put_back(self) -> bool:
        """
        Give those their names back that have another one still, and all their modes, and say whether anything had gone.

        One that has no name at all can get none: the kernel has it so.
        """
        self._tidy()
        found = [self._named(name) for name in self.lost() if name in self._held]
        found += [self._opened_to_all(name) for name in self._held]
        return any(found)

    def led_to(self) -> Path:
        """
        Make a directory in which a program finds what is held, whatever became of the names.

        Raises:
            OSError: If it cannot be made.
        """
        self._links.mkdir(mode=_OWN_ALONE, exist_ok=True)
        for name in SOCKETS:
            link = self._links / name
            link.unlink(missing_ok=True)
            if name in self._held:
                link.symlink_to(f"/proc/{os.getpid()}/fd/{self._held[name]}")
        return self._links

    def release(self) -> None:
        """Hold nothing more: the daemon has ended."""
        while self._held:
            os.close(self._held.popitem()[1])
        self._modes.clear()
        shutil.rmtree(self._links, ignore_errors=True)

    def _hold(self, name: str, files: list[int]) -> None:
        """Hold the first of some open files, in place of what is held by its name, unless that is one of them."""
        before = self._held.get(name)
        to_close = set(files)
        sockets = [file for file in files if stat.S_ISSOCK(os.fstat(file).st_mode)]  # no link
        if sockets and not any(_are_same(before, file) for file in sockets):
            self._held[name] = sockets[0]
            self._seen_modes[name] = _mode(sockets[0])
            self._modes.pop(name, None)
            to_close ^= {sockets[0]} if before is None else {sockets[0], before}
        for file in to_close:
            os.close(file)

    def _named(self, name: str) -> bool:
        with suppress(OSError), opened_child(self._directory.parent, self._directory.name) as directory:
            self._made_way |= _name(self._held[name], name, directory)
            _log.warning("an MPS socket was renamed: named as before", extra={"socket": str(self._directory / name)})
            return True
        return False

    def _opened_to_all(self, name: str) -> bool:
        file, mode = self._held[name], self._modes.get(name)
        path = f"/proc/self/fd/{file}"  # what is not opened is reached by no other
        had_acl = drop_acl(path)  # first: it decides what of the mode is in force
        if not had_acl and (mode is None or _mode(file) == mode):
            return False
        with suppress(OSError):
            if mode is not None:
                Path(path).chmod(mode)
            said = {"socket": str(self._directory / name), "mode": f"{_mode(file):o}"}
            _log.warning("the mode of an MPS socket was changed: set again", extra=said)
        return True

    def _tidy(self) -> None:
        """Remove what made way and has another name again: its own, that another daemon's supervisor gave it."""
        if not self._made_way:
            return
        with suppress(OSError), opened_child(self._directory.parent, self._directory.name) as directory:
            for name in SOCKETS:
                with suppress(FileNotFoundError):
                    if os.stat(name + _BESIDE, dir_fd=directory, follow_symlinks=False).st_nlink > 1:
                        os.unlink(name + _BESIDE, dir_fd=directory)


def _mode(file: int) -> int:
    return stat.S_IMODE(os.fstat(file).st_mode)


def _are_same(one: int | None, other: int) -> bool:
    return one is not None and os.path.samestat(os.fstat(one), os.fstat(other))


def _is_same(file: int, path: Path) -> bool:
    with suppress(OSError):
        return os.path.samestat(os.fstat(file), path.lstat())
    return False


def _name(file: int, name: str, directory: int) -> bool:
    """
    Name an open file in an open directory, in place of whatever file has the name, and say whether that is kept beside.

    A socket that has no other name is: it may be of another daemon, by the hand of who swapped them, and without a name
    it could get none again.
    """
    passing = token_hex()
    os.link(f"/proc/self/fd/{file}", passing, dst_dir_fd=directory, follow_symlinks=True)
    try:
        if made_way := _is_only_name(name, directory):
            os.rename(name, name + _BESIDE, src_dir_fd=directory, dst_dir_fd=directory)
        os.rename(passing, name, src_dir_fd=directory, dst_dir_fd=directory)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(passing, dir_fd=directory)
    return made_way


def _is_only_name(name: str, directory: int) -> bool:
    with suppress(OSError):
        status = os.stat(name, dir_fd=directory, follow_symlinks=False)
        return stat.S_ISSOCK(status.st_mode) and status.st_nlink == 1
    return False
