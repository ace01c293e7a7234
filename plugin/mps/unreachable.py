"""
Daemons that run and whose socket was removed, with its directory or without, or replaced: no program finds them anew.

Who has found the daemon before keeps the contexts, and nothing gives a removed socket its name back but another daemon.
"""

from collections.abc import Sequence
from pathlib import Path

from plugin.mps.control import SOCKETS, planted_link
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


def why_unreachable(directory: Path, lost: Sequence[str]) -> str:
    """Say what became of the sockets of the daemon in *directory* of which *lost* are not in their places."""
    if why := is_removed(directory.parent) or planted_link(directory):
        return why
    path = directory / (lost or SOCKETS)[0]
    did = "put another socket in the place of that" if path.is_socket() else "removed the socket"
    return f"{path}: somebody {did} of the daemon"


def left_alone(directory: Path, why: str) -> str:
    """Say *why* with what it is for the tenants of a daemon that lives on, and what to do."""
    of = "node" if is_removed(directory.parent) else "GPU"
    return f"{why}; {_UNTIL} of this {of}: {_SOONER}"
