"""What the shares of a pod are of: GPUs, those of one model, or MIG instances, within what its policy allows."""

from collections.abc import Sequence

from policies.cluster import Cluster
from policies.contract import DEVICE_ANNOTATION, PARTITION
from policies.denial import DeniedError
from policies.device_names import GPU_DEVICE, device_name, is_model, read_device
from policies.errors import quoted
from policies.kind import device_resources
from policies.pod import Pod, Slot
from policies.policy import EffectivePolicy
from policies.quantity import whole
from policies.sizes import read_size

_MOST_NAMED = 3  # devices in a message


def chosen_device(pod: Pod, limited: Sequence[Slot], *, cluster: Cluster, policy: EffectivePolicy) -> str:
    """
    Return the device that the pod's shares are of; empty for GPUs without a name of their own.

    The annotation says it, else a limit that names a resource of ours, else the policy. *limited* are the containers
    that ask for devices by limits or requests.

    Raises:
        DeniedError: If the annotation names none, the policy allows no shares of it, or `_cluster.yaml` has lost it.
    """
    written = (pod.metadata.annotations or {}).get(DEVICE_ANNOTATION)
    if policy.policy.strategy == PARTITION:
        if written is not None:
            what = f"The pod has the annotation {DEVICE_ANNOTATION}, and the strategy here allocates partitions"
            raise DeniedError("ConflictingRequest", what, "Remove the annotation", by=policy.source("strategy"))
        return GPU_DEVICE
    allowed = policy.policy.shared_devices
    if written is not None:
        device, asked = read_device(written), f"The annotation {DEVICE_ANNOTATION} says {quoted(written)}"
    else:
        by_limit = _named_by_limits(limited, cluster)
        if by_limit is None:
            return _known(allowed[0], cluster, policy)
        device, asked = by_limit[0], f"A limit names {quoted(by_limit[1], 90)}"
    if device is None or device not in allowed:
        what = f"{asked}, and shares here are of {_choices(policy)}"
        raise DeniedError("DeviceNotAllowed", what, f"Ask for {_choices(policy)}", by=policy.source("devices"))
    return _known(device, cluster, policy)


def _known(device: str, cluster: Cluster, policy: EffectivePolicy) -> str:
    if is_model(device) and device not in cluster.models:
        what = f"The policy of this namespace names the device {device_name(device)}, and nodes have none of that name"
        fix = "Ask the administrator to write it into nodes of _cluster.yaml"
        raise DeniedError("SharingDisabled", what, fix, by=policy.source("devices"))
    return device


def _choices(policy: EffectivePolicy) -> str:
    """List what shares can be of, for a message."""
    names = [device_name(device) for device in policy.policy.shared_devices]
    return " or ".join(names[:_MOST_NAMED]) + (" or others" if len(names) > _MOST_NAMED else "")


def _named_by_limits(limited: Sequence[Slot], cluster: Cluster) -> tuple[str, str] | None:
    """Say of which device the first resource of ours is that a container asks for, and how that is called."""
    for slot in limited:
        resources = device_resources(slot)
        for amounts in (resources.limits, resources.requests) if resources else ():
            for name, quantity in (amounts or {}).items():
                device = device_of(name, cluster)
                if device is not None and whole(quantity) != 0:
                    return device, name
    return None


def device_of(resource: str, cluster: Cluster) -> str | None:
    """Say which device a resource is of, whoever allocates it; None if it is not ours."""
    device = cluster.device_named_by(resource)
    if device is not None:
        return device
    size = read_size(resource)
    return size.device if size is not None else None
