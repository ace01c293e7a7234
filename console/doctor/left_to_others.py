"""What a node leaves to others, and what other device plugins and DRA drivers have of it beyond that."""

import re
from collections.abc import Iterator, Sequence
from math import inf
from typing import Final

import msgspec

from console.doctor.verdict import cut
from console.dra_objects import Device, ResourceSlice
from console.seen import SeenNode
from console.words import Shown
from policies.cluster import Cluster
from policies.node_state import LEFT_TO_OTHERS
from policies.nodes import NodeRule
from policies.other_devices import is_other_gpu
from policies.quantity import whole

NVIDIA_DRA_DRIVER: Final = "gpu.nvidia.com"  # https://github.com/NVIDIA/k8s-dra-driver-gpu
_MOST_INSTANCES: Final = 7  # of one GPU in MIG mode
_INSTANCES: Final = "nvidia.com/mig-"  # one resource for each profile
_GPUS: Final = "nvidia.com/gpu"
_SEVERAL_TIMES: Final = "nvidia.com/gpu.shared"  # by time-slicing
# By NVIDIA's GPU feature discovery: how many times its plugin advertises each GPU, and what it makes of MIG.
_REPLICAS: Final = "nvidia.com/gpu.replicas"
_MIG_STRATEGY: Final = "nvidia.com/mig.strategy"
# Of other makers, and of the plugins for SR-IOV and RDMA, whose devices are network cards, however they are called.
_OF_NO_NVIDIA_GPU: Final = re.compile(r"(amd\.com|habana\.ai|([^/]+\.)?intel\.com|openshift\.io|rdma)/")
_OF_NVIDIA: Final = "nvidia.com/"
_AS_SHIPPED: Final = Cluster()


class Beyond(msgspec.Struct, frozen=True, kw_only=True):
    """What others have of a node that it does not leave to them, or may have: a sentence each."""

    found: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()


class _Left(msgspec.Struct, frozen=True, kw_only=True):
    """What a node leaves to others; a number that nobody knows is infinite."""

    gpus: float  # that are not in MIG mode
    listed: float  # the same by `nodes` alone, where a GPU may be one that NVML does not see: it can be a VM's
    in_mig_mode: int

    @property
    def said(self) -> str:
        parts = [str(self.gpus)] if self.gpus else []
        parts += [f"{self.in_mig_mode} in MIG mode"] if self.in_mig_mode else []
        return f"nodes of _cluster.yaml leaves {' and '.join(parts)} to others"


class _Had(msgspec.Struct, frozen=True, kw_only=True):
    """
    Something that another has of a node.

    Who sees what is left alone has at most *surely* of it, or *perhaps* where it depends on what is not known.
    """

    what: str
    amount: int
    surely: float
    perhaps: float


def gpus_listed(rules: Sequence[NodeRule]) -> int | None:
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


def had_beyond(node: SeenNode, cluster: Cluster, slices: Sequence[ResourceSlice]) -> Beyond:
    """Say what others have of a node beyond what it leaves to them, by what it says and by `nodes` of *cluster*."""
    left = _left(node, cluster)
    advertised = [*_advertised(node, cluster, left)]
    devices = [device for one in slices if one.spec.node_name == node.name for device in one.spec.devices]
    published = [*_published(devices, node, left)]
    taken = [one.what for one in advertised if one.amount > one.perhaps == 0]
    found = [f"{node.name} advertises {', '.join(cut(taken))} too"] if taken else []
    if any(one.amount > one.perhaps == 0 for one in published):
        found.append(f"{node.name} has devices of the DRA driver {NVIDIA_DRA_DRIVER} too")
    for had, verb in ((advertised, "advertises"), (published, "has")):
        beyond = (one for one in had if one.amount > one.perhaps > 0)
        found += [f"{node.name} {verb} {one.amount} {one.what}, and {left.said}" for one in beyond]
    doubts = [
        f"nobody knows whether the {one.amount} {one.what} of {node.name} are of GPUs that are shared"
        for one in (*advertised, *published)
        if one.surely < one.amount <= one.perhaps
    ]
    return Beyond(found=tuple(found), doubts=tuple(doubts))


def _left(node: SeenNode, cluster: Cluster) -> _Left:
    number = gpus_listed(cluster.nodes_of(node.name))
    listed = inf if number is None else number
    seen = node.state.left_to_others if node.state else None  # None from an older plugin, too
    skipped = node.state.skipped if node.state else ()
    return _Left(
        gpus=listed if seen is None else seen,
        listed=seen if seen is not None and listed == inf else listed,
        in_mig_mode=sum(LEFT_TO_OTHERS in one for one in skipped),
    )


def _shares_instances(node: SeenNode) -> bool:
    return any(gpu.is_instance for gpu in node.gpus)


def _advertised(node: SeenNode, cluster: Cluster, left: _Left) -> Iterator[_Had]:
    for name, amount in _of_others(node, cluster):
        if name.startswith(_INSTANCES):
            if _shares_instances(node):
                times = _replicas(node, f"{name.removesuffix('.shared')}.replicas")
                instances = left.in_mig_mode * _MOST_INSTANCES * times
                yield _Had(what=name, amount=amount, surely=instances, perhaps=instances)
        elif name in (_GPUS, _SEVERAL_TIMES):
            surely, perhaps = (most * _replicas(node, _REPLICAS) for most in _as_gpus(node, left))
            is_uncounted = name == _SEVERAL_TIMES and _REPLICAS not in node.labels and perhaps
            yield _Had(what=name, amount=amount, surely=surely, perhaps=inf if is_uncounted else perhaps)
        else:  # it may be memory, parts of a GPU, or GPUs of VMs
            most = left.listed + left.in_mig_mode
            yield _Had(what=name, amount=amount, surely=0 if most == inf else most, perhaps=inf if most else 0)


def _as_gpus(node: SeenNode, left: _Left) -> tuple[float, float]:
    """
    Count what NVIDIA's plugin calls GPUs of those that are left: surely at most, and perhaps.

    By its strategy for MIG these are GPUs in MIG mode too (none), their instances where it sees no other GPU (single),
    or neither (mixed): https://github.com/NVIDIA/k8s-device-plugin, internal/rm/device_map.go.
    """
    if left.gpus == inf:
        return 0, inf
    instances = left.in_mig_mode * _MOST_INSTANCES
    match node.labels.get(_MIG_STRATEGY) if left.in_mig_mode else "mixed":
        case "mixed":
            return left.gpus, left.gpus
        case "single":
            return max(left.gpus, instances), max(left.gpus, instances)
        case _:
            as_none = left.gpus + left.in_mig_mode
            return as_none, max(as_none, instances)


def _published(devices: Sequence[Device], node: SeenNode, left: _Left) -> Iterator[_Had]:
    """Count the devices of NVIDIA's DRA driver: those of what is shared, and those that may be."""
    shared = {gpu.uuid for gpu in node.gpus}
    told = [(one.attribute("type"), one.attribute("uuid")) for one in devices]
    what = f"devices of the DRA driver {NVIDIA_DRA_DRIVER}"
    yield _Had(what=what, amount=sum(uuid in shared for _, uuid in told), surely=0, perhaps=0)
    # A node that is silent names no GPU that it shares, nor is that of an instance named.
    are_named = bool(shared) and not _shares_instances(node)
    instances = sum(kind == "mig" and not uuid for kind, uuid in told)
    gpus = sum(kind not in ("mig", "vfio") and not (uuid and are_named) for kind, uuid in told)  # vfio: a GPU once more
    most = left.gpus + left.in_mig_mode
    yield _Had(what=what, amount=gpus, surely=0 if most == inf else most, perhaps=most)
    if _shares_instances(node):
        surely = left.in_mig_mode * _MOST_INSTANCES
        # Those that it can make may overlap.
        yield _Had(what=f"MIG {what}", amount=instances, surely=surely, perhaps=inf if surely else 0)


def _of_others(node: SeenNode, cluster: Cluster) -> Iterator[tuple[str, int]]:
    """Yield by name how many GPUs, or parts of them, a node has that are not called as shares are, now or before."""
    told = {gpu.resource for gpu in node.gpus}
    partitions = {one.resource for table in cluster.partitions.values() for one in table}
    for name, quantity in sorted(node.allocatable.items()):
        is_ours = name in told or cluster.is_ours(name) or _AS_SHIPPED.is_ours(name)
        is_of_none = _OF_NO_NVIDIA_GPU.match(name) or (name in partitions and not name.startswith(_OF_NVIDIA))
        if (amount := whole(quantity)) and is_other_gpu(name) and not is_ours and not is_of_none:
            yield Shown(name), amount


def _replicas(node: SeenNode, label: str) -> int:
    return whole(node.labels.get(label, "1")) or 1
