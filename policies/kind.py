"""What a pod's shares are made of: vGPUs of the namespace's strategy, whole GPUs, or partitions of their maker."""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from policies.cluster import Cluster
from policies.contract import (
    DEVICE_PLUGIN,
    DRA,
    MILLI_PER_GPU,
    MPS,
    PARTITION,
    WHOLE,
    Allocation,
    GrantStrategy,
)
from policies.denial import DeniedError
from policies.device_names import GPU_DEVICE, is_instance
from policies.errors import quoted
from policies.mps_clients import too_many_clients
from policies.partitions import Partition, allot
from policies.pod import Resources, Slot
from policies.policy import EffectivePolicy
from policies.quantity import whole
from policies.share import Share, milli_text
from policies.sizes import Size, is_too_fine, read_size, size_of, too_fine

PLAIN_RESOURCES: Final = frozenset({"cpu", "memory", "ephemeral-storage"})


class Kind(msgspec.Struct, frozen=True, gc=False):
    """What all shares of one pod are made of."""

    strategy: GrantStrategy
    resource: str  # the device plugin's; by DRA a limit may still name it; empty for partitions
    per_gpu: int  # how many of them are one GPU; whole GPUs are 1, and partitions are counted in thousandths
    allocation: Allocation = DEVICE_PLUGIN
    device: str = GPU_DEVICE  # that they are parts of
    partition: str = ""  # the name of the partitions
    partitions: tuple[Partition, ...] = ()

    @property
    def is_of_instances(self) -> bool:
        """Whether they are parts of MIG instances, and not of GPUs."""
        return is_instance(self.device)

    def counted(self, count: int) -> str:
        """Write a number of them for people."""
        if self.strategy == PARTITION:
            return f"{milli_text(count)} of a GPU"
        whole = "MIG instance" if self.is_of_instances else "whole GPU"
        return f"{count} {whole if self.strategy == WHOLE else 'vGPU'}{'' if count == 1 else 's'}"

    def asked(self, count: int) -> tuple[str, int]:
        """Return the resource of so many, and how many a container has in its limits: by DRA one, of that size."""
        if self.strategy == PARTITION:
            allotted = allot(self.partitions, count)
            return (allotted.resource, allotted.count) if allotted is not None else ("", 0)
        if self.allocation == DRA:
            return size_of(count, self.per_gpu, self.strategy, self.device).resource, 1
        return self.resource, count

    def in_limits(self, count: int) -> str:
        """Write what a container asks for by a limit, for messages."""
        resource, quantity = self.asked(count)
        return f"{quantity} {resource}"

    def holding(self, share: Share) -> int | None:
        """Count those that hold *share*, rounded up; None if no partition is so large."""
        if self.strategy != PARTITION:
            return share.vgpus(self.per_gpu)
        allotted = allot(self.partitions, share.milli)
        return allotted.milli if allotted is not None else None

    def is_named_by(self, resource: str) -> bool:
        """Whether a limit of *resource* asks for some of them."""
        if self.strategy == PARTITION:
            return any(one.resource == resource for one in self.partitions)
        return resource == self.resource or self.size(resource) is not None

    def size(self, resource: str) -> Size | None:
        """Return the size that *resource* is by DRA; None if it is none of this kind."""
        size = read_size(resource) if self.allocation == DRA else None
        return size if size is not None and (size.strategy, size.device) == (self.strategy, self.device) else None


def device_resources(slot: Slot) -> Resources | None:
    """Return what a container asks for; None where it is none but what almost every container has."""
    resources = slot.container.resources
    if resources is None:
        return None
    is_plain = PLAIN_RESOURCES.issuperset
    return None if is_plain(resources.limits or ()) and is_plain(resources.requests or ()) else resources


def parts_of(cluster: Cluster, policy: EffectivePolicy, device: str = GPU_DEVICE) -> Kind:
    """
    Return the vGPUs of the policy's strategy, or its partitions; there are none if `_cluster.yaml` has lost them.

    vGPUs are parts of the *device*.
    """
    strategy = policy.policy.strategy
    if strategy == PARTITION:
        name = policy.policy.partition or ""
        return Kind(PARTITION, "", MILLI_PER_GPU, partition=name, partitions=cluster.partitions.get(name, ()))
    resource, parts = cluster.resource(strategy, device), cluster.parts(strategy, device)
    return Kind(strategy, resource, parts, policy.policy.allocation, device)


def whole_of(cluster: Cluster, policy: EffectivePolicy, device: str) -> Kind:
    """Return whole ones of the *device*."""
    return Kind(WHOLE, cluster.resource(WHOLE, device), 1, policy.policy.allocation, device)


def kind_of(
    parts: Kind,
    limited: Sequence[Slot],
    shares: Mapping[str, tuple[str, Share]],
    *,
    cluster: Cluster,
    policy: EffectivePolicy,
) -> Kind:
    """
    Say what the pod is given: *parts* of the device that is chosen, or whole ones.

    *limited* are the containers that ask for devices by limits or requests, *shares* those of the annotations, by
    container.

    A limit that names one kind asks for that kind. Else whole GPUs are what the policy says they are, and a pod with
    a part of a GPU in it gets vGPUs for all its shares.

    Raises:
        DeniedError: If the limits name whole GPUs and an annotation asks for a part of one, or DRA or MPS has no such
            vGPUs.
    """
    _check_parts(parts, policy)
    if parts.strategy == PARTITION:
        return parts
    are_whole = shares and all(share.is_whole for _, share in shares.values())
    if policy.policy.share.whole == "vgpus" or not (limited or are_whole):  # most pods
        return _served(parts, policy)
    gpus = whole_of(cluster, policy, parts.device)
    names_gpus = _first_that_names(limited, gpus)
    if names_gpus is not None:
        _check_whole(shares, names_gpus, gpus)
        return gpus
    return gpus if are_whole and _first_that_names(limited, parts) is None else _served(parts, policy)


def _check_parts(parts: Kind, policy: EffectivePolicy) -> None:
    """Deny where the policy names partitions that there are not, or DRA has no device of one vGPU."""
    if parts.strategy == PARTITION and not parts.partitions:
        what = f"The policy of this namespace names the partitions {quoted(parts.partition)}, and there are none"
        fix = "Ask the administrator to write them into _cluster.yaml"
        raise DeniedError("SharingDisabled", what, fix, by=policy.source("partition"))
    if parts.strategy != PARTITION and policy.policy.allocation == DRA and is_too_fine(parts.per_gpu):
        fix = "Ask the administrator to change vgpusPerGpu, or allocation"
        raise DeniedError("SharingDisabled", too_fine(parts.per_gpu), fix, by=policy.source("allocation"))


def _check_whole(shares: Mapping[str, tuple[str, Share]], names_gpus: Slot, gpus: Kind) -> None:
    """Deny a share of a part of a GPU in a pod of which *names_gpus* asks for whole ones by a limit."""
    for name, (key, share) in shares.items():
        if not share.is_whole:
            what = (
                f"Container {quoted(name)} asks for {share} of a GPU by {quoted(key, 60)}, "
                f"but {quoted(names_gpus.name)} for whole GPUs by its limit {gpus.resource}"
            )
            fix = "Ask by annotation alone: a pod with a part of a GPU gets vGPUs for all"
            raise DeniedError("ConflictingRequest", what, fix)


def _served(vgpus: Kind, policy: EffectivePolicy) -> Kind:
    """Return the vGPUs if a GPU can be divided into so many: no node would advertise them otherwise."""
    if vgpus.is_of_instances and vgpus.strategy != MPS:
        what = f"MIG instances are shared by mps or given whole, and the strategy of this namespace is {vgpus.strategy}"
        fix = "Ask the administrator for strategy: mps, or for a share of a gpu"
        raise DeniedError("SharingDisabled", what, fix, by=policy.source("strategy"))
    if vgpus.strategy == MPS and (too_many := too_many_clients(vgpus.per_gpu)):
        fix = "Ask the administrator to change vgpusPerGpu, or strategy"
        raise DeniedError("SharingDisabled", too_many, fix, by=policy.source("strategy"))
    return vgpus


def _first_that_names(limited: Sequence[Slot], kind: Kind) -> Slot | None:
    for slot in limited:
        resources = device_resources(slot)
        for amounts in (resources.limits, resources.requests) if resources else ():
            if any(kind.is_named_by(name) and whole(quantity) != 0 for name, quantity in (amounts or {}).items()):
                return slot
    return None
