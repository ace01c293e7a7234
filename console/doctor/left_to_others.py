"""What a node leaves to other device plugins, and what these advertise beyond it."""

from collections.abc import Iterator, Sequence
from typing import Final

from console.seen import SeenNode
from policies.contract import WHOLE_GPU_RESOURCE_PREFIXES
from policies.node_state import LEFT_TO_OTHERS
from policies.nodes import NodeRule
from policies.quantity import whole

_INSTANCES: Final = "nvidia.com/mig-"  # one resource for each profile
_COUNTED: Final = ("nvidia.com/gpu", "nvidia.com/gpu.shared")  # others count memory too, or parts of a GPU
# By NVIDIA's GPU feature discovery: how many times its plugin advertises each GPU.
_REPLICAS: Final = "nvidia.com/gpu.replicas"


def gpus_left(rules: Sequence[NodeRule]) -> int | None:
    """Count the GPUs of a node that its entries leave to others, at most; None where they do not say how many."""
    left: set[int] = set()
    decided: set[int] = set()  # by an earlier entry, whatever their model
    for rule in rules:
        if rule.strategy == "none":
            if rule.indexes is None:
                return None
            left |= {*rule.indexes} - decided
        if rule.model == "*":
            if rule.indexes is None:
                break
            decided |= {*rule.indexes}
    return len(left)


def leaves_instances(node: SeenNode) -> bool:
    """Whether a node leaves MIG instances to others."""
    return node.state is not None and any(LEFT_TO_OTHERS in one for one in node.state.skipped)


def advertised_beyond(node: SeenNode, rules: Sequence[NodeRule]) -> Iterator[str]:
    """Say what other device plugins advertise of a node that *rules*, its entries, do not leave to them."""
    left = gpus_left(rules)
    shares_instances = any(gpu.is_instance for gpu in node.gpus) and not leaves_instances(node)
    taken = []
    for name, quantity in sorted(node.allocatable.items()):
        amount = whole(quantity) or 0
        if not amount or not name.startswith(WHOLE_GPU_RESOURCE_PREFIXES):
            continue
        if name.startswith(_INSTANCES):
            taken += [name] if shares_instances else []
        elif name in _COUNTED and leaves_instances(node):  # by NVIDIA's strategy `single` these are called so, too
            continue
        elif left == 0:
            taken.append(name)
        elif left is not None and name in _COUNTED and amount > left * _replicas(node):
            yield f"{node.name} advertises {amount} {name}, and nodes of _cluster.yaml leaves {left} to others"
    if taken:
        yield f"{node.name} advertises {', '.join(taken)} too"


def _replicas(node: SeenNode) -> int:
    return whole(node.labels.get(_REPLICAS, "1")) or 1
