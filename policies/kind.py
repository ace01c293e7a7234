"""What a pod's shares are made of: vGPUs of the namespace's strategy, or whole GPUs."""

from collections.abc import Mapping, Sequence

import msgspec

from policies.cluster import Cluster
from policies.contract import WHOLE, SharingStrategy
from policies.denial import DeniedError
from policies.errors import quoted
from policies.pod import Slot
from policies.policy import EffectivePolicy
from policies.quantity import whole
from policies.share import Share


class Kind(msgspec.Struct, frozen=True, gc=False):
    """What all shares of one pod are made of."""

    strategy: SharingStrategy
    resource: str
    per_gpu: int  # how many of them are one GPU; whole GPUs are 1

    def counted(self, count: int) -> str:
        """Write a number of them for people."""
        return f"{count} {'whole GPU' if self.strategy == WHOLE else 'vGPU'}{'' if count == 1 else 's'}"


def vgpus_of(cluster: Cluster, policy: EffectivePolicy) -> Kind:
    """Return the vGPUs of the policy's strategy."""
    strategy = policy.policy.strategy
    return Kind(strategy, cluster.resource_names[strategy], cluster.vgpus_per_gpu)


def kind_of(
    containers: Sequence[Slot],
    shares: Mapping[str, tuple[str, Share]],
    *,
    cluster: Cluster,
    policy: EffectivePolicy,
) -> Kind:
    """
    Say what the pod is given; *shares* are those of its annotations, by container.

    A limit that names one kind asks for that kind. Else whole GPUs are what the policy says they are, and a pod with
    a part of a GPU in it gets vGPUs for all its shares.

    Raises:
        DeniedError: If the limits name whole GPUs and an annotation asks for a part of one.
    """
    rules = policy.policy
    vgpus = vgpus_of(cluster, policy)
    if rules.share.whole == "vgpus":
        return vgpus
    gpus = Kind(WHOLE, cluster.resource_names[WHOLE], 1)
    names_gpus = _first_that_names(containers, gpus.resource)
    if names_gpus is None:
        by_annotation = shares and all(share.is_whole for _, share in shares.values())
        return gpus if by_annotation and _first_that_names(containers, vgpus.resource) is None else vgpus
    for name, (key, share) in shares.items():
        if not share.is_whole:
            what = (
                f"Container {quoted(name)} asks for {share} of a GPU by {quoted(key, 60)}, "
                f"but {quoted(names_gpus.name)} for whole GPUs by its limit {gpus.resource}"
            )
            raise DeniedError(
                "ConflictingRequest", what, "Ask by annotation alone: a pod with a part of a GPU gets vGPUs for all"
            )
    return gpus


def _first_that_names(containers: Sequence[Slot], resource: str) -> Slot | None:
    for slot in containers:
        resources = slot.container.resources
        for amounts in (resources.limits, resources.requests) if resources else ():
            if amounts and resource in amounts and whole(amounts[resource]) != 0:
                return slot
    return None
