"""
Which container has which ID: the names of the links that the kubelet makes to the containers' logs.

They are `<pod>_<namespace>_<container>-<ID>.log`, whatever the runtime. Nobody else says it without access to the API
server or to the runtime, which would be access to everything. A name that would be too long for a file is cut, and with
it the ID. What such a link leads to, `/var/log/pods/<namespace>_<pod>_<UID>/<container>/<number>.log`, has the names
then, and the UID of the pod, which cgroups have too.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from plugin.usage.cgroups import ContainerId

_SURE_DIGITS = 8  # of an ID, in one pod
_LONGEST_NAME = 255  # of a file; the kubelet cuts what stands before ".log"

_LINK = re.compile(
    r"(?P<pod>[a-z0-9.-]{1,253})_(?P<namespace>[a-z0-9-]{1,63})_(?P<container>[a-z0-9-]{1,63})-(?P<id>[0-9a-f]{64})\.log"
)


@dataclass(frozen=True, slots=True, order=True)
class Container:
    """A container by its names."""

    namespace: str
    pod: str
    container: str


@dataclass(frozen=True, slots=True)
class _Cut:
    """A container whose link's name was cut."""

    pod_uid: str
    first_digits: str  # of its ID, those that are left
    container: Container


@dataclass(frozen=True, slots=True)
class Containers:
    """The containers of a node, those that have ended but not been removed among them."""

    by_id: dict[str, Container] = field(default_factory=dict)
    cut: tuple[_Cut, ...] = ()

    def find(self, one: ContainerId) -> Container | None:
        """Name a container; None where that is not known, as of several in a pod whose IDs were all cut off."""
        if (known := self.by_id.get(one.id)) or not one.id:
            return known
        fitting = [cut for cut in self.cut if cut.pod_uid == one.pod_uid and one.id.startswith(cut.first_digits)]
        sure = {cut.container for cut in fitting if len(cut.first_digits) >= _SURE_DIGITS}
        named = sure or {cut.container for cut in fitting}
        return named.pop() if len(named) == 1 else None


def containers(directory: Path) -> Containers:
    """
    List containers by the links in a directory.

    Raises:
        OSError: If the directory cannot be read.
    """
    links = list(directory.iterdir())
    whole = (_LINK.fullmatch(path.name) for path in links)
    by_id = {one["id"]: Container(one["namespace"], one["pod"], one["container"]) for one in whole if one}
    return Containers(by_id, tuple(_cut(path for path in links if len(path.name) == _LONGEST_NAME)))


def _cut(links: Iterable[Path]) -> Iterator[_Cut]:
    for link in links:
        try:
            log = link.readlink()
        except OSError:  # no link, or gone by now
            continue
        of_pod = log.parent.parent.name.split("_")
        if len(of_pod) == 3:  # noqa: PLR2004 - namespace, pod, UID
            one, name = Container(of_pod[0], of_pod[1], log.parent.name), link.name.removesuffix(".log")
            names = f"{one.pod}_{one.namespace}_{one.container}"
            if name.startswith(names):  # else it can be the link of several, of which the first is there
                yield _Cut(of_pod[2], name[len(names) + 1 :], one)
