"""Pods of gpu-share whose images have one name, and are different builds: by the IDs that the kubelets tell."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from console.doctor.parts import component_of
from console.doctor.verdict import cut
from console.objects import NodeInfo, Pod
from console.seen import Seen

_DIGEST: Final = re.compile(r"(?:^|[@/])(?:sha256:)?([0-9a-f]{64})$|sha256:([0-9a-f]+)$")
_SHOWN: Final = 12  # digits of a digest, as container runtimes list images


class Build(NamedTuple):
    """What a pod runs."""

    pod: str  # and its node
    image: str  # its name
    digest: str  # without what it is by
    is_of_registry: bool  # it is that of a manifest or index then, and else that of a configuration
    runtime: str  # of its node; empty if that is not known, likewise the next one
    architecture: str
    node: str

    @property
    def alike(self) -> tuple[object, ...]:
        """Name those whose digests are of the same thing: if they differ, the builds do."""
        place = (self.runtime, self.architecture) if self.architecture else ("", self.node)
        return (self.image, self.is_of_registry, *place)


def other_builds(pods: Iterable[Pod], seen: Seen) -> tuple[list[str], list[str]]:
    """
    Say which of *pods* run another build of an image of the same name, and which may do.

    Digests of different architectures differ for one name, and nothing is said of these. Where one image was pulled and
    another one imported, by different runtimes, or on nodes that cannot be seen, they may differ as well: those may do.
    """
    by_image: dict[str, list[Build]] = defaultdict(list)
    for pod in pods:
        for one in _builds(pod, seen.node_info):
            by_image[one.image].append(one)
    certain: list[str] = []
    possible: list[str] = []
    for _, made in sorted(by_image.items()):
        differ = _different(made)
        certain += differ
        possible += [] if differ else _doubtful(made)
    return certain, possible


def _builds(pod: Pod, nodes: dict[str, NodeInfo]) -> Iterable[Build]:
    images = {one.name: str(one.image) for one in pod.spec.containers}
    node = str(pod.spec.node_name)
    info = nodes.get(node, NodeInfo())
    for one in pod.status.container_statuses:
        found = _DIGEST.search(one.image_id)
        if one.name == component_of(pod) and one.name in images and found:
            yield Build(
                pod=f"{pod.metadata.name} on {node}",
                image=images[one.name],
                digest=found[1] or found[2],
                is_of_registry="@" in one.image_id,
                runtime=info.container_runtime_version.partition(":")[0],
                architecture=str(info.architecture),
                node=node,
            )


def _different(made: Sequence[Build]) -> list[str]:
    """Say who runs which, of those that differ for certain."""
    by_kind: dict[object, dict[str, list[Build]]] = defaultdict(lambda: defaultdict(list))
    for one in made:
        by_kind[one.alike][one.digest].append(one)
    differ = {digest for digests in by_kind.values() if len(digests) > 1 for digest in digests}
    return [
        f"{_names(one for one in made if one.digest == digest)} run {made[0].image} with the ID {_short(digest)}"
        for digest in sorted(differ)
    ]


def _doubtful(made: Sequence[Build]) -> list[str]:
    """Say whose digest is not that of most, of those for which one could be expected."""
    told = []
    known = {one.architecture for one in made}
    elsewhere = ", or builds for different architectures" if "" in known else ""
    groups = [made] if "" in known else [[one for one in made if one.architecture == name] for name in sorted(known)]
    for group in groups:
        most, _ = Counter(one.digest for one in group).most_common(1)[0]
        others = [one for one in group if one.digest != most]
        if others:
            same = _names(one for one in group if one.digest == most)
            told.append(
                f"{_names(others)} have the name {made[0].image}, but not the ID, of {same}: "
                f"they may be different builds{elsewhere}, or one that was pulled here and imported there"
            )
    return told


def _names(made: Iterable[Build]) -> str:
    return ", ".join(cut(sorted(one.pod for one in made)))


def _short(digest: str) -> str:
    return f"sha256:{digest[:_SHOWN]}"
