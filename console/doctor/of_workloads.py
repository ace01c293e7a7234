"""Checks of the pods with a share: which wait or failed."""

from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

from console.doctor.installation import Installation
from console.doctor.of_room import ROOM
from console.doctor.verdict import Check, Verdict, cut, not_listed, policies_of, warn
from console.off_gpu import without_gpu
from console.seen import DENIED_PODS, SHARED_PODS, STATES, Seen, SeenPod
from console.unscheduled import unscheduled
from console.words import age, moment
from policies.contract import WHOLE

_OVERDUE: Final = timedelta(minutes=10)  # after the end of its grace period, or without becoming ready or starting
_STARTING: Final = ("", "ContainerCreating", "PodInitializing", "Completed")  # the last is of an init container


def running(on: Installation) -> Verdict:
    """See that no pod with a share waits or failed."""
    if missing := not_listed(on, SHARED_PODS):
        return missing
    found = [
        f"{_name(one)} is {one.phase}: {one.why or unscheduled(one) or 'nothing says why'}" for one in _late(on.seen)
    ]
    found += _not_ready(on.seen)
    found += (f"{_name(one)} is Running: {off.why}" for one, off in without_gpu(on.seen))
    return warn(*cut(found), hint="gpu-share explain POD -n NAMESPACE")


def denied(on: Installation) -> Verdict:
    """See that no controller's pods are denied."""
    found = [f"{one.namespace}/{one.kind}/{one.name}: {one.message}" for one in on.seen.denials]
    return warn(*cut(found), hint="gpu-share explain KIND/NAME -n NAMESPACE says what to do")


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
    policies = policies_of(on)
    if isinstance(policies, Verdict):
        return policies
    parts_named_by = policies.cluster.parts_named_by
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
        if (one.phase not in ("Running", "Succeeded", "Terminating") and not _is_starting(one, now))
        or (one.phase == "Running" and one.why)
        or (one.phase == "Terminating" and _is_overdue(one, now))
    ]


def _is_starting(pod: SeenPod, now: datetime | None) -> bool:
    """Whether nothing is wrong yet with a pod that is Pending: an image of many GiB takes minutes."""
    status = pod.pod.status
    if now is None or pod.phase != "Pending" or status.reason or status.message:
        return False
    scheduled = next((one for one in status.conditions if one.type == "PodScheduled"), None)
    if scheduled and scheduled.status == "False":
        return False
    states = [one.state for one in (*status.init_container_statuses, *status.container_statuses)]
    held = [one for state in states for one in (state.waiting, state.terminated) if one]
    if any(one.reason not in _STARTING for one in held):
        return False
    # One that waited long for room has only then begun to start.
    since = moment((scheduled and scheduled.last_transition_time) or pod.pod.metadata.creation_timestamp)
    return since is not None and now - since <= _OVERDUE


def _not_ready(seen: Seen) -> Iterator[str]:
    """Say of pods that run, and of which nothing else says what is wrong, that they do not become ready."""
    now = moment(seen.at)
    for pod in seen.pods:
        for one in pod.pod.status.conditions if pod.phase == "Running" and not pod.why and now else ():
            since = one.last_transition_time or pod.pod.metadata.creation_timestamp
            at = moment(since)
            if one.type == "Ready" and one.status == "False" and now and at and now - at > _OVERDUE:
                why = ": ".join(filter(None, (one.reason, one.message))) or "nothing says why"
                yield f"{_name(pod)} is Running, and not Ready for {age(since, now)}: {why}"


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
    ROOM,
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
