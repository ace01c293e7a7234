"""
Daemons that run and whose socket was removed, by itself or with the directory it was in: no program finds them anew.

Who has found the daemon before keeps the contexts, and nothing gives a removed socket its name back but another daemon.
"""

from pathlib import Path

from plugin.mps.control import SOCKETS
from plugin.removal import removed

PIPE_DIRECTORY = "mps.pipeDirectory"  # as `_cluster.yaml` names it

_UNTIL = (
    "programs that run go on, and new ones do not find MPS until it is started anew, once no container holds a share"
)
_SOONER = "delete the pods that do"
NOT_ASKED = "the daemon is not asked meanwhile, and whether its limits still hold is not known"


def is_removed(pipe_directory: Path) -> str:
    """Say that the directory of all pipe directories is gone: no daemon can be started there; empty if it is not."""
    return removed({PIPE_DIRECTORY: pipe_directory})


def why_unreachable(directory: Path, found: str) -> str:
    """Say what became of the socket of the daemon in *directory*; *found* is what asking it came to."""
    if why := is_removed(directory.parent):
        return why
    paths = [directory / name for name in SOCKETS]
    if any(path.is_symlink() for path in paths):
        return found
    gone = next((path for path in paths if not path.is_socket()), paths[0])
    return f"{gone}: somebody removed the socket of the daemon"


def left_alone(directory: Path, why: str) -> str:
    """Say *why* with what it is for the tenants of a daemon that lives on, and what to do."""
    of = "node" if is_removed(directory.parent) else "GPU"
    return f"{why}; {_UNTIL} of this {of}: {_SOONER}"
