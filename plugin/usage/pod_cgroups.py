"""
Which pods have processes left, by the cgroups of this node.

The kubelet gives to others what a pod had once it has forgotten the pod, and a pod that was deleted by force it forgets
at once. Its containers go on for as long as the container runtime was told to wait, and no socket of the kubelet's
says so. The cgroup of a pod has processes for as long as there are any, and a process leaves it after it has let go of
the GPU (kernel/exit.c: files are closed before the cgroup is left).
"""

import errno
import os
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from math import inf
from pathlib import Path
from time import monotonic
from typing import Final

HasProcesses = Callable[[str], bool | None]  # of a pod, by its UID; None where nobody knows

# What the kubelet calls the cgroup of all pods, by its drivers cgroupfs and systemd; below another by --cgroup-root.
_ALL_PODS: Final = re.compile(r"(?:.{1,200}-)?kubepods(?:\.slice)?")
_CLASS: Final = re.compile(r"(?:.{1,200}-)?(?:burstable|besteffort)(?:\.slice)?")
_UID: Final = re.compile(r"[0-9a-f]{32}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")  # of a static pod; of any other
_DEEPEST: Final = 6  # below the mount, that the cgroup of all pods is looked for; in a hierarchy of version 1 one more
_MOST_LOOKED_AT: Final = 10_000  # of cgroups
_SCAN_AGAIN_SECONDS: Final = 30.0  # for the cgroup of all pods, where it was not found
_BELIEVED_SECONDS: Final = 60.0  # that processes were seen, where it cannot be seen now
_MOST_REMEMBERED: Final = 4096
# What says whether a cgroup or one within it has processes, in version 2 and in the hierarchy of pids of version 1. The
# file of process IDs does not: it leaves out those that the reader's PID namespace does not have.
_TELLING: Final = ("cgroup.events", "pids.current")
_SLICE: Final = ".slice"
# Of a container where its handler in the runtime has the driver cgroupfs, and the kubelet systemd. It is in the cgroup
# that the runtime is in, or in the topmost one (kubernetes/kubernetes#106514).
_BESIDE: Final = r"\.slice:cri-containerd:[0-9a-f]{64}"
_LINKS_OF_EMPTY: Final = 2  # of a directory without others in it: its name, and itself


class PodCgroups:
    """
    The cgroups of pods in *directory*, which is the node's /sys/fs/cgroup; for any thread.

    That they are seen is known by one pod that has processes for sure: *own_uid*, that this runs in. A container
    runtime can have its containers elsewhere, and the cgroups of pods be there and empty. Then nobody knows anything.
    """

    def __init__(self, directory: Path, *, own_uid: str, clock: Callable[[], float] = monotonic) -> None:
        self._directory = directory
        self._own_uid = own_uid
        self._clock = clock
        self._scanned_seconds = -inf
        self._seen_seconds: dict[str, float] = {}  # when processes of a pod were last seen
        self._is_seen = False
        self._parents: tuple[Path, ...] = ()  # in which there are cgroups of pods
        self._tops: tuple[Path, ...] = ()  # of the hierarchies in which these are slices of systemd

    def has_processes(self, pod_uid: str) -> bool | None:
        """Whether processes of a pod are left; None where that cannot be seen, and was not a moment ago."""
        found, now_seconds = self._found(pod_uid), self._clock()
        if found:
            if len(self._seen_seconds) >= _MOST_REMEMBERED:
                self._seen_seconds = {}
            self._seen_seconds[pod_uid] = now_seconds
        elif found is None and now_seconds < self._seen_seconds.get(pod_uid, -inf) + _BELIEVED_SECONDS:
            return True
        return found

    def _found(self, pod_uid: str) -> bool | None:
        if not _UID.fullmatch(pod_uid) or not _UID.fullmatch(self._own_uid):
            return None
        try:
            return self._looked_for(pod_uid) if self._sees_pods() else None
        except (OSError, ValueError):
            return None

    def _sees_pods(self) -> bool:
        is_scan_due = self._clock() >= self._scanned_seconds + _SCAN_AGAIN_SECONDS
        if self._is_seen or is_scan_due:
            self._is_seen = self._looked_for(self._own_uid)
        if is_scan_due and not self._is_seen:
            self._parents = tuple(_parents(self._directory))  # the kubelet may have another driver since
            self._tops = tuple(_tops(self._directory, self._parents))
            self._scanned_seconds = self._clock()
            self._is_seen = self._looked_for(self._own_uid)
        return self._is_seen

    def _looked_for(self, pod_uid: str) -> bool:
        return any(map(_has_processes, self._cgroups_of(pod_uid)))

    def _cgroups_of(self, pod_uid: str) -> Iterator[Path]:
        """Name the cgroups that a pod can have: one in each hierarchy, of the class that it is in."""
        for parent in self._parents:
            if parent.name.endswith(_SLICE):
                yield parent / f"{parent.name.removesuffix(_SLICE)}-pod{pod_uid.replace('-', '_')}{_SLICE}"
            else:
                yield parent / f"pod{pod_uid}"
        beside = re.compile(f"(?:.{{1,200}}-)?pod{pod_uid.replace('-', '_')}{_BESIDE}")
        yield from (one for top in self._tops for one in _of_runtimes(top) if beside.fullmatch(one.name))


def _parents(directory: Path) -> Iterator[Path]:
    """Find the cgroups of all pods, and of their classes, in each hierarchy that tells of processes."""
    for cgroup in islice(_cgroups(directory), _MOST_LOOKED_AT):
        if _ALL_PODS.fullmatch(cgroup.name) and any((cgroup / name).exists() for name in _TELLING):
            yield cgroup
            yield from (one for one in _within(cgroup) if _CLASS.fullmatch(one.name))


def _tops(directory: Path, parents: Iterable[Path]) -> Iterator[Path]:
    """Name what may be the topmost cgroup of a hierarchy in which the cgroup of all pods is a slice."""
    found = (one.relative_to(directory) for one in parents if one.suffix == _SLICE and _ALL_PODS.fullmatch(one.name))
    for name in dict.fromkeys(one.parts[0] for one in found):
        yield from (directory,) if name.endswith(_SLICE) else (directory / name,)


def _of_runtimes(top: Path) -> Iterator[Path]:
    """Find the cgroups that are in the topmost one of a hierarchy, in a slice, or in a service of one."""
    topmost = _within(top)
    slices = (one for one in topmost if one.name.endswith(_SLICE) and not _ALL_PODS.fullmatch(one.name))
    services = [one for of_slice in slices for one in _within(of_slice)]
    yield from chain(topmost, services, chain.from_iterable(map(_within, filter(_has_others, services))))


def _has_others(cgroup: Path) -> bool:
    """Whether there may be cgroups within one: there are seldom, and to list its files takes long."""
    try:
        return cgroup.stat().st_nlink != _LINKS_OF_EMPTY
    except OSError:  # it is gone by now
        return False


def _cgroups(directory: Path, depth: int = 0) -> Iterator[Path]:
    for one in _within(directory):
        yield one
        if depth < _DEEPEST and not _ALL_PODS.fullmatch(one.name):
            yield from _cgroups(one, depth + 1)


def _within(cgroup: Path) -> list[Path]:
    try:
        with os.scandir(cgroup) as found:
            return [Path(one.path) for one in found if one.is_dir(follow_symlinks=False)]
    except OSError:  # it is gone by now
        return []


def _has_processes(cgroup: Path) -> bool:
    """Whether a process is in a cgroup, or in one within it; OSError or ValueError where that cannot be seen."""
    events, pids = (_read(cgroup / name) for name in _TELLING)
    return int(pids or 0) > 0 if events is None else "populated 1" in events.split("\n")


def _read(path: Path) -> str | None:
    """Read a file of a cgroup; None if there is none, or its cgroup is gone."""
    try:
        return path.read_text(encoding="ascii")
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENODEV, errno.ENOTDIR):
            return None
        raise
