"""
What the API server's own check, its policy `gpu-share`, denies of pods that the webhook leaves as they are.

It denies what claims a share and asks for none, and what is larger than it can look through. Its messages are repeated
here, so that users find by either what to do.
"""

from collections.abc import Sequence
from typing import Final

from policies.contract import GRANT_ANNOTATION, MIRROR_ANNOTATION, MPS, SHARE_ANNOTATION, SHARED_LABEL
from policies.pod import Pod, Slot, slots
from policies.policy_set import PolicySet
from policies.request import asks_for_share
from policies.size import MOST_CONTAINERS, MOST_OTHERS

API_SERVER_POLICY: Final = "gpu-share"
_TOO_LARGE: Final = (
    f"A pod with a GPU share, or with limits of one, has more than {MOST_OTHERS} annotations, {MOST_CONTAINERS} "
    "containers, 256 volumes, or 8192 variables, mounts and resources, which no real pod has: make it smaller."
)
_LABELLED: Final = (
    f"The pod has the label {SHARED_LABEL}, which the gpu-share webhook sets on pods with a GPU share, and asks for "
    f"none: remove the label, or ask for a share with the annotation {SHARE_ANNOTATION}."
)
_MIRRORS: Final = (
    f"The pod asks for a GPU share and has the annotation {MIRROR_ANNOTATION}, for which the webhook leaves it without "
    "one, and which is for kubelets alone: remove that annotation."
)


def denied_by_api_server(pod: Pod, namespace: str, policies: PolicySet) -> str:
    """
    Say with which message the API server denies a *pod* that the webhook has admitted as it is; empty if it does not.

    A pod with the annotation of a mirror pod is taken for one of a user: of a kubelet's, nothing is checked.
    """
    containers = slots(pod)
    if policies.is_exempt(namespace) or not containers:
        return ""
    annotations = pod.metadata.annotations or {}
    if asks_for_share(pod, containers, policies.cluster):
        return _MIRRORS if MIRROR_ANNOTATION in annotations else ""
    if GRANT_ANNOTATION in annotations:
        return _without_limit(policies.cluster.resource_names[MPS])
    if SHARED_LABEL in (pod.metadata.labels or ()):
        return _LABELLED
    return _TOO_LARGE if _is_too_large(containers) else ""


def _without_limit(resource: str) -> str:
    return (
        f"No container of the pod has a limit of {resource}, so it has no GPU share: ask for one with the annotation "
        f"{SHARE_ANNOTATION}, and remove {GRANT_ANNOTATION} and {SHARED_LABEL}."
    )


def _is_too_large(containers: Sequence[Slot]) -> bool:
    """Whether it has more than the check looks through for a request; of all else a pod without one has any number."""
    if len(containers) > MOST_CONTAINERS:
        return True
    amounts = (one.container.resources for one in containers)
    # The API server requests whatever a limit names.
    return any(len({*(one.limits or ()), *(one.requests or ())}) > MOST_OTHERS for one in amounts if one)
