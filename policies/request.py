"""What a pod asks for: its annotations and limits, brought to one count per container, of vGPUs or of whole GPUs."""

from collections.abc import Callable, Mapping
from functools import partial

import msgspec

from policies.cluster import Cluster
from policies.contract import (
    CONTAINER_ANNOTATION_PREFIX,
    DEFAULT_CONTAINER_ANNOTATION,
    PARTITION,
    SHARE_ANNOTATION,
    SHARE_ANNOTATION_ALIAS,
    WHOLE,
)
from policies.default_container import default_container
from policies.denial import DeniedError, Findings
from policies.device import chosen_device
from policies.errors import ShareError, quoted
from policies.kind import PLAIN_RESOURCES, Kind, device_resources, kind_of, parts_of
from policies.other_devices import is_other_gpu
from policies.partitions import choices, counted
from policies.pod import Pod, Resources, Slot, named
from policies.policy import EffectivePolicy
from policies.quantity import whole
from policies.share import Share
from policies.sizes import is_sized, read_size


class Ask(msgspec.Struct, frozen=True, gc=False):
    """What one container asks for."""

    slot: Slot
    kind: Kind
    vgpus: int  # or whole GPUs, if that is the kind; rounded up, if it is asked as a share
    share: Share | None  # None: asked as a limit
    key: str  # the annotation or the resource by which it is asked, for messages
    limit: str  # the resource of its own limits; empty if they name none


def asks_for_share(pod: Pod, containers: list[Slot], cluster: Cluster) -> bool:
    """Whether the pod has an annotation or a resource of ours. Every other pod is admitted unchanged."""
    annotations = pod.metadata.annotations
    if annotations:
        if SHARE_ANNOTATION in annotations or SHARE_ANNOTATION_ALIAS in annotations:
            return True
        if any(key.startswith(CONTAINER_ANNOTATION_PREFIX) for key in annotations):
            return True
    return any(
        cluster.is_ours(name) and whole(quantity) != 0
        for slot in containers
        if (resources := device_resources(slot))
        for amounts in (resources.limits, resources.requests)
        for name, quantity in (amounts or {}).items()
    )


def read_asks(
    pod: Pod, containers: list[Slot], found: Findings, *, cluster: Cluster, policy: EffectivePolicy
) -> tuple[Kind, list[Ask]]:
    """
    Bring annotations and limits together; *found* takes the denials and warnings.

    A share that is malformed, names no container, or disagrees with another request of the pod is denied.

    Returns:
        What all shares of the pod are made of, and what each container asks of it.
    """
    parts = parts_of(cluster, policy)
    limited = [slot for slot in containers if device_resources(slot)]  # of most pods none
    shares = _shares(pod, containers, found, is_ours=lambda name: cluster.is_ours(name) or parts.is_named_by(name))
    try:
        device = chosen_device(pod, limited, cluster=cluster, policy=policy)
        of_device = parts if device == parts.device else parts_of(cluster, policy, device)
        kind = kind_of(of_device, limited, shares, cluster=cluster, policy=policy)
    except DeniedError as error:
        found.add(error)
        return parts, []
    asks = []
    for slot in containers:
        limit = None
        if limited and (resources := device_resources(slot)):
            _deny_other_resources(slot, cluster, kind, policy, found)
            limit = _limit(slot, resources, kind, found)
        key, share = shares.get(slot.name, ("", None))
        if share is None:
            if limit is not None and limit.count:
                asks.append(Ask(slot, kind, limit.count, None, limit.resource, limit.resource))
        elif (vgpus := kind.holding(share)) is None:
            found.add(_no_partition(slot, share, kind, policy))
        else:
            asks.append(Ask(slot, kind, vgpus, share, key, limit.resource if limit else ""))
            if limit is not None and limit.count != vgpus:
                found.add(_disagreeing(asks[-1], limit))
    return kind, asks


def _disagreeing(ask: Ask, limit: "_Limit") -> DeniedError:
    """Deny a share by annotation beside another one by the container's limit."""
    what = (
        f"{named(ask.slot)} asks for {ask.share} by {ask.key}, that is {ask.kind.counted(ask.vgpus)}, "
        f"but its limit {limit.resource} says {ask.kind.counted(limit.count)}"
    )
    return DeniedError("ConflictingRequest", what, "Remove the limit, or make the two agree")


def _no_partition(slot: Slot, share: Share, kind: Kind, policy: EffectivePolicy) -> DeniedError:
    """Deny a share that no partition holds."""
    what = f"{named(slot)} asks for {share} of a GPU, and no partition of {quoted(kind.partition)} holds that"
    return DeniedError("ShareAboveMaximum", what, f"Ask for {choices(kind.partitions)}", by=policy.source("partition"))


def _shares(
    pod: Pod, containers: list[Slot], found: Findings, *, is_ours: Callable[[str], bool]
) -> dict[str, tuple[str, Share]]:
    """By container: the annotation and the share it says."""
    annotations = pod.metadata.annotations or {}
    names = {slot.name for slot in containers}
    shares: dict[str, tuple[str, Share]] = {}
    for key, text in annotations.items():
        is_bare = key in (SHARE_ANNOTATION, SHARE_ANNOTATION_ALIAS)
        if not is_bare and not key.startswith(CONTAINER_ANNOTATION_PREFIX):
            continue
        try:
            share = Share.parse(text)
        except ShareError as error:
            what = f"The annotation {quoted(key, 80)} says {quoted(text)}, which {error.reason}"
            found.deny("ShareMalformed", what, 'Write a share such as "0.2", "20%" or "1"')
            continue
        if is_bare:
            name = default_container(annotations, containers, share, is_ours=is_ours, warnings=found.warnings)
            named_by = DEFAULT_CONTAINER_ANNOTATION
        else:
            name, named_by = key.removeprefix(CONTAINER_ANNOTATION_PREFIX), quoted(key, 80)
        if name not in names:
            known = ", ".join(quoted(slot.name, 20) for slot in containers[:3]) or "it has none"
            what = f"{named_by} names the container {quoted(name)}, which is not in the pod"
            found.deny("UnknownContainer", what, f"Name one of the pod's containers: {known}")
            continue
        other, said = shares.setdefault(name, (key, share))
        if said != share:
            what = f"Container {quoted(name)} is given {said} by {quoted(other, 60)} and {share} by {quoted(key, 60)}"
            found.deny("ConflictingRequest", what, "Keep one of the two")
    return shares


class _Limit(msgspec.Struct, frozen=True, gc=False):
    """What the limits of a container ask for."""

    resource: str
    count: int  # of vGPUs or whole GPUs, however the limit is written; may be 0


def _limit(slot: Slot, resources: Resources, kind: Kind, found: Findings) -> _Limit | None:
    """Read how many the container's own limits ask for; None if they do not name the kind."""
    try:
        limit = _only(slot, resources.limits, kind)
        requested = _only(slot, resources.requests, kind)
    except DeniedError as error:
        found.add(error)
        return None
    if requested is not None and requested.count != (limit.count if limit else 0):
        says = limit.count if limit and limit.count else "nothing"
        what = f"{named(slot)} requests {requested.count} {requested.resource} but its limit says {says}"
        found.deny("ConflictingRequest", what, "Set the limit alone; the request follows it")
    return limit


def _only(slot: Slot, amounts: Mapping[str, str | int | float] | None, kind: Kind) -> _Limit | None:
    """Read the one amount that is of this kind."""
    named_ones = {name: quantity for name, quantity in (amounts or {}).items() if kind.is_named_by(name)}
    if len(named_ones) > 1:
        named_ones = {name: quantity for name, quantity in named_ones.items() if whole(quantity) != 0}
    if len(named_ones) > 1:
        what = f"{named(slot)} asks for {' and '.join(sorted(named_ones))}"
        raise DeniedError("ConflictingRequest", what, "Keep one of them")
    for name, quantity in named_ones.items():
        return _Limit(name, _count(slot, name, quantity, kind))
    return None


def _count(slot: Slot, name: str, quantity: str | float, kind: Kind) -> int:
    count = whole(quantity)
    if count is None:
        counts = {WHOLE: "GPUs", PARTITION: "whole devices"}.get(kind.strategy, "whole vGPUs")
        what = f"{named(slot)} asks for {quoted(str(quantity))} of {name}, which counts {counts}"
        raise DeniedError("ShareMalformed", what, f'Ask for a share by the annotation {SHARE_ANNOTATION}: "0.2"')
    if kind.strategy == PARTITION:
        return _of_partitions(slot, name, count, kind)
    size = kind.size(name)
    if size is None or count == 0:
        return count
    units = size.units(kind.per_gpu)
    if count > 1 or units is None:
        what = f"{named(slot)} asks for {count} of {name}"
        what += (
            ", of which one is a share" if count > 1 else f", a size that no GPU is divided into: {kind.per_gpu} parts"
        )
        raise DeniedError("ShareMalformed", what, f'Ask for a share by the annotation {SHARE_ANNOTATION}: "0.2"')
    return units


def _of_partitions(slot: Slot, name: str, count: int, kind: Kind) -> int:
    milli = counted(kind.partitions, name, count)
    if milli is None:
        what = f"{named(slot)} asks for {count} of {name}, of which one is a share"
        raise DeniedError("ShareMalformed", what, f"Ask for one, or for {choices(kind.partitions)} by annotation")
    return milli


def _deny_other_resources(slot: Slot, cluster: Cluster, kind: Kind, policy: EffectivePolicy, found: Findings) -> None:
    resources = slot.container.resources
    for amounts in (resources.limits, resources.requests) if resources is not None else ():
        for name, quantity in (amounts or {}).items():
            if name in PLAIN_RESOURCES or kind.is_named_by(name) or whole(quantity) == 0:
                continue
            if cluster.is_ours(name):
                not_here = _not_sized_here if is_sized(name) else partial(_not_allocated_here, cluster)
                found.add(not_here(slot, name, kind, policy))
            elif is_other_gpu(name):
                what = f"{named(slot)} asks for {quoted(name)}, GPUs of another device plugin, in a pod with a share"
                found.deny("ConflictingRequest", what, "Remove one of the two")


def _not_sized_here(slot: Slot, name: str, kind: Kind, policy: EffectivePolicy) -> DeniedError:
    """Deny a resource of DRA where the pod's shares are not allocated by it, or not of this kind."""
    size = read_size(name)
    units = size.units(kind.per_gpu) if size is not None and size.strategy == kind.strategy else None
    what = f"{named(slot)} asks for {quoted(name, 90)}, which is not what shares are made of here"
    fix = f"Ask by the annotation {SHARE_ANNOTATION}" + (f", or for {kind.in_limits(units)}" if units else "")
    return DeniedError("ConflictingRequest", what, fix, by=policy.source("allocation"))


def _not_allocated_here(cluster: Cluster, slot: Slot, name: str, kind: Kind, policy: EffectivePolicy) -> DeniedError:
    """Deny a resource of ours that is not the one that this pod's shares are made of."""
    if kind.strategy == PARTITION:
        what = f"{named(slot)} asks for {name}, but this namespace's strategy allocates partitions"
        return DeniedError("ConflictingRequest", what, "Ask by annotation", by=policy.source("strategy"))
    if kind.strategy == WHOLE:
        what = f"{named(slot)} asks for {name} in a pod that is given whole GPUs ({kind.resource})"
        fix = "Ask for one kind in all of the pod, or by annotation"
        return DeniedError("ConflictingRequest", what, fix, by=policy.source("share.whole"))
    if name == cluster.resource_names[WHOLE]:
        what = f"{named(slot)} asks for {name}, but whole GPUs are allocated as vGPUs here"
        fix = f'Ask for {kind.in_limits(kind.per_gpu)} for each GPU, or by the annotation {SHARE_ANNOTATION}: "1"'
        return DeniedError("ConflictingRequest", what, fix, by=policy.source("share.whole"))
    what = f"{named(slot)} asks for {name}, but this namespace's strategy allocates {kind.resource}"
    fix = f"Ask for {kind.resource}, or by annotation"
    return DeniedError("ConflictingRequest", what, fix, by=policy.source("strategy"))
