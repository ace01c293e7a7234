"""An object that makes pods, and what it or its controllers say of pods that were never created."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from datetime import datetime
from typing import Any, Final

import msgspec

from console.events import Event, Involved
from console.objects import Condition, Metadata, Object, Owner
from console.words import Shown, several

# Conditions by which a workload says that it has no pods, or how it is, with the status that says so.
_TROUBLES: Final = {"ReplicaFailure": "True", "Suspended": "True"}
_ENDED: Final = {"Failed": "True", "Complete": "True", "Succeeded": "True"}  # the last is of Kubeflow's jobs
_ENDING: Final = {**_ENDED, "FailureTarget": "True", "SuccessCriteriaMet": "True"}  # no pod is made any more
_TOO_LATE: Final = "DeadlineExceeded"
# Of a Job of Volcano, by the phase of its state.
_ENDED_PHASES: Final = ("Aborted", "Completed", "Terminated", "Failed")
_ENDING_PHASES: Final = (*_ENDED_PHASES, "Aborting", "Completing", "Terminating")
_STATES: Final = {**_ENDED, "FailureTarget": "True", "Progressing": "False"}

# What a maker makes, and what stands behind its own name there: a hash of a template, or minutes since 1970.
_MADE: Final = {
    "deployment": ("ReplicaSet", re.compile(r"[bcdfghjklmnpqrstvwxz2456789]{1,10}")),
    "cronjob": ("Job", re.compile(r"\d{8,10}")),
}


class RunPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """How a job of Kubeflow is to run."""

    suspend: bool | None = None


class WorkloadSpec(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What is wanted."""

    replicas: int | None = None
    suspend: bool | None = None
    paused: bool = False  # of a Deployment
    run_policy: RunPolicy | None = None

    @property
    def is_suspended(self) -> bool:
        """Whether no pods are wanted for now."""
        return bool(self.suspend or (self.run_policy and self.run_policy.suspend))


class WorkloadStatus(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What there is."""

    conditions: tuple[Condition, ...] = ()
    replicas: int | None = None  # pods that were created; of a Deployment also those of before
    desired_number_scheduled: int | None = None  # of a DaemonSet
    failed: int | None = None  # pods of a Job; where one was stopped, it counts
    succeeded: int | None = None
    state: Any = None  # of a Job of Volcano with its phase, and of a RayCluster a word

    @property
    def phase(self) -> str:
        """The phase of a Job of Volcano; empty of what has none."""
        return Shown(str(self.state.get("phase") or "")) if isinstance(self.state, dict) else ""


class Workload(msgspec.Struct, frozen=True, kw_only=True):
    """A Deployment, ReplicaSet, StatefulSet, DaemonSet, Job or CronJob."""

    metadata: Metadata = Metadata()
    spec: WorkloadSpec = WorkloadSpec()
    status: WorkloadStatus = WorkloadStatus()


def own_words(workload: Workload, told: Collection[str]) -> Iterator[str]:
    """Say what the object itself says of its pods, but for what is *told* by events."""
    if workload.spec.replicas == 0:
        yield "it asks for 0 replicas"
    if workload.spec.is_suspended:
        yield "it is suspended"
    if workload.spec.paused and not (workload.status.replicas or told):
        yield "it is paused, and makes no pods of its template until kubectl rollout resume"
    if workload.status.desired_number_scheduled == 0:
        yield "no node is one for its pods: look at nodeSelector, affinity and tolerations of its template"
    for one in workload.status.conditions:
        if _TROUBLES.get(one.type) == one.status and not (one.message and any(one.message in line for line in told)):
            yield _in_words(one)


def states(workload: Workload) -> Iterator[str]:
    """Say how the object itself says that it is, where that is not how it should be, or it is over."""
    if workload.spec.paused and workload.status.replicas:
        yield "it is paused: its template is not rolled out until kubectl rollout resume"
    yield from (_in_words(one) for one in workload.status.conditions if _STATES.get(one.type) == one.status)
    if workload.status.phase in _ENDING_PHASES:
        yield workload.status.phase


def is_over(workload: Workload) -> bool:
    """Whether it has ended, and makes no pods any more."""
    by_condition = any(_ENDED.get(one.type) == one.status for one in workload.status.conditions)
    return by_condition or workload.status.phase in _ENDED_PHASES


def wants_none(workload: Workload) -> bool:
    """Whether it wants no pods: it is suspended, or over. One that waited in vain for its first pod still says why."""
    ending = [one for one in workload.status.conditions if _ENDING.get(one.type) == one.status]
    never_had_any = not (workload.status.failed or workload.status.succeeded)
    is_too_late = any(one.reason == _TOO_LATE for one in ending)
    is_ending = bool(ending) or workload.status.phase in _ENDING_PHASES
    return workload.spec.is_suspended or (is_ending and not (is_too_late and never_had_any))


def failures(
    events: Iterable[Event], kind: str, name: str, now: datetime, *, wants_pods: Callable[[Involved], bool]
) -> Iterator[str]:
    """
    Say why pods of the object of this *kind* and *name*, or of what it has made, were not created lately: once each.

    *wants_pods* says of an object whether it still wants any.
    """
    newest: dict[tuple[str, str], Event] = {}
    for event in events:
        on = event.involved_object
        if is_of(on, kind, name) and event.is_recent(now):
            before = newest.get((on.kind, on.name), event)
            newest[on.kind, on.name] = max(before, event, key=lambda one: one.order)
    for (by, of), event in sorted(newest.items(), key=lambda one: one[0]):
        if wants_pods(event.involved_object):
            yield f"{by} {of}, {several(event.times, 'time')}: {event.said}"


def is_of(owner: Owner | Involved, kind: str, name: str) -> bool:
    """Whether *owner* is the object of this *kind*, in small letters, and *name*, or one that it has made."""
    if owner.kind.lower() == kind:
        return owner.name == name
    made, suffix = _MADE.get(kind, ("", None))
    before, _, behind = owner.name.rpartition("-")
    return owner.kind == made and before == name and bool(suffix and suffix.fullmatch(behind))


def _in_words(condition: Condition) -> str:
    return ": ".join(filter(None, (condition.type, condition.reason, condition.message)))


def makes(kind: str, name: str, pod: Object) -> bool:
    """Whether the object of this *kind* and *name* made a pod, itself or by another one."""
    return any(is_of(by, kind, name) for by in pod.metadata.owner_references)
