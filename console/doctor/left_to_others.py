"""What a node leaves to other device plugins, and what these advertise beyond it."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from console.doctor.verdict import cut
from console.seen import SeenNode
from console.words import Shown
from policies.cluster import Cluster
from policies.node_state import LEFT_TO_OTHERS
from policies.nodes import NodeRule
from policies.other_devices import is_other_gpu
from policies.quantity import whole

_INSTANCES: Final = "nvidia.com/mig-"  # one resource for each profile
_COUNTED: Final = ("nvidia.com/gpu", "nvidia.com/gpu.shared")  # others count memory too, or parts of a GPU
# By NVIDIA's GPU feature discovery: how many times its plugin advertises each GPU.
_REPLICAS: Final = "nvidia.com/gpu.replicas"
# Of other makers, and of the plugins for SR-IOV and RDMA, whose devices are network cards, however they are called.
_OF_NO_NVIDIA_GPU: Final = re.compile(r"(amd\.com|habana\.ai|([^/]+\.)?intel\.com|openshift\.io|rdma)/")
_OF_NVIDIA: Final = "nvidia.com/"
_AS_SHIPPED: Final = Cluster()


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


def advertised_beyond(node: SeenNode, cluster: Cluster) -> Iterator[str]:
    """Say what other device plugins advertise of a node that `nodes` of *cluster* does not leave to them."""
    left = gpus_left(cluster.nodes_of(node.name))
    shares_instances = any(gpu.is_instance for gpu in node.gpus) and not leaves_instances(node)
    taken = []
    for name, amount in _of_others(node, cluster):
        if name.startswith(_INSTANCES):
            taken += [name] if shares_instances else []
        elif name in _COUNTED and leaves_instances(node):  # by NVIDIA's strategy `single` these are called so, too
            continue
        elif left == 0:
            taken.append(name)
        elif left is not None and name in _COUNTED and amount > left * _replicas(node):
            yield f"{node.name} advertises {amount} {name}, and nodes of _cluster.yaml leaves {left} to others"
    if taken:
        yield f"{node.name} advertises {', '.join(cut(taken))} too"


def _of_others(node: SeenNode, cluster: Cluster) -> Iterator[tuple[str, int]]:
    """Yield by name how many GPUs, or parts of them, a node has that are not called as shares are, now or before."""
    told = {gpu.resource for gpu in node.gpus}
    partitions = {one.resource for table in cluster.partitions.values() for one in table}
    for name, quantity in sorted(node.allocatable.items()):
        is_ours = name in told or cluster.is_ours(name) or _AS_SHIPPED.is_ours(name)
        is_of_none = _OF_NO_NVIDIA_GPU.match(name) or (name in partitions and not name.startswith(_OF_NVIDIA))
        if (amount := whole(quantity)) and is_other_gpu(name) and not is_ours and not is_of_none:
            yield Shown(name), amount


def _replicas(node: SeenNode) -> int:
    return whole(node.labels.get(_REPLICAS, "1")) or 1
