"""What to do about what Kubernetes says of a pod: the tables of docs/troubleshooting.md, for programs."""

import re
from collections.abc import Iterable
from typing import Final

from console.explain.program_remedies import OF_PROGRAMS
from console.explain.remedy import Remedy
from console.taints import CORDONED, LACKING, LEAVING, NOT_READY, node_condition, told_apart
from policies.contract import MPS_VOLUME

_OF_RESOURCE: Final = re.compile(r"(?:devices unavailable for|cannot allocate unhealthy devices) ([\w.-]+/[\w.-]*\w)")


def is_of_another(text: str, resource: str) -> bool:
    """Whether the kubelet says a *text* of devices that are not the *resource* of a share; "" if that is not known."""
    match = _OF_RESOURCE.search(text)
    return match is not None and bool(resource) and match[1] != resource


_PAGE = "troubleshooting.md"
_PENDING = f"{_PAGE}#a-pod-is-pending"
_FAILED = f"{_PAGE}#unexpectedadmissionerror"
_DENIED = f"{_PAGE}#a-pod-is-denied"
_CLOSED = f"{_PAGE}#a-node-takes-no-new-pods"
NO_HEALTHY: Final = "no healthy devices present"
_OF_MPS: Final = ("hostIPC", "Host IPC", "nvidia-mps")  # what a pod has of MPS
_QUOTA: Final = Remedy(
    says="exceeded quota",
    what="the ResourceQuota of the namespace is used up: ask for less, delete a pod, or have it raised",
    page="policies.md#a-quota-for-a-namespace",
)
_LOCKDOWN: Final = Remedy(
    says="ValidatingAdmissionPolicy 'gpu-share-lockdown",  # that of claims as well, which are told of in events of pods
    what="ask for a share as the message says; where the pod was granted one, gpu-share doctor finds what differs",
    page=_DENIED,
)
_OF_DENIALS: Final = (
    _QUOTA,
    Remedy(
        says="violates PodSecurity",
        names=_OF_MPS,
        what="the policy must say mps: {attach: node}, or auto where the namespace has the label",
        page=_DENIED,
    ),
    Remedy(
        says="security context constraint",
        names=_OF_MPS,
        what="the policy must say mps: {attach: node}, since OpenShift admits neither hostIPC nor hostPath",
        page="install.md#openshift-and-other-policies-for-pods",
    ),
    *(
        Remedy(
            says=says,
            what="where its rule forbids hostIPC or hostPath, the policy must say mps: {attach: node}; or exempt these "
            "pods from the rule",
            page=_DENIED,
        )
        for says in ("validate.kyverno.svc", "validation.gatekeeper.sh")
    ),
    Remedy(
        says="failed calling webhook",
        names=('.gpu-share.dev"',),
        what="the webhook does not answer the API server: gpu-share doctor says why",
        page=f"{_PAGE}#the-webhook-cannot-be-called",
    ),
    Remedy(
        says="ValidatingAdmissionPolicy 'gpu-share'",
        what="do what the message says; gpu-share doctor finds settings that differ in their second place",
        page=f"{_PAGE}#the-api-servers-own-check",
    ),
    _LOCKDOWN,
    Remedy(
        says='.gpu-share.dev" denied the request',
        what="do what the message proposes, or change the policy",
        page=_DENIED,
    ),
)
_OF_PODS: Final = (
    Remedy(
        says="more than a GPU of this node has",
        what="no GPU there can have it: ask for less, or have the node's vgpusPerGpu put right, as its status says",
        page="operations.md#change-vgpuspergpu",
    ),
    Remedy(
        says="must lie on one GPU",
        what="no one GPU had that many vGPUs free: ask for less, make room, or create it again",
        page="troubleshooting.md#fragmentation",
    ),
    Remedy(
        says=NO_HEALTHY,
        what="no plugin was connected, or no GPU of the node is healthy: create the pod again once the node advertises "
        "its vGPUs",
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
        what="vGPUs became unhealthy or hidden, and the scheduler did not know yet: create the pod again",
        page="troubleshooting.md#a-gpu-is-unhealthy",
    ),
    Remedy(
        says="the kubelet has lost count",
        what="the kubelet gave it what another container has: create the pod again, and if that fails too, delete the "
        "pod that the message names first",
        page=_FAILED,
    ),
    Remedy(
        says="whose pod was deleted by force",
        what="processes are left of the pod that the message names: create this one again once they have ended",
        page=_FAILED,
    ),
    Remedy(
        says="TopologyAffinityError",
        what="the kubelet found no CPUs and GPU next to each other: ask for fewer CPUs, or relax topologyManagerPolicy "
        "on the node; create the pod again",
        page=_FAILED,
    ),
    Remedy(
        says="Node didn't have enough resource",
        what="another pod was faster: create it again, a controller does",
        page=_FAILED,
    ),
    _QUOTA,
    _LOCKDOWN,
    Remedy(
        says="scheduling gates",
        what="a queue such as Kueue holds it back until it has its turn: look at its Workload",
        page=_PENDING,
    ),
    Remedy(
        says="hostPath type check failed",
        names=(MPS_VOLUME,),
        what="the node has no directory of MPS pipes: look at gpu-share-mps there",
        page=_PENDING,
    ),
    Remedy(
        says="unresolvable CDI devices",
        names=("nvidia.com/", "gpu-share.dev/"),
        what="NVIDIA's specification has gone or changed: have it made again, or create the pod again",
        page=_PENDING,
    ),
    Remedy(
        says="Failed to prepare dynamic resources",
        what="the message says why; the kubelet tries again within 90 seconds",
        page=_PENDING,
    ),
    # First what is said of nodes with GPUs: most clusters have others, which say that they are tainted or lack a label.
    Remedy(says="cannot allocate all claims", what="no GPU has room: ask for less, or wait", page=_PENDING),
    Remedy(says="Insufficient", what="wait, ask for less, or add a node", page=_PENDING),
    Remedy(
        says="untolerated taint",
        what="where a node with such GPUs has the taint, and it is none of node.kubernetes.io, add "
        "placement.tolerations to the policy",
        page=_PENDING,
    ),
    *(
        Remedy(
            says=says,
            what="a node is cordoned: if it has such GPUs, kubectl uncordon it once what it was cordoned for is done",
            page=_CLOSED,
        )
        for says in ("node(s) were unschedulable", node_condition(CORDONED))
    ),
    *(
        Remedy(
            says=says,
            what="a node is not Ready: if it has such GPUs, look at the node and its kubelet; no toleration helps",
            page=_CLOSED,
        )
        for says in map(node_condition, (*NOT_READY, "not Ready"))
    ),
    *(
        Remedy(
            says=says,
            what="Kubernetes itself keeps pods off a node: if it has such GPUs, kubectl describe node says why",
            page=_CLOSED,
        )
        for says in map(node_condition, LACKING)
    ),
    Remedy(
        says=node_condition(LEAVING),
        what="an autoscaler removes a node: wait for another one, ask for less, or have a larger node group",
        page=_CLOSED,
    ),
    Remedy(
        says="node affinity/selector",
        what="where a node with such GPUs lacks the label, add it, or change the selector",
        page=_PENDING,
    ),
    Remedy(
        says="OOMKilled", what="the node's memory, not the GPU's: raise the container's memory limit", page=_PENDING
    ),
)
REMEDIES: Final = (*_OF_PODS, *_OF_DENIALS, *OF_PROGRAMS)
_ANY_REJECTION: Final = Remedy(
    says="UnexpectedAdmissionError", what="the kubelet rejected it: create the pod again", page=_FAILED
)


def remedies(texts: Iterable[str]) -> tuple[Remedy, ...]:
    """List what to do about what Kubernetes says of a pod, each thing once; none if nothing is known of it."""
    said = tuple(texts)
    found = _found(_OF_PODS, said)
    is_rejected = any(_ANY_REJECTION.is_of(one) for one in said)
    return found or ((_ANY_REJECTION,) if is_rejected else ())


def of_denials(texts: Iterable[str]) -> tuple[Remedy, ...]:
    """List what to do about what controllers were told whose pods were denied."""
    return _found(_OF_DENIALS, texts)


def of_programs(texts: Iterable[str]) -> tuple[Remedy, ...]:
    """List what to do about what programs said when they ended."""
    return _found(OF_PROGRAMS, texts)


def _found(table: Iterable[Remedy], texts: Iterable[str]) -> tuple[Remedy, ...]:
    said = [told_apart(one) for one in texts]
    return tuple({one.what: one for one in table if any(one.is_of(text) for text in said)}.values())
