"""
What containers get of the pipe directory: mounts of it, in a directory that none of them sees.

Container runtimes follow links in what they mount for a container, as root of the node. The names in the pipe directory
are tenants' to change, where they see all of it: under `attach: pod`, or where NVIDIA's toolkit mounts it. Whoever is
root in a container could have the next one get any directory of the node, by a link in place of its GPU's. And what is
mounted over a name goes from the node with the name, where a container sees another directory by it.
"""

import logging
import os
from pathlib import Path

from plugin.mps import mounts
from plugin.mps.pipe_directories import opened_child
from plugin.mps.place import MOUNT_SOURCES

_log = logging.getLogger(__name__)


def mount_sources(state_dir: Path) -> Path | None:
    """Name the directory; None, with a warning, where the node would not see what is mounted there."""
    path = str(state_dir.resolve())
    try:
        is_seen = not mounts.shows_to_us_alone(path, mounts.mounts(), mounts.first_mounts(), pid=os.getpid())
    except OSError:
        is_seen = False
    if is_seen:
        return state_dir / MOUNT_SOURCES
    _log.warning(
        "links that tenants put into the pipe directory lead what other containers get: mount --state-dir with "
        "mountPropagation: Bidirectional",
        extra={"directory": path},
    )
    return None


def offer(directory: Path | None, pipe_directory: Path, name: str, *, device: str = "") -> str:
    """
    Have containers get what has the *name* in the pipe directory by now, and say why they cannot; empty if they can.

    With *device*, as mountinfo has it, that has to be the file system which is mounted there.
    """
    if directory is None:
        return ""
    point = directory / name
    try:
        with opened_child(pipe_directory, name) as opened:
            status = os.fstat(opened)
            if device not in ("", f"{os.major(status.st_dev)}:{os.minor(status.st_dev)}"):
                return f"{pipe_directory / name}: somebody put another directory in its place"
            if not (point.exists() and os.path.samestat(point.stat(), status)):
                point.mkdir(parents=True, exist_ok=True)
                _unmount(point)
                mounts.mount(f"/proc/self/fd/{opened}", str(point), flags=mounts.BIND)
    except OSError as error:
        return f"{error.filename or point}: what containers get cannot be mounted there: {error.strerror}"
    return ""


def withdraw_all(directory: Path | None) -> None:
    """Offer nothing more, and leave nothing there; containers that have something keep it."""
    if directory is None or not directory.is_dir():
        return
    try:
        for point in directory.iterdir():
            _unmount(point)
            point.rmdir()
        directory.rmdir()
    except OSError as error:
        _log.warning("not removed", extra={"directory": error.filename, "reason": error.strerror})


def _unmount(point: Path) -> None:
    path = str(point.resolve())
    for one in mounts.mounts():
        if one.point == path:
            mounts.unmount(path)
