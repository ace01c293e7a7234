"""
What the API server's own check, its policy `gpu-share`, denies of pods that the webhook leaves as they are.

It denies what claims a share and asks for none, what asks and was granted none, and what is larger than it can look
through. Its messages are repeated here, so that users find by either what to do.
"""

from collections.abc import Sequence
from typing import Final

from policies.carried_grant import carried_grant
from policies.cluster import Cluster
from policies.contract import (
    GRANT_ANNOTATION,
    MIRROR_ANNOTATION,
    MODE_LABEL,
    MPS,
    PARTITION,
    SHARE_ANNOTATION,
    SHARED_LABEL,
)
from policies.kind import device_resources
from policies.pod import Pod, Slot, slots
from policies.policy_set import PolicySet
from policies.quantity import whole
from policies.request import asks_for_share
from policies.size import MOST_CONTAINERS, MOST_OTHERS

API_SERVER_POLICY: Final = "gpu-share"
_MOST_VOLUMES: Final = 256
_MOST_PARTS: Final = 8192  # variables, mounts, resources and capabilities
_TOO_LARGE: Final = (
    f"A pod with a GPU share, or with limits of one, has more than {MOST_OTHERS} annotations, {MOST_CONTAINERS} "
    f"containers, {_MOST_VOLUMES} volumes, or {_MOST_PARTS} variables, mounts and resources, which no real pod has: "
    "make it smaller."
)
_LABELLED: Final = (
    f"The pod has the label {SHARED_LABEL}, which the gpu-share webhook sets on pods with a GPU share, and asks for "
    f"none: remove the label, or ask for a share with the annotation {SHARE_ANNOTATION}."
)
_MIRRORS: Final = (
    f"The pod asks for a GPU share and has the annotation {MIRROR_ANNOTATION}, for which the webhook leaves it without "
    "one, and which is for kubelets alone: remove that annotation."
)
_UNGRANTED: Final = (
    "The pod asks for a GPU share or claims one, but gpu-share granted it none: check that its webhook is configured "
    f"for the namespace, no later webhook adds the request, and mode: warn has its namespace label {MODE_LABEL}=warn "
    "(docs/troubleshooting.md)."
)
_UNLABELLED: Final = (
    f'The pod has a GPU share but not the label {SHARED_LABEL}: "true", which the gpu-share webhook sets: check that '
    "no other webhook changes it, and create the pod again."
)
_OF_ANOTHER: Final = (
    f"The annotation {GRANT_ANNOTATION} is not what gpu-share wrote for the containers of the pod with a limit of "
    "vGPUs or GPUs: remove the annotation, the gpu-share webhook writes it."
)


def denied_by_api_server(pod: Pod, namespace: str, policies: PolicySet) -> str:
    """
    Say with which message the API server denies a *pod* that the webhook has admitted as it is; empty if it does not.

    A pod with the annotation of a mirror pod is taken for one of a user: of a kubelet's, nothing is checked.
    """
    containers = slots(pod)
    if policies.is_exempt(namespace) or not containers:
        return ""
    annotations, labels = pod.metadata.annotations or {}, pod.metadata.labels or {}
    asks = asks_for_share(pod, containers, policies.cluster)
    if asks and MIRROR_ANNOTATION in annotations and not annotations.get(GRANT_ANNOTATION):
        return _MIRRORS
    claims = asks or GRANT_ANNOTATION in annotations or SHARED_LABEL in labels
    if _has_too_much(containers) or (claims and _is_too_large(pod, containers)):
        return _TOO_LARGE
    if asks:
        return _of_grant(pod, containers, policies.cluster)
    if GRANT_ANNOTATION in annotations:
        return _without_limit(policies.cluster.resource_names[MPS]) if annotations[GRANT_ANNOTATION] else _UNGRANTED
    return _LABELLED if claims else ""


def _of_grant(pod: Pod, containers: list[Slot], cluster: Cluster) -> str:
    """Say what is wrong with the grant that an asking pod came with; empty if it fits, as far as can be seen here."""
    if not (pod.metadata.annotations or {}).get(GRANT_ANNOTATION):
        return _UNGRANTED
    grant = carried_grant(pod, containers)
    sharing = {one.name for one in containers if _has_limit(one, cluster)}
    is_partitioned = grant is not None and grant.strategy == PARTITION
    if not sharing and not is_partitioned:
        return _without_limit(cluster.resource_names[MPS])
    if (pod.metadata.labels or {}).get(SHARED_LABEL) != "true":
        return _UNLABELLED
    fits = grant is not None and (is_partitioned or sharing == grant.containers.keys())
    return "" if fits else _OF_ANOTHER


def _has_limit(slot: Slot, cluster: Cluster) -> bool:
    resources = device_resources(slot)
    limits = (resources.limits if resources else None) or {}
    return any(cluster.is_ours(name) and whole(amount) != 0 for name, amount in limits.items())


def _without_limit(resource: str) -> str:
    return (
        f"No container of the pod has a limit of {resource}, so it has no GPU share: ask for one with the annotation "
        f"{SHARE_ANNOTATION}, and remove {GRANT_ANNOTATION} and {SHARED_LABEL}."
    )


def _has_too_much(containers: Sequence[Slot]) -> bool:
    """Whether it has more than the check looks through for a request; of all else a pod without one has any number."""
    if len(containers) > MOST_CONTAINERS:
        return True
    amounts = (one.container.resources for one in containers)
    # The API server requests whatever a limit names.
    return any(len({*(one.limits or ()), *(one.requests or ())}) > MOST_OTHERS for one in amounts if one)


def _is_too_large(pod: Pod, containers: Sequence[Slot]) -> bool:
    """Whether it has more than the check looks through in a pod that has a share, or asks for or claims one."""
    is_wide = len(pod.metadata.annotations or ()) > MOST_OTHERS or len(pod.spec.volumes or ()) > _MOST_VOLUMES
    return is_wide or sum(map(_parts, containers)) > _MOST_PARTS


def _parts(slot: Slot) -> int:
    one = slot.container
    limits, requests = (one.resources.limits or {}, one.resources.requests or {}) if one.resources else ({}, {})
    capabilities = one.security_context.capabilities if one.security_context else None
    lists = (one.env, one.env_from, one.volume_mounts, one.volume_devices, capabilities and capabilities.add)
    return sum(len(each or ()) for each in lists) + len(limits) + len({**limits, **requests})
