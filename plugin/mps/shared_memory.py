"""
The memory that MPS servers share with their clients: a tmpfs of its own, at /dev/shm for both.

Clients get `shm` of the mount sources there. Without it they would need the IPC namespace of the host, and all that is
in its /dev/shm.
"""

import logging
import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from plugin.errors import MpsError
from plugin.mps import leftovers, mounts
from plugin.mps.mount_sources import offer, point_of
from plugin.mps.pipe_directories import label, opened_child, take
from plugin.mps.place import Place

_log = logging.getLogger(__name__)

DIRECTORY = "shm"  # as `limits` mounts it
_SOURCE = "gpu-share"  # how our tmpfs is told from one that an administrator mounted there
_WRITTEN_BY_ALL = 0o1777
_OPTIONS = f"mode={_WRITTEN_BY_ALL:o},size=50%"
_SERVERS = Path("/dev/shm")  # noqa: S108 - where CUDA looks
_CLOCK_LAGS_NS = 10**9  # behind that of what is asked; the kernel's for files does, by some milliseconds


def provide(place: Place) -> None:
    """
    Mount a tmpfs, unless something is mounted there already, and put it at our own /dev/shm, where servers look.

    What an administrator has mounted at `shm` in the pipe directory takes its place.

    Raises:
        MpsError: If that is not permitted.
    """
    shared = _shared(place)
    try:
        _take_over(place)
        if mounts.mounted_at(shared) is None:
            if place.mount_sources is not None:
                point_of(place.mount_sources, DIRECTORY)
            with opened_child(shared.parent, DIRECTORY) as directory:
                # By descriptor, so that no link is followed.
                target = f"/proc/self/fd/{directory}"
                flags = mounts.NOSUID | mounts.NODEV | mounts.NOEXEC
                mounts.mount(_SOURCE, target, kind="tmpfs", flags=flags, options=_OPTIONS)
            with opened_child(shared.parent, DIRECTORY) as directory:
                label(directory)
        _serve(shared)
    except OSError as error:
        raise MpsError(
            f"{error.filename or shared}: cannot be mounted: {error.strerror}: run gpu-share mps as root in a "
            "privileged container"
        ) from error
    _show(place)


def is_offered(place: Place) -> bool:
    """Whether containers get something from where they should, if they do not get it from the pipe directory."""
    return place.mount_sources is None or mounts.mounted_at(_shared(place)) is not None


def _take_over(place: Place) -> None:
    """Offer what is mounted in the pipe directory, by an administrator or by an earlier version of this."""
    if place.mount_sources is None:
        return
    there = mounts.mounted_at(place.pipe_directory.resolve() / DIRECTORY)
    if there is None or (there.source == _SOURCE and mounts.mounted_at(_shared(place))):
        return
    if why := offer(place.mount_sources, place.pipe_directory, DIRECTORY, device=there.device):
        raise MpsError(why)


def _serve(shared: Path) -> None:
    if _SERVERS.stat().st_dev == shared.stat().st_dev:
        return
    if not mounts.shows_to_us_alone(str(_SERVERS), mounts.mounts(), mounts.first_mounts(), pid=os.getpid()):
        _log.warning(
            "MPS servers and their clients have different /dev/shm: run gpu-share mps in a container of its own",
            extra={"servers": str(_SERVERS), "clients": str(shared)},
        )
        return
    mounts.mount(str(shared), str(_SERVERS), flags=mounts.BIND)


def _show(place: Place) -> None:
    """Have it in the pipe directory too, from where containers that an earlier version allocated for get it."""
    if place.mount_sources is None or mounts.mounted_at(place.pipe_directory.resolve() / DIRECTORY):
        return
    with suppress(OSError), opened_child(place.pipe_directory, DIRECTORY) as directory:
        mounts.mount(str(_shared(place)), f"/proc/self/fd/{directory}", flags=mounts.BIND)


def open_to_all(place: Place) -> None:
    """
    Have our tmpfs written to by all users, whatever root in a container has made of it.

    Raises:
        OSError: If that cannot be.
    """
    with _ours(place) as found:
        for directory in found:
            if take(directory, _WRITTEN_BY_ALL):
                _log.warning("the shared memory of MPS was closed to some users: opened again")


def empty(place: Place, *, is_idle: Callable[[], bool], servers: Callable[[], Iterable[int]]) -> None:
    """
    Remove from our tmpfs what ended containers have left there, where no container holds a share by MPS.

    *is_idle* says whether that is known, and *servers* names the processes of MPS, by PID, which keep what they use.
    What one has made that has just been allocated its share stays: it is newer than the time that counts, which is
    before the question. Nor is anything removed while a container has it mounted that nobody knows of.

    Raises:
        OSError: If something cannot be removed, or nobody can say what is in use.
    """
    before_ns = time.time_ns() - _CLOCK_LAGS_NS
    with _ours(place) as found:
        for directory in found:
            if not leftovers.has_older(directory, before_ns) or not is_idle():
                continue
            kept = leftovers.in_use_by(servers())
            device = os.fstat(directory).st_dev
            if leftovers.has_older(directory, before_ns, kept) and not leftovers.is_mounted_elsewhere(
                device, str(_SERVERS)
            ):
                before_bytes = _used_bytes(directory)
                leftovers.remove_older(directory, before_ns, kept)
                freed = max(0, before_bytes - _used_bytes(directory))
                _log.info("removed what ended containers left in the shared memory of MPS", extra={"bytes": freed})


def withdraw(place: Place) -> None:
    """Take our tmpfs out of the pipe directory, by whatever name; containers that have it keep theirs."""
    pipes = place.pipe_directory.resolve()
    for one in mounts.mounts():
        if one.source == _SOURCE and Path(one.point).parent == pipes:
            try:
                mounts.unmount(one.point)
            except OSError as error:
                _log.warning("shared memory not unmounted", extra={"directory": one.point, "reason": error.strerror})


def _shared(place: Place) -> Path:
    """Resolve the directory as the list of mounts has it; a link in its own place is not followed."""
    return (place.mount_sources or place.pipe_directory).resolve() / DIRECTORY


@contextmanager
def _ours(place: Place) -> Iterator[tuple[int, ...]]:
    """Open our tmpfs; nothing where there is none, or an administrator's in its place."""
    shared = _shared(place)
    there = mounts.mounted_at(shared)
    if there is None or there.source != _SOURCE:
        yield ()
        return
    with opened_child(shared.parent, DIRECTORY) as directory:
        yield (directory,)


def _used_bytes(directory: int) -> int:
    status = os.fstatvfs(directory)
    return (status.f_blocks - status.f_bfree) * status.f_frsize
