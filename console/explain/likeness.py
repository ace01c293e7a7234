"""Which pods are explained alike, and which an administrator wants to see first."""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from console.explain.remedies import of_programs, remedies
from console.explain.said import by_kubernetes, by_programs, statuses
from console.explain.troubles import Gravity, Trouble, without_single
from console.explain.wants import Wants
from console.objects import Pod
from console.seen import SeenPod
from console.tolerations import Toleration
from policies.contract import GRANT_ANNOTATION

_REVISION_LABELS: Final = ("pod-template-hash", "controller-revision-hash")
_WORST_FIRST: Final = ("Failed", "Pending")
_WELL: Final = ("Running", "Succeeded")
_BETWEEN_PARTS: Final = re.compile(r"[,.:;]\s")  # the scheduler's parts stand in the order of their numbers


class Likeness(NamedTuple):
    """What pods have in common that are explained alike: messages differ by numbers and names of GPUs alone."""

    rank: int  # the worst first
    phase: str
    is_placed: bool
    troubles: tuple[Trouble, ...]  # of its GPU and node
    reasons: tuple[str, ...]
    not_ready: tuple[str, ...]
    remedies: tuple[str, ...]
    revision: tuple[str, ...]
    granted: str
    labels: tuple[str, ...]  # that a pod which waits needs its node to have
    tolerations: frozenset[Toleration]  # likewise
    said: tuple[tuple[str, ...], ...]  # in the parts of its messages

    @property
    def but_for_messages(self) -> "Likeness":
        """What is left where messages differ by more: a program may write anything into its own."""
        return self._replace(said=())


def likeness(pod: Pod, wanted: Wants, troubles: tuple[Trouble, ...], in_the_way: tuple[str, ...] = ()) -> Likeness:
    """
    Say what is explained of a pod in the same way as of others.

    *troubles* are those of its GPU and node; what is *in the way* of it is what events say.
    """
    seen = SeenPod(pod=pod, grant=None)
    ends = tuple(ended(pod))
    phase = seen.phase
    unready = tuple(not_ready(pod))
    has_own = phase not in _WELL or bool(seen.why or ends or unready)
    gravities = (*((Gravity.STOPS,) if has_own else ()), *(one.gravity for one in troubles))
    return Likeness(
        rank=_rank(phase, min(gravities, default=None)),
        phase=phase,
        is_placed=bool(seen.node),
        troubles=troubles,
        reasons=(*_reasons(pod), *(one.partition(":")[0] for one in in_the_way)),
        not_ready=unready,
        remedies=tuple(
            one.what for one in (*remedies((*by_kubernetes(pod), *in_the_way)), *of_programs(by_programs(pod)))
        ),
        revision=tuple(pod.metadata.labels.get(label, "") for label in _REVISION_LABELS),
        granted=pod.metadata.annotations.get(GRANT_ANNOTATION, ""),
        labels=wanted.labels if seen.waits else (),
        tolerations=frozenset(wanted.tolerations) if seen.waits else frozenset(),
        said=tuple(_parts(one, pod.metadata.name) for one in (seen.why, *ends, *in_the_way)),
    )


def ended(pod: Pod) -> Iterator[str]:
    """Say how containers ended that were started again, or that Kubernetes has more to say of than its reason."""
    for status in statuses(pod):
        held = status.last_state.terminated or status.state.terminated
        if held is not None and held.exit_code:
            said = ": ".join(filter(None, (held.reason, held.message)))
            yield f'container "{status.name}" ended with exit code {held.exit_code}: {said or "nothing says why"}'


def not_ready(pod: Pod) -> Iterator[str]:
    """Name the containers that run and are not ready, of which their state says nothing."""
    if pod.status.phase == "Running":
        for status in pod.status.container_statuses:
            if not status.ready and status.state.waiting is None and status.state.terminated is None:
                yield status.name


def _parts(said: str, name: str) -> tuple[str, ...]:
    """Cut what is *said* of the pod of a *name* into parts, without what differs from pod to pod."""
    return tuple(sorted(_BETWEEN_PARTS.split(without_single(said, name))))


def _rank(phase: str, gravity: Gravity | None) -> int:
    if phase in _WORST_FIRST:
        return _WORST_FIRST.index(phase)
    return len(_WORST_FIRST) + (len(Gravity) + _WELL.index(phase) if gravity is None else gravity)


def _reasons(pod: Pod) -> Iterator[str]:
    yield pod.status.reason
    yield from (one.reason for one in pod.status.conditions if one.type == "PodScheduled" and one.status == "False")
    for status in statuses(pod):
        for held in (status.state.waiting, status.state.terminated, status.last_state.terminated):
            if held is not None:
                yield f"{status.name}: {held.reason} {held.exit_code}"
