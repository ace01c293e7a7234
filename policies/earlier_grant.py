"""
A pod whose grant its policy no longer makes, since that has changed between two calls of the webhook for one pod.

It is denied as it would be without one, since anybody can write a grant: only what to do is another thing.
"""

from policies.carried_grant import CarriedGrant, Granted, asking, carried_grant
from policies.cluster import Cluster
from policies.contract import MPS_VOLUME, WHOLE
from policies.denial import Deny
from policies.device import device_of
from policies.device_names import GPU_DEVICE
from policies.errors import ShareError
from policies.kind import parts_of, whole_of
from policies.paths import normal
from policies.pod import Pod, Slot
from policies.policy import EffectivePolicy
from policies.share import Share

# By which a pod is denied for what a grant has added to it: of all others their owner has to do something.
_CODES = ("ConflictingRequest", "ShareMalformed")
_FIX = ". The policy has changed since its grant: create the pod again, from a manifest without that grant."


def with_fix(
    reasons: tuple[Deny, ...], pod: Pod, containers: list[Slot], *, policy: EffectivePolicy, cluster: Cluster
) -> tuple[Deny, ...]:
    """Have the first reason say to create the *pod* again, where it contradicts a policy that has changed."""
    first = reasons[0]
    if first.code not in _CODES:
        return reasons
    grant = carried_grant(pod, containers)
    if grant is None:
        return reasons
    # A limit of the others is their owner's, and what to do about it stays as it is.
    by_annotation = [grant.containers[name] for name in asking(pod, containers, grant)[0]]
    if _is_attached_otherwise(pod, grant, policy, cluster) or any(
        _granted_now(one, grant, policy, cluster) != grant.limit(one) for one in by_annotation
    ):
        return (Deny(first.code, first.what, _FIX), *reasons[1:])
    return reasons


def _granted_now(
    one: Granted, grant: CarriedGrant, policy: EffectivePolicy, cluster: Cluster
) -> tuple[str, int] | None:
    """Return the resource and how many of it the same share would be; None if there is none."""
    device = device_of(grant.limit(one)[0], cluster) or GPU_DEVICE
    is_whole = grant.strategy == WHOLE and policy.policy.share.whole == "gpus"
    kind = whole_of(cluster, policy, device) if is_whole else parts_of(cluster, policy, device)
    try:
        count = kind.holding(Share.parse(one.share))
    except ShareError:
        return None
    return kind.asked(count) if count is not None else None


def _is_attached_otherwise(pod: Pod, grant: CarriedGrant, policy: EffectivePolicy, cluster: Cluster) -> bool:
    """Whether the pod carries hostIPC and a directory of the pipes, and would get none or another one."""
    if grant.attach != "pod":
        return False
    paths = [one.host_path.path for one in pod.spec.volumes or () if one.name == MPS_VOLUME and one.host_path]
    return policy.policy.mps.attach == "node" or any(normal(one) != cluster.mps.pipe_directory for one in paths)
