"""Checks of the pods with a share: which wait or failed."""

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from console.doctor.installation import Installation
from console.doctor.verdict import OK, Check, Verdict, cut, not_listed, not_seen, warn
from console.grant import Grant
from console.seen import DENIED_PODS, SHARED_PODS, STATES, Seen, SeenNode, SeenPod
from console.words import moment
from policies.contract import DRA, MILLI_PER_GPU, WHOLE
from policies.device_names import device_name
from policies.errors import ShareError
from policies.node_state import Gpu
from policies.share import Share, milli_text
from policies.sizes import read_size

_OVERDUE: Final = timedelta(minutes=10)  # after the end of its grace period


def running(on: Installation) -> Verdict:
    """See that no pod with a share waits or failed."""
    if missing := not_listed(on, SHARED_PODS):
        return missing
    found = [f"{_name(one)} is {one.phase}: {one.why or 'nothing says why'}" for one in _late(on.seen)]
    return warn(*cut(found), hint="gpu-share explain POD -n NAMESPACE")


def denied(on: Installation) -> Verdict:
    """See that no controller's pods are denied."""
    found = [f"{one.namespace}/{one.kind}/{one.name}: {one.message}" for one in on.seen.denials]
    return warn(*cut(found), hint="do what the message proposes, or change the policy that it names")


def fits(on: Installation) -> Verdict:
    """See that the smallest share that waits fits on one GPU, where enough is free in all."""
    waiting: dict[_Kind, int] = {}  # the smallest share of each kind
    for one in on.seen.pods:
        if one.waits and one.grant is not None:
            for kind, share in _needed(one.grant).items():
                waiting[kind] = min(share, waiting.get(kind, share))
    told = {kind: said for kind, share in sorted(waiting.items()) if (said := _does_not_fit(on, kind, share))}
    room = "or delete a pod to make room"
    if any(kind.resource for kind in told):
        room = "delete a pod to make room, or let DRA choose the GPU"
    is_some_closed = any(node.closed for node in on.seen.nodes)
    back = "bring back nodes that take no pods (kubectl uncordon NODE), or " if is_some_closed else ""
    return warn(*told.values(), hint=f"{back}ask for a share that fits, {room}")


class _Kind(NamedTuple):
    """Which GPUs a share can be of."""

    strategy: str
    resource: str  # of the device plugin; by DRA GPUs have none
    device: str = ""  # by DRA, as policies name it


def _needed(grant: Grant) -> dict[_Kind, int]:
    """Give the largest share of each kind that one GPU must have room for, in thousandths; none that cannot be read."""
    found: dict[_Kind, int] = {}
    by_dra = grant.allocation == DRA
    for one in grant.containers.values():
        size = read_size(one.resource) if by_dra else None
        kind = _Kind(grant.strategy, "" if by_dra else grant.resource, device_name(size.device) if size else "")
        with suppress(ShareError):
            found[kind] = max(found.get(kind, 0), min(int(Share.parse(one.share)), MILLI_PER_GPU))
    return found


def _does_not_fit(on: Installation, kind: _Kind, smallest: int) -> str:
    """Say why no GPU has room for the *smallest* share of a kind."""
    free = [(node, gpu, gpu.free) for node in on.seen.nodes for gpu in _of_kind(node, kind) if gpu.free is not None]
    taking = [(gpu, parts) for node, gpu, parts in free if not node.closed]
    largest = max((gpu.milli(gpu.largest_free or 0) for gpu, _ in taking), default=0)
    if not free or largest >= smallest:
        return ""
    # What is hidden is free as well: it is hidden because no one GPU has room.
    together = sum(gpu.milli(parts + (gpu.hidden or 0)) for gpu, parts in taking)
    having = {node.name: node for node, gpu, _ in free if node.closed and gpu.milli(gpu.largest_free or 0) >= smallest}
    names = ", ".join(cut([f"{node.name} ({', '.join(node.closed)})" for node in having.values()]))
    kept = f"{names}, to which no new pod comes" if having else ""
    if smallest <= together:
        return (
            f"{milli_text(together)} of GPUs is free, the largest share that fits is {milli_text(largest)}, and the "
            f"smallest that waits is {milli_text(smallest)}: no one GPU has room for it{f' but on {kept}' * bool(kept)}"
        )
    return f"the smallest share that waits is {milli_text(smallest)}, and has room only on {kept}" if kept else ""


def _of_kind(node: SeenNode, kind: _Kind) -> Iterator[Gpu]:
    for gpu in node.gpus:
        if (gpu.strategy, gpu.resource) == kind[:2] and (not kind.device or gpu.device in ("", kind.device)):
            yield gpu


def priorities(on: Installation) -> Verdict:
    """See that no pod with a share evicts others in vain: of nodes with several GPUs the scheduler sees sums."""
    numbers = (Counter(gpu.resource for gpu in node.gpus) for node in on.seen.nodes)
    several = {resource for number in numbers for resource, gpus in number.items() if gpus > 1}
    found: dict[str, str] = {}  # by priority class, of which one pod is enough
    for resource in sorted(several - {""}):
        pods = [one for one in on.seen.pods if one.phase in ("Pending", "Running") and _largest(one, resource)]
        least = min(pods, key=_priority, default=None)
        evicting = [one for one in pods if one.pod.spec.preemption_policy != "Never" and _largest(one, resource) > 1]
        for one in evicting:
            if least and _priority(one) > _priority(least):
                by = one.pod.spec.priority_class_name or f"priority {_priority(one)}"
                told = f"{_name(one)} may evict {_name(least)}, and what that frees may be too little on any one GPU"
                found.setdefault(by, f"{by}: {told}")
    return warn(*cut([*found.values()]), hint="preemptionPolicy: Never in the PriorityClass, or let DRA choose the GPU")


def _largest(pod: SeenPod, resource: str) -> int:
    """Give the most vGPUs that a container has of one GPU; 0 of another resource, and of whole GPUs."""
    grant = pod.grant
    if grant is None or grant.resource != resource or grant.strategy == WHOLE:
        return 0
    return max((one.vgpus or 0 for one in grant.containers.values()), default=0)


def _priority(pod: SeenPod) -> int:
    return pod.pod.spec.priority or 0


def numbers(on: Installation) -> Verdict:
    """See that no pod waits with a grant of an earlier vgpusPerGpu: it would get as many vGPUs of the one of now."""
    if missing := not_seen(on, "policies"):
        return missing
    if on.policies is None:
        return OK
    parts_named_by = on.policies.cluster.parts_named_by
    found = [
        f"{_name(pod)}: {container} was granted {one.vgpus} of {one.of} vGPUs, and a GPU is divided into {now} now"
        for pod in on.seen.pods
        if pod.waits and pod.grant is not None
        if (now := parts_named_by(pod.grant.resource)) is not None
        for container, one in pod.grant.containers.items()
        if one.of not in (None, now)
    ]
    return warn(*cut(found), hint="delete the pod, and it is granted anew")


def _late(seen: Seen) -> list[SeenPod]:
    """List the pods that do not run as they should: of one that runs, a container may fail again and again."""
    now = moment(seen.at)
    return [
        one
        for one in seen.pods
        if one.phase not in ("Running", "Succeeded", "Terminating")
        or (one.phase == "Running" and one.why)
        or (one.phase == "Terminating" and _is_overdue(one, now))
    ]


def _is_overdue(pod: SeenPod, now: datetime | None) -> bool:
    """Whether a pod should have ended long ago; its share is held until it has."""
    end = moment(pod.pod.metadata.deletion_timestamp)
    return now is not None and end is not None and now - end > _OVERDUE


def _name(pod: SeenPod) -> str:
    return f"{pod.namespace}/{pod.name}"


WORKLOADS: Final = (
    Check(name="pods-run", says="pods with a share run", page="troubleshooting.md#a-pod-is-pending", judge=running),
    Check(
        name="pods-admitted",
        says="no controller's pods are denied",
        page="troubleshooting.md#a-pod-is-denied",
        judge=denied,
        rests_on=(DENIED_PODS,),
    ),
    Check(
        name="shares-fit",
        says="what waits would fit on one GPU",
        page="troubleshooting.md#fragmentation",
        judge=fits,
        rests_on=(SHARED_PODS, STATES),
    ),
    Check(
        name="evictions-help",
        says="no pod with a share evicts others in vain",
        page="operations.md#pods-with-priorities",
        judge=priorities,
        rests_on=(SHARED_PODS, STATES),
    ),
    Check(
        name="numbers-agree",
        says="what waits was granted by the vgpusPerGpu of now",
        page="operations.md#change-vgpuspergpu",
        judge=numbers,
        rests_on=(SHARED_PODS,),
    ),
)
