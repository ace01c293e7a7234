"""
The sockets of one GPU's MPS daemon, held open: tenants can take the names of them away, and not what is held.

Who is root in a container can rename the socket and speak with the daemon on, while nobody else finds it.
"""

import logging
import os
import shutil
import stat
from contextlib import suppress
from pathlib import Path
from secrets import token_hex

from plugin.mps.control import SOCKETS
from plugin.mps.pipe_directories import opened_child

_log = logging.getLogger(__name__)

_HELD = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC  # not opened, which no socket can be: kept from being forgotten
_OWN_ALONE = 0o700


class HeldSockets:
    """What a daemon has made in its pipe directory; for one thread."""

    def __init__(self, directory: Path, links: Path) -> None:
        """Hold sockets in *directory*; *links* is where a directory of links to them may be made, out of reach."""
        self._directory = directory
        self._links = links
        self._held: dict[str, int] = {}  # by name

    def __bool__(self) -> bool:
        return bool(self._held)

    def take(self) -> None:
        """Hold those that are there, beside those that are held already."""
        for name in SOCKETS:
            if name not in self._held:
                with suppress(OSError):
                    self._hold(name)

    def are_there(self) -> bool:
        """Whether there is a socket in the place of each that the daemon has made, and a link in no such place."""
        modes = {name: _mode(self._directory / name) for name in SOCKETS}
        return all(stat.S_ISSOCK(modes[name]) for name in self._held) and not any(map(stat.S_ISLNK, modes.values()))

    def put_back(self) -> bool:
        """
        Give those their names back that have another one still, and say whether one had.

        One that has no name at all can get none: the kernel has it so.
        """
        lost = [name for name, file in self._held.items() if not _is_same(file, self._directory / name)]
        found = False
        for name in lost:
            with suppress(OSError), opened_child(self._directory.parent, self._directory.name) as directory:
                _name(self._held[name], name, directory)
                _log.warning(
                    "an MPS socket was renamed: named as before", extra={"socket": str(self._directory / name)}
                )
                found = True
        return found

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
        shutil.rmtree(self._links, ignore_errors=True)

    def _hold(self, name: str) -> None:
        file = os.open(self._directory / name, _HELD)
        if stat.S_ISSOCK(os.fstat(file).st_mode):
            self._held[name] = file
        else:  # a link, too
            os.close(file)


def _mode(path: Path) -> int:
    with suppress(OSError):
        return path.lstat().st_mode
    return 0


def _is_same(file: int, path: Path) -> bool:
    with suppress(OSError):
        return os.path.samestat(os.fstat(file), path.lstat())
    return False


def _name(file: int, name: str, directory: int) -> None:
    """Name an open file in an open directory, in place of whatever file has the name."""
    passing = token_hex()
    os.link(f"/proc/self/fd/{file}", passing, dst_dir_fd=directory, follow_symlinks=True)
    try:
        os.rename(passing, name, src_dir_fd=directory, dst_dir_fd=directory)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(passing, dir_fd=directory)
