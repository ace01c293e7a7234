"""What to do about what Kubernetes says of a pod: the tables of docs/troubleshooting.md, for programs."""

from typing import Final

import msgspec


class Remedy(msgspec.Struct, frozen=True, kw_only=True):
    """What to do."""

    says: str  # what Kubernetes says, a part of it
    what: str
    page: str


_PENDING = "troubleshooting.md#a-pod-is-pending"
_FAILED = "troubleshooting.md#unexpectedadmissionerror"
REMEDIES: Final = (
    Remedy(
        says="must lie on one GPU",
        what="no one GPU had that many vGPUs free: ask for less, make room, or create it again",
        page="troubleshooting.md#fragmentation",
    ),
    Remedy(
        says="no healthy devices present",
        what="no plugin was connected: create the pod again once the node advertises its vGPUs",
        page="troubleshooting.md#after-a-restart-of-the-plugin",
    ),
    Remedy(
        says="is unhealthy", what="the GPU failed: create the pod again", page="troubleshooting.md#a-gpu-is-unhealthy"
    ),
    Remedy(
        says="previously allocated devices are no longer healthy",
        what="the GPU failed while the node restarted: create the pod again",
        page="troubleshooting.md#a-gpu-is-unhealthy",
    ),
    Remedy(
        says="requested number of devices unavailable",
        what="vGPUs became unhealthy, and the scheduler did not know yet: create the pod again",
        page="troubleshooting.md#a-gpu-is-unhealthy",
    ),
    Remedy(says="UnexpectedAdmissionError", what="the kubelet rejected it: create the pod again", page=_FAILED),
    Remedy(
        says="hostPath type check failed",
        what="the node has no directory of MPS pipes: look at gpu-share-mps there",
        page=_PENDING,
    ),
    Remedy(says="untolerated taint", what="add placement.tolerations to the policy", page=_PENDING),
    Remedy(says="node affinity/selector", what="label a node, or change the selector", page=_PENDING),
    Remedy(says="cannot allocate all claims", what="no GPU has room: ask for less, or wait", page=_PENDING),
    Remedy(says="Insufficient", what="wait, ask for less, or add a node", page=_PENDING),
    Remedy(
        says="OOMKilled", what="the node's memory, not the GPU's: raise the container's memory limit", page=_PENDING
    ),
)


def remedy(why: str) -> Remedy | None:
    """Find what to do; None if nothing is known of it."""
    return next((one for one in REMEDIES if one.says in why), None)
