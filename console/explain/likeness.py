"""Which pods are explained alike, and which an administrator wants to see first."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from console.explain.remedies import remedies
from console.explain.troubles import Gravity, Trouble
from console.explain.wants import Wants
from console.objects import Pod
from console.seen import SeenPod
from policies.contract import GRANT_ANNOTATION

_REVISION_LABELS: Final = ("pod-template-hash", "controller-revision-hash")
_WORST_FIRST: Final = ("Failed", "Pending")
_WELL: Final = ("Running", "Succeeded")


class Likeness(NamedTuple):
    """What pods have in common that are explained alike: messages differ by numbers and names of GPUs alone."""

    rank: int  # the worst first
    phase: str
    is_placed: bool
    troubles: tuple[Trouble, ...]  # of its GPU and node
    reasons: tuple[str, ...]
    remedies: tuple[str, ...]
    revision: tuple[str, ...]
    granted: str
    labels: tuple[str, ...]  # that a pod which waits needs its node to have
    tolerates: frozenset[str]  # keys of taints, likewise


def likeness(pod: Pod, wanted: Wants, troubles: tuple[Trouble, ...]) -> Likeness:
    """Say what is explained of a pod in the same way as of others; *troubles* are those of its GPU and node."""
    seen = SeenPod(pod=pod, grant=None)
    ends = tuple(ended(pod))
    phase = seen.phase
    has_own = phase not in _WELL or bool(seen.why or ends)
    gravities = (*((Gravity.STOPS,) if has_own else ()), *(one.gravity for one in troubles))
    return Likeness(
        rank=_rank(phase, min(gravities, default=None)),
        phase=phase,
        is_placed=bool(seen.node),
        troubles=troubles,
        reasons=tuple(_reasons(pod)),
        remedies=tuple(one.what for one in remedies((seen.why, *ends))),
        revision=tuple(pod.metadata.labels.get(label, "") for label in _REVISION_LABELS),
        granted=pod.metadata.annotations.get(GRANT_ANNOTATION, ""),
        labels=wanted.labels if seen.waits else (),
        tolerates=wanted.tolerates if seen.waits else frozenset(),
    )


def ended(pod: Pod) -> Iterator[str]:
    """Say how containers ended that were started again, or that Kubernetes has more to say of than its reason."""
    for status in (*pod.status.init_container_statuses, *pod.status.container_statuses):
        held = status.last_state.terminated or status.state.terminated
        if held is not None and held.exit_code:
            said = ": ".join(filter(None, (held.reason, held.message)))
            yield f'container "{status.name}" ended with exit code {held.exit_code}: {said or "nothing says why"}'


def _rank(phase: str, gravity: Gravity | None) -> int:
    if phase in _WORST_FIRST:
        return _WORST_FIRST.index(phase)
    return len(_WORST_FIRST) + (len(Gravity) + _WELL.index(phase) if gravity is None else gravity)


def _reasons(pod: Pod) -> Iterator[str]:
    yield pod.status.reason
    yield from (one.reason for one in pod.status.conditions if one.type == "PodScheduled" and one.status == "False")
    for status in (*pod.status.init_container_statuses, *pod.status.container_statuses):
        for held in (status.state.waiting, status.state.terminated, status.last_state.terminated):
            if held is not None:
                yield f"{held.reason} {held.exit_code}"
