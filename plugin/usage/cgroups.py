"""
In which container a process is, by its cgroup: what kubelets and container runtimes call the cgroups of pods.

A process can move itself into cgroups below its container's, and call these as it likes. So the outermost pod of a path
counts, and within it the first container.

Of a thread that is ending or has ended, the kernel says "/" in each hierarchy of version 1, wherever it was. A process
lives on without its main thread, so one of the others says it then.
"""

import os
import re
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple

_LARGEST_BYTES: Final = 64 * 1024
_MOST_THREADS: Final = 64  # that are asked: a tenant can keep any number of threads that have ended
_EXITING: Final = 0x4  # PF_EXITING, of the kernel's include/linux/sched.h
_FLAGS: Final = 6  # where they stand in /proc/<PID>/stat, behind the name

_UID = r"(?:[0-9a-f]{32}|[0-9a-f]{8}(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12})"  # of a static pod; of any other
_PARENTS = r"(?:[0-9A-Za-z_.-]{0,255}-)?"  # such as kubepods-burstable, below what --cgroup-root of the kubelet names
_POD = re.compile(rf"{_PARENTS}pod(?P<uid>{_UID})(?:\.slice)?")
_CONTAINER = re.compile(r"(?:cri-containerd-|crio-|docker-|libpod-)?(?P<id>[0-9a-f]{64})(?:\.scope)?")
# containerd under the driver cgroupfs, and a kubelet under systemd.
_BOTH = re.compile(rf"{_PARENTS}pod(?P<uid>{_UID})\.slice:cri-containerd:(?P<id>[0-9a-f]{{64}})")


class ContainerId(NamedTuple):
    """A container of a pod."""

    pod_uid: str  # as the API writes it; empty where no pod is recognised
    id: str  # of the runtime; empty where no container is recognised


UNTOLD: Final = ContainerId("", "")  # in some container or none


def container_id(text: str) -> ContainerId | None:
    """Read /proc/<PID>/cgroup, of version 1 or 2: the container that the process is in; None for one of the node."""
    for line in text.split("\n"):  # nothing else ends one: a process names cgroups below its container's
        _, _, controllers_and_path = line.partition(":")
        _, is_a_line, path = controllers_and_path.partition(":")
        if is_a_line and (found := _in_path(path)) is not None:
            return found
    return None


def container_of(pid: int, proc: Path = Path("/proc")) -> ContainerId | None:
    """
    Name the container that a process is in, as `container_id` does; UNTOLD where the kernel does not say it any more.

    Raises:
        FileNotFoundError, ProcessLookupError: If there is no such process any more.
        OSError: If it may not be seen.
    """
    process = proc / str(pid)
    told, found = _told(process)
    if told:
        return found
    with os.scandir(process / "task") as threads:
        for thread in islice(threads, _MOST_THREADS):
            with suppress(FileNotFoundError, ProcessLookupError):
                told, found = _told(Path(thread.path))
                if told:
                    return found
    return UNTOLD


def _told(task: Path) -> tuple[bool, ContainerId | None]:
    """Read in which container a process or a thread is, and whether the kernel says that of it."""
    text = _read(task / "cgroup")
    found = container_id(text)
    # In this order: what is not ending now was not when its cgroups were read.
    return found is not None or not (_has_version_1(text) and _is_ending(task)), found


def _has_version_1(text: str) -> bool:
    return any(line and not line.startswith("0::") for line in text.split("\n"))


def _is_ending(task: Path) -> bool:
    fields = _read(task / "stat").rpartition(")")[2].split()
    return bool(int(fields[_FLAGS]) & _EXITING)


def _read(path: Path) -> str:
    with path.open("rb") as file:
        return file.read(_LARGEST_BYTES).decode(errors="replace")


def _in_path(path: str) -> ContainerId | None:
    steps = path.split("/")
    for step, following in zip(steps, [*steps[1:], ""], strict=True):
        if both := _BOTH.fullmatch(step):
            return ContainerId(_uid(both), both["id"])
        if pod := _POD.fullmatch(step):
            container = _CONTAINER.fullmatch(following)
            return ContainerId(_uid(pod), container["id"] if container else "")
    return UNTOLD if "kubepods" in path else None


def _uid(found: re.Match[str]) -> str:
    return found["uid"].replace("_", "-")
