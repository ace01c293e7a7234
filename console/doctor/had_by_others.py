"""What other device plugins and DRA drivers have of a node beyond what it leaves to them."""

import re
from collections.abc import Collection, Iterator, Sequence
from math import inf
from typing import Final

import msgspec

from console.doctor.left_to_others import MOST_INSTANCES, Had, Left, left_by
from console.doctor.nvidia_dra_devices import DRA_DEVICES, published
from console.doctor.verdict import cut
from console.dra_objects import ResourceSlice
from console.seen import SeenNode
from console.words import Shown
from policies.cluster import Cluster
from policies.other_devices import is_other_gpu
from policies.quantity import whole

_INSTANCES: Final = "nvidia.com/mig-"  # one resource for each profile
_GPUS: Final = ("nvidia.com/gpu", "nvidia.com/gpu.shared")
_SLICES: Final = re.compile(r"([1-7])[cg]\.")  # at the beginning of a profile
# By NVIDIA's GPU feature discovery: how many times its plugin advertises each GPU, and what it makes of MIG.
_REPLICAS: Final = "nvidia.com/gpu.replicas"
_MIG_STRATEGY: Final = "nvidia.com/mig.strategy"  # not there for none
_STRATEGIES: Final = ("none", "single", "mixed")
_PRODUCT: Final = "nvidia.com/gpu.product"
_WITH_PROFILE: Final = "MIG-"  # and the profile, at the end of the product, by the strategy single
_NO_PROFILE: Final = "INVALID"  # in its place, unless all GPUs are in MIG mode and have instances of one profile
# Of other makers, and of the plugins for SR-IOV and RDMA, whose devices are network cards, however they are called.
_OF_NO_NVIDIA_GPU: Final = re.compile(r"(amd\.com|habana\.ai|([^/]+\.)?intel\.com|openshift\.io|rdma)/")
_OF_NVIDIA: Final = "nvidia.com/"
_AS_SHIPPED: Final = Cluster()


class Beyond(msgspec.Struct, frozen=True, kw_only=True):
    """What others have of a node that it does not leave to them, or may have: a sentence each."""

    found: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()


def had_beyond(node: SeenNode, cluster: Cluster, slices: Sequence[ResourceSlice]) -> Beyond:
    """Say what others have of a node beyond what it leaves to them, by what it says and by `nodes` of *cluster*."""
    left = left_by(node, cluster)
    advertised = [*_advertised(node, cluster, left)]
    devices = [device for one in slices if one.spec.node_name == node.name for device in one.spec.devices]
    of_driver = [*published(devices, node, left)]
    taken = [one.what for one in advertised if one.amount > one.perhaps == 0]
    found = [f"{node.name} advertises {', '.join(cut(taken))} too"] if taken else []
    if any(one.amount > one.perhaps == 0 for one in of_driver):
        found.append(f"{node.name} has {DRA_DEVICES} too")
    for had, verb in ((advertised, "advertises"), (of_driver, "has")):
        beyond = (one for one in had if one.amount > one.perhaps > 0)
        found += [f"{node.name} {verb} {one.amount} {one.what}, and {left.said}" for one in beyond]
    doubts = [one.doubt(node.name) for one in (*advertised, *of_driver) if one.surely < one.amount <= one.perhaps]
    return Beyond(found=tuple(found), doubts=tuple(doubts))


def _advertised(node: SeenNode, cluster: Cluster, left: Left) -> Iterator[Had]:
    had = [*_of_others(node, cluster)]
    instances = {name: amount for name, amount in had if name.startswith(_INSTANCES)}
    strategies = _strategies(node, has_profiles=bool(instances))
    for name, amount in had:
        if name in _GPUS:
            yield _several_times(name, amount, _replicas(node, _REPLICAS), *_as_gpus(strategies, node, left))
        elif name not in instances:  # it may be memory, parts of a GPU, or GPUs of VMs
            surely, perhaps = left.of_vms
            yield Had(what=name, amount=amount, surely=surely, perhaps=inf if perhaps else 0)
    if left.shares_instances:
        yield from _instances(node, instances, left)


def _instances(node: SeenNode, advertised: dict[str, int], left: Left) -> Iterator[Had]:
    """Count instances by profile, and where no profile has too many, the slices that they take together."""
    each, at_least, at_most = [], 0, 0
    for name, amount in advertised.items():
        slices = _slices(name.removeprefix(_INSTANCES))
        times = _replicas(node, f"{name.removesuffix('.shared')}.replicas")
        fit = MOST_INSTANCES // slices
        each.append(_several_times(name, amount, times, left.in_mig_mode * fit, left.perhaps_in_mig_mode * fit))
        at_least += slices * (-(-amount // times) if times else 1)
        at_most += slices * -(-amount // (times or 1))
    yield from each
    if len(each) > 1 and not any(one.amount > one.perhaps for one in each):
        most = left.perhaps_in_mig_mode * MOST_INSTANCES
        yield Had(
            what="slices of MIG instances",
            amount=at_most,
            surely=left.in_mig_mode * MOST_INSTANCES,
            perhaps=most if at_least > most else inf,
        )


def _several_times(what: str, amount: int, times: int | None, surely: float, perhaps: float) -> Had:
    """Count what a plugin may make so many of each of, if that is known."""
    if times:
        return Had(what=what, amount=amount, surely=surely * times, perhaps=perhaps * times)
    why = ", since the number of replicas of each is not known" if amount > perhaps else ""
    return Had(what=what, amount=amount, surely=surely, perhaps=inf if perhaps else 0, why=why)


def _as_gpus(strategies: Collection[str], node: SeenNode, left: Left) -> tuple[float, float]:
    """
    Count what NVIDIA's plugin calls GPUs of those that are left, by any of *strategies*: surely at most, and perhaps.

    Those in MIG mode are GPUs too (none), their instances are where it sees no other GPU (single), or neither (mixed):
    https://github.com/NVIDIA/k8s-device-plugin, internal/rm/device_map.go.
    """
    instances, perhaps_instances = _called_gpus(node.labels.get(_PRODUCT, ""), left)
    counted = {
        "none": (left.gpus + left.in_mig_mode, left.gpus + left.perhaps_as_gpus),
        "single": (max(left.gpus, instances), max(left.gpus, perhaps_instances)),
        "mixed": (left.gpus, left.gpus),
    }
    surely = min(counted[one][0] for one in strategies)
    return 0 if surely == inf else surely, max(counted[one][1] for one in strategies)


def _strategies(node: SeenNode, *, has_profiles: bool) -> Collection[str]:
    """Name the strategies for MIG that NVIDIA's plugin may have: a resource for each profile is that of one alone."""
    if has_profiles:
        return ("mixed",)
    told = node.labels.get(_MIG_STRATEGY, "none" if _REPLICAS in node.labels else "")
    return (told,) if told in _STRATEGIES else _STRATEGIES


def _called_gpus(product: str, left: Left) -> tuple[float, float]:
    """Count the instances that the strategy single calls GPUs of those that are left: surely at most, and perhaps."""
    _, tells_some, profile = product.rpartition(_WITH_PROFILE)
    if product and not tells_some:
        return 0, 0
    each = MOST_INSTANCES // _slices(profile)
    # Of several profiles a plugin that sees all has none, and one that sees less may have any.
    surely = 0 if profile == _NO_PROFILE else left.in_mig_mode * each
    return surely, (left.perhaps_in_mig_mode if tells_some else left.perhaps_as_gpus) * each


def _of_others(node: SeenNode, cluster: Cluster) -> Iterator[tuple[str, int]]:
    """Yield by name how many GPUs, or parts of them, a node has that are not called as shares are, now or before."""
    told = {gpu.resource for gpu in node.gpus}
    partitions = {one.resource for table in cluster.partitions.values() for one in table}
    for name, quantity in sorted(node.allocatable.items()):
        is_ours = name in told or cluster.is_ours(name) or _AS_SHIPPED.is_ours(name)
        is_of_none = _OF_NO_NVIDIA_GPU.match(name) or (name in partitions and not name.startswith(_OF_NVIDIA))
        if (amount := whole(quantity)) and is_other_gpu(name) and not is_ours and not is_of_none:
            yield Shown(name), amount


def _slices(profile: str) -> int:
    """Say how many slices of a GPU an instance takes at least."""
    found = _SLICES.match(profile)
    return int(found[1]) if found else 1


def _replicas(node: SeenNode, label: str) -> int | None:
    """Say what a label says; None where there is none, or 0, which is said where the plugin's own word is not known."""
    return whole(node.labels.get(label, "")) or None
