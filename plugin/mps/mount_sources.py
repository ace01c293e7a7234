"""
What containers get of the pipe directory: mounts of it, in a directory that none of them sees.

Container runtimes follow links in what they mount for a container, as root of the node. The names in the pipe directory
are tenants' to change, where they see all of it: under `attach: pod`, or where NVIDIA's toolkit mounts it. Whoever is
root in a container could have the next one get any directory of the node, by a link in place of its GPU's. And what is
mounted over a name goes from the node with the name, where a container sees another directory by it.

The directory is a file system of its own and read-only, so that a container which starts while a mount in it is made
anew gets an empty directory that it cannot write to.
"""

import logging
import os
from contextlib import suppress
from pathlib import Path
from threading import Lock

from plugin.mps import mounts
from plugin.mps.pipe_directories import opened_child
from plugin.mps.place import MOUNT_SOURCES

_log = logging.getLogger(__name__)

_SOURCE = "gpu-share-pipes"
_FLAGS = mounts.NOSUID | mounts.NODEV | mounts.NOEXEC
_OPTIONS = "mode=755,size=64k"  # for names alone
_lock = Lock()  # of its being writable


def mount_sources(state_dir: Path) -> Path | None:
    """Name the directory; None where the node would not see what is mounted there."""
    path = str(state_dir.resolve())
    try:
        is_alone = mounts.shows_to_us_alone(path, mounts.mounts(), mounts.first_mounts(), pid=os.getpid())
    except OSError:
        return None
    return None if is_alone else state_dir / MOUNT_SOURCES


def warn_without(state_dir: Path) -> None:
    """Say what it is for tenants that there is no such directory."""
    _log.warning(
        "links that tenants put into the pipe directory lead what other containers get: mount --state-dir with "
        "mountPropagation: Bidirectional",
        extra={"directory": str(state_dir)},
    )


def point_of(directory: Path, name: str) -> Path:
    """
    Have a directory of that *name* to mount something on.

    Raises:
        OSError: If that cannot be.
    """
    point = directory / name
    with _lock:
        path = str(directory.resolve())
        there = mounts.mounted_at(directory.resolve())
        if there is None or there.source != _SOURCE:
            directory.mkdir(exist_ok=True)
            mounts.mount(_SOURCE, path, kind="tmpfs", flags=_FLAGS, options=_OPTIONS)
        if not point.is_dir():
            mounts.mount(_SOURCE, path, flags=mounts.REMOUNT | _FLAGS)
            point.mkdir()
        mounts.mount(_SOURCE, path, flags=mounts.REMOUNT | mounts.RDONLY | _FLAGS)
    return point


def offer(directory: Path | None, pipe_directory: Path, name: str, *, device: str = "") -> str:
    """
    Have containers get what has the *name* in the pipe directory by now, and say why they cannot; empty if they can.

    With *device*, as mountinfo has it, that has to be the file system which is mounted there.
    """
    if directory is None:
        return ""
    try:
        with opened_child(pipe_directory, name) as opened:
            status = os.fstat(opened)
            if device not in ("", f"{os.major(status.st_dev)}:{os.minor(status.st_dev)}"):
                return f"{pipe_directory / name}: somebody put another directory in its place"
            with suppress(FileNotFoundError):
                if os.path.samestat((directory / name).stat(), status):
                    return ""
            point = point_of(directory, name)
            _unmount(point)
            mounts.mount(f"/proc/self/fd/{opened}", str(point), flags=mounts.BIND)
    except OSError as error:
        return f"{pipe_directory / name}: cannot be mounted at {directory / name} for containers: {error.strerror}"
    return ""


def withdraw_all(directory: Path | None) -> None:
    """Offer nothing more, and leave nothing there; containers that have something keep it."""
    if directory is not None and directory.is_dir():
        _unmount(directory)
        with suppress(OSError):
            directory.rmdir()


def _unmount(point: Path) -> None:
    """Take away what is mounted there, with all below; what cannot be is covered by what is mounted next."""
    path = str(point.resolve())
    for one in mounts.mounts():
        if one.point == path:
            try:
                mounts.unmount(path)
            except OSError as error:
                _log.warning("not unmounted", extra={"directory": path, "reason": error.strerror})
