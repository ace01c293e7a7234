"""Why a pod that waits for partitions fits on no node: their maker's plugin has them, on nodes of any label."""

from collections.abc import Iterator

from console.explain.subject import Subject
from console.grant import Grant
from console.seen import Seen, SeenNode
from console.words import Shown
from policies.contract import PARTITION
from policies.quantity import whole


def resources(grant: Grant | None) -> tuple[str, ...]:
    """List what a pod asks for of partitions; nothing of other shares."""
    if grant is None or grant.strategy != PARTITION:
        return ()
    return tuple(sorted({str(one.resource) for one in grant.containers.values()}))


def advertising(seen: Seen, asked: tuple[str, ...]) -> list[SeenNode]:
    """List the nodes that know one of the resources which are *asked* for."""
    nodes = (one for one in (*seen.nodes, *seen.others) if any(resource in one.allocatable for resource in asked))
    return sorted(nodes, key=lambda one: one.name)


def of_partitions(node: SeenNode, subject: Subject) -> Iterator[str]:
    """Say what keeps a node from ever taking the pod, as far as it advertises too few."""
    for resource in resources(subject.pod.grant):
        has = whole(node.allocatable.get(resource, "0")) or 0
        needed = _needed(subject, resource)
        if not has:
            yield f"it advertises no {resource}"
        elif has < needed:
            yield f"it advertises {has} {resource} in all, and the pod asks for {needed}"


def advertised(node: SeenNode, asked: tuple[str, ...]) -> str:
    """Say what a node advertises of what is *asked* for: who has it, only its kubelet knows."""
    has = Shown(" and ".join(f"{node.allocatable[one]} {one}" for one in asked if one in node.allocatable))
    return f"it advertises {has} in all, and who has them is not seen here"


def _needed(subject: Subject, resource: str) -> int:
    """Count what the pod asks for at once, at least: init containers that stay count as if they ended."""
    grant, spec = subject.pod.grant, subject.pod.pod.spec
    of_each = {
        name: one.count if one.count is not None else 1
        for name, one in (grant.containers.items() if grant else ())
        if one.resource == resource
    }
    before = max((of_each.get(one.name, 0) for one in spec.init_containers), default=0)
    return max(before, sum(of_each.get(one.name, 0) for one in spec.containers))
