"""The nodes as they were seen: what Kubernetes says of each, and beside it what the node says of itself."""

from collections.abc import Collection, Iterable, Mapping

import msgspec

from console.objects import Node
from console.seen import SeenNode, Unseen
from policies.contract import NODE_LABEL
from policies.node_state import NodeState


def seen_nodes(
    nodes: Iterable[Node], states: Mapping[str, NodeState | Unseen], *, hidden: Unseen | None = None
) -> tuple[SeenNode, ...]:
    """
    Put nodes together with what they say; those that have nothing to do with shares are left out.

    *hidden* is why none could be asked.
    """
    seen: dict[str, SeenNode] = {}
    for node in nodes:
        name = str(node.metadata.name)
        is_labelled = _is_labelled(node)
        if is_labelled or name in states:
            seen[name] = _seen_node(node, labelled=is_labelled, silent=hidden)
    for name, state in states.items():
        known = seen.get(name) or SeenNode(name=name)
        heard = {"state": state} if isinstance(state, NodeState) else {"silent": state}
        seen[name] = msgspec.structs.replace(known, **heard)
    return tuple(seen[name] for name in sorted(seen))


def other_nodes(nodes: Iterable[Node], states: Collection[str]) -> tuple[SeenNode, ...]:
    """Keep what Kubernetes says of nodes that have nothing to do with shares, where they advertise devices."""
    kept = (one for one in nodes if not (_is_labelled(one) or one.metadata.name in states) and _has_devices(one))
    return tuple(_seen_node(one, labelled=False, silent=None) for one in kept)


def _is_labelled(node: Node) -> bool:
    return node.metadata.labels.get(NODE_LABEL) == "true"


def _has_devices(node: Node) -> bool:
    """Whether some device plugin knows the node: only resources of Kubernetes itself have no domain, or its own."""
    domains = (resource.rpartition("/")[0] for resource in node.status.allocatable)
    return any(one and not one.endswith("kubernetes.io") for one in domains)


def _seen_node(node: Node, *, labelled: bool, silent: Unseen | None) -> SeenNode:
    ready = [condition.status == "True" for condition in node.status.conditions if condition.type == "Ready"]
    return SeenNode(
        name=node.metadata.name,
        labelled=labelled,
        ready=ready[0] if ready else None,
        unschedulable=node.spec.unschedulable,
        taints=node.spec.taints,
        conditions=node.status.conditions,
        kubelet=node.status.node_info.kubelet_version,
        runtime=node.status.node_info.container_runtime_version,
        labels=node.metadata.labels,
        capacity=node.status.capacity,
        allocatable=node.status.allocatable,
        silent=silent,
    )
