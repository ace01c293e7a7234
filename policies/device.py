"""What the shares of a pod are of: a GPU, or the MIG instances of a profile, within what its policy allows."""

from collections.abc import Sequence

from policies.cluster import Cluster
from policies.contract import DEVICE_ANNOTATION, PARTITION
from policies.denial import DeniedError
from policies.errors import quoted
from policies.kind import device_resources
from policies.mig import NO_PROFILE, device_name, read_device
from policies.pod import Pod, Slot
from policies.policy import EffectivePolicy
from policies.quantity import whole
from policies.sizes import read_size


def chosen_profile(pod: Pod, containers: Sequence[Slot], *, cluster: Cluster, policy: EffectivePolicy) -> str:
    """
    Return the profile of the MIG instances that the pod's shares are of; empty for GPUs.

    The annotation says it, else a limit that names a resource of ours, else the policy.

    Raises:
        DeniedError: If the annotation names none, or the policy allows no shares of it.
    """
    written = (pod.metadata.annotations or {}).get(DEVICE_ANNOTATION)
    if policy.policy.strategy == PARTITION:
        if written is not None:
            what = f"The pod has the annotation {DEVICE_ANNOTATION}, and the strategy here allocates partitions"
            raise DeniedError("ConflictingRequest", what, "Remove the annotation", by=policy.source("strategy"))
        return NO_PROFILE
    allowed = policy.policy.profiles
    if written is not None:
        profile, asked = read_device(written), f"The annotation {DEVICE_ANNOTATION} says {quoted(written)}"
    else:
        by_limit = _named_by_limits(containers, cluster)
        if by_limit is None:
            return allowed[0]
        profile, asked = by_limit[0], f"A limit names {quoted(by_limit[1], 90)}"
    if profile is None or profile not in allowed:
        what = f"{asked}, and shares here are of {choices(policy)}"
        raise DeniedError("DeviceNotAllowed", what, f"Ask for {choices(policy)}", by=policy.source("devices"))
    return profile


def choices(policy: EffectivePolicy) -> str:
    """List what shares can be of, for a message."""
    names = [device_name(profile) for profile in policy.policy.profiles]
    return " or ".join(names[:_MOST_NAMED]) + (" or others" if len(names) > _MOST_NAMED else "")


_MOST_NAMED = 3


def _named_by_limits(containers: Sequence[Slot], cluster: Cluster) -> tuple[str, str] | None:
    """Say of which profile the first resource of ours is that a container asks for, and how that is called."""
    for slot in containers:
        resources = device_resources(slot)
        for amounts in (resources.limits, resources.requests) if resources else ():
            for name, quantity in (amounts or {}).items():
                profile = _profile_of(name, cluster)
                if profile is not None and whole(quantity) != 0:
                    return profile, name
    return None


def _profile_of(resource: str, cluster: Cluster) -> str | None:
    profile = cluster.profile_of(resource)
    if profile is not None:
        return profile
    size = read_size(resource)
    return size.profile if size is not None else None
