"""
Daemons that run and that nobody reaches any more: their socket was removed, by itself or with the directory it was in.

Who has found the daemon before keeps the contexts, and nothing gives a socket its name back but another daemon.
"""

import stat
from contextlib import suppress
from pathlib import Path

from plugin.mps.control import SOCKET, SOCKETS
from plugin.removal import removed

PIPE_DIRECTORY = "mps.pipeDirectory"  # as `_cluster.yaml` names it

_UNTIL = (
    "programs that run go on, and new ones do not find MPS until it is started anew, once no container holds a share"
)
_SOONER = "delete the pods that do"


def has_socket(directory: Path) -> bool:
    """Whether there is a socket where the daemon of a pipe directory has put its own, and no link in such a place."""
    with suppress(OSError):
        return stat.S_ISSOCK((directory / SOCKET).lstat().st_mode) and not _has_link(directory)
    return False


def is_removed(pipe_directory: Path) -> str:
    """Say that the directory of all pipe directories is gone: no daemon can be started there; empty if it is not."""
    return removed({PIPE_DIRECTORY: pipe_directory})


def why_unreachable(directory: Path, found: str) -> str:
    """Say what became of the socket of the daemon in *directory*, and what to do; *found* is what asking it came to."""
    if why := is_removed(directory.parent):
        return f"{why}; {_UNTIL} of this node: {_SOONER}"
    why = found if _has_link(directory) else f"{directory / SOCKET}: somebody removed the socket of the daemon"
    return f"{why}; {_UNTIL} of this GPU: {_SOONER}"


def _has_link(directory: Path) -> bool:
    return any((directory / name).is_symlink() for name in SOCKETS)
