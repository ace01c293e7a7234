"""
The memory that MPS servers share with their clients: a tmpfs of its own, at /dev/shm for both.

Clients get `<pipe directory>/shm` there. Without it they would need the IPC namespace of the host, and all that is in
its /dev/shm.
"""

import logging
import os
from collections.abc import Sequence
from pathlib import Path

from plugin.errors import MpsError
from plugin.mps import mounts
from plugin.mps.pipe_directories import label, opened_child

_log = logging.getLogger(__name__)

DIRECTORY = "shm"  # as `limits` mounts it
_SOURCE = "gpu-share"  # how our tmpfs is told from one that an administrator mounted there
_OPTIONS = "mode=1777,size=50%"
_SERVERS = Path("/dev/shm")  # noqa: S108 - where CUDA looks
_FIRST_PROCESS = Path("/proc/1/mountinfo")


def provide(pipe_directory: Path) -> None:
    """
    Mount a tmpfs, unless something is mounted there already, and put it at our own /dev/shm, where servers look.

    Raises:
        MpsError: If that is not permitted.
    """
    shared = _place(pipe_directory)
    try:
        if not any(one.point == str(shared) for one in mounts.mounts()):
            with opened_child(pipe_directory, DIRECTORY) as directory:
                # By descriptor, so that no link is followed.
                target = f"/proc/self/fd/{directory}"
                flags = mounts.NOSUID | mounts.NODEV | mounts.NOEXEC
                mounts.mount(_SOURCE, target, kind="tmpfs", flags=flags, options=_OPTIONS)
            with opened_child(pipe_directory, DIRECTORY) as directory:
                label(directory)
        if _SERVERS.stat().st_dev == shared.stat().st_dev:
            return
        if not shows_to_us_alone(str(_SERVERS), mounts.mounts(), _first_mounts(), pid=os.getpid()):
            _log.warning(
                "MPS servers and their clients have different /dev/shm: run gpu-share mps in a container of its own",
                extra={"servers": str(_SERVERS), "clients": str(shared)},
            )
            return
        mounts.mount(str(shared), str(_SERVERS), flags=mounts.BIND)
    except OSError as error:
        raise MpsError(
            f"{error.filename or shared}: cannot be mounted: {error.strerror}: run gpu-share mps as root in a "
            "privileged container"
        ) from error


def withdraw(pipe_directory: Path) -> None:
    """Take our tmpfs out of the tree; containers that have it keep theirs."""
    shared = str(_place(pipe_directory))
    try:
        if any(one.point == shared and one.source == _SOURCE for one in mounts.mounts()):
            mounts.unmount(shared)
    except OSError as error:
        _log.warning("shared memory not unmounted", extra={"directory": shared, "reason": error.strerror})


def _place(pipe_directory: Path) -> Path:
    """Resolve the directory as the list of mounts has it; a link in its own place is not followed."""
    return pipe_directory.resolve() / DIRECTORY


def shows_to_us_alone(
    path: str, own: Sequence[mounts.Mount], first: Sequence[mounts.Mount] | None, *, pid: int
) -> bool:
    """
    Whether a mount at *path* shows to this program alone, and not to the whole node.

    *own* is what this process, with *pid*, sees mounted, and *first* what the first process does, if that is known.
    """
    covering = mounts.mount_of(path, own)
    if covering is None:
        return False
    if pid == 1:  # of a container, and the node's mounts are not to be seen
        return not covering.peers
    if first is None or {one.id for one in own} & {one.id for one in first}:
        # The first process is the node's, or that of our container; there is no telling in the latter case.
        return False
    on_node = mounts.mount_of(path, first)
    return not covering.peers or on_node is None or covering.peers != on_node.peers


def _first_mounts() -> Sequence[mounts.Mount] | None:
    try:
        return mounts.mounts(_FIRST_PROCESS)
    except OSError:
        return None
