"""Pods that run with a share, and of which nobody sees on which GPU they are."""

from collections.abc import Iterator
from datetime import datetime
from typing import Final, NamedTuple

from console.seen import ALL_NODES, OUR_PODS, Seen, SeenNode, SeenPod
from console.unnamed import unnamed_parts
from console.words import moment
from policies.contract import NODE_LABEL, PARTITION

# A node asks its kubelet every few seconds, and what it said last counts for 30: a program that began later is news.
_SETTLED_SECONDS: Final = 60.0


class OffGpu(NamedTuple):
    """Why nobody sees it, and what to do."""

    why: str
    remedy: str
    page: str


class OffGpus:
    """Those of a cluster as it was seen; nothing of pods whose nodes were not."""

    def __init__(self, seen: Seen) -> None:
        """Collect who is named where."""
        self._at = moment(seen.at)
        self._nodes = {one.name: one for one in seen.nodes}
        self._named = {(one.namespace, one.pod, node.name) for node, _, one in seen.tenants()}
        self._listed = seen.listed
        self._are_listed = not (seen.hidden(ALL_NODES) or seen.hidden(OUR_PODS))

    def of(self, pod: SeenPod) -> OffGpu | None:
        """Say it of a pod; None where its GPU is known, is the business of another plugin, or may be known soon."""
        is_named = (pod.namespace, pod.name, pod.node) in self._named
        if is_named or pod.phase != "Running" or not pod.node or not self._has_begun(pod):
            return None
        node = self._nodes.get(pod.node)
        if node is None and self._are_listed:
            return _without_node(pod) if self._listed and pod.node not in self._listed else _without_part(pod)
        if node is None:
            return None
        return _unnamed(pod) if _tells_all(node) else None

    def _has_begun(self, pod: SeenPod) -> bool:
        """Whether a container of it has run with its share for long enough that its node must have heard."""
        return self._at is not None and any((self._at - at).total_seconds() > _SETTLED_SECONDS for at in _begun(pod))


def without_gpu(seen: Seen) -> Iterator[tuple[SeenPod, OffGpu]]:
    """Yield the pods of which it is to be said, and what."""
    off_gpus = OffGpus(seen)
    yield from ((one, off) for one in seen.pods if (off := off_gpus.of(one)))


def _begun(pod: SeenPod) -> Iterator[datetime]:
    """Yield when containers with a share began that run now: of init containers the kubelet does not tell."""
    grant, status = pod.grant, pod.pod.status
    if grant is None or grant.strategy == PARTITION:
        return
    if not status.container_statuses and any(one.name in grant.containers for one in pod.pod.spec.containers):
        yield from filter(None, [moment(pod.pod.metadata.creation_timestamp)])
    for one in status.container_statuses:
        if one.name in grant.containers and one.state.running:
            yield from filter(None, [moment(one.state.running.get("startedAt"))])


def _tells_all(node: SeenNode) -> bool:
    """Whether a node says now who is on its GPUs, of each of them."""
    return node.state is not None and not node.trouble and all(unnamed_parts(gpu) is not None for gpu in node.gpus)


def _without_part(pod: SeenPod) -> OffGpu:
    return OffGpu(
        why=f"no part of gpu-share runs on its node {pod.node}: nobody sees which GPU it has, or what it takes",
        remedy=f"kubectl label node {pod.node} {NODE_LABEL}=true, or delete the pod, so that another node takes it",
        page="operations.md#drain-a-node",
    )


def _without_node(pod: SeenPod) -> OffGpu:
    return OffGpu(
        why=f"its node {pod.node} is gone: there is no such node any more, and nobody sees whether it still runs",
        remedy="Kubernetes deletes such a pod within a few minutes; if it does not, and the machine is off: "
        f"kubectl -n {pod.namespace} delete pod {pod.name} --force",
        page="operations.md#drain-a-node",
    )


def _unnamed(pod: SeenPod) -> OffGpu:
    return OffGpu(
        why=f"its node {pod.node} names it on no GPU: nobody sees which one it has, or what it takes",
        remedy="nvidia-smi on the node lists its processes; delete the pod, and the next one is given a GPU anew",
        page="operations.md#drain-a-node",
    )
