"""Which pods are explained alike, and which an administrator wants to see first."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from console.explain.remedies import remedies
from console.objects import Pod
from console.seen import Seen, SeenPod
from policies.contract import GRANT_ANNOTATION

Place = tuple[str, str, str]  # namespace and name of a pod, and its node

_REVISION_LABELS: Final = ("pod-template-hash", "controller-revision-hash")
_WORST_FIRST: Final = ("Failed", "Pending")
_WELL: Final = ("Running", "Succeeded")


class Likeness(NamedTuple):
    """What pods have in common that are explained alike: messages differ by numbers and names of GPUs alone."""

    rank: int  # the worst first
    phase: str
    is_placed: bool
    is_hit: bool  # by what is wrong with its GPU or node
    reasons: tuple[str, ...]
    remedies: tuple[str, ...]
    revision: tuple[str, ...]
    granted: str


def likeness(pod: Pod, *, is_hit: bool) -> Likeness:
    """Say what is explained of a pod in the same way as of others; *is_hit*, whether its GPU or node has a trouble."""
    seen = SeenPod(pod=pod, grant=None)
    ends = tuple(ended(pod))
    phase = seen.phase
    has_trouble = phase not in _WELL or is_hit or bool(seen.why or ends)
    return Likeness(
        rank=_rank(phase, has_trouble=has_trouble),
        phase=phase,
        is_placed=bool(seen.node),
        is_hit=is_hit,
        reasons=tuple(_reasons(pod)),
        remedies=tuple(one.what for one in remedies((seen.why, *ends))),
        revision=tuple(pod.metadata.labels.get(label, "") for label in _REVISION_LABELS),
        granted=pod.metadata.annotations.get(GRANT_ANNOTATION, ""),
    )


def ended(pod: Pod) -> Iterator[str]:
    """Say how containers ended that were started again, or that Kubernetes has more to say of than its reason."""
    for status in (*pod.status.init_container_statuses, *pod.status.container_statuses):
        held = status.last_state.terminated or status.state.terminated
        if held is not None and held.exit_code:
            said = ": ".join(filter(None, (held.reason, held.message)))
            yield f'container "{status.name}" ended with exit code {held.exit_code}: {said or "nothing says why"}'


def place(pod: Pod) -> Place:
    """Say which pod it is, and where."""
    return pod.metadata.namespace, pod.metadata.name, pod.spec.node_name


def hit(seen: Seen) -> frozenset[Place]:
    """Find the pods on whose GPU or node something is wrong."""
    return frozenset(
        (tenant.namespace, tenant.pod, node.name)
        for node, gpu, tenant in seen.tenants()
        if node.trouble
        or not gpu.healthy
        or (gpu.application_fault is not None and tenant.name in gpu.application_fault.tenants)
    )


def _rank(phase: str, *, has_trouble: bool) -> int:
    if phase in _WORST_FIRST:
        return _WORST_FIRST.index(phase)
    return len(_WORST_FIRST) + (0 if has_trouble else 1 + _WELL.index(phase))


def _reasons(pod: Pod) -> Iterator[str]:
    yield pod.status.reason
    yield from (one.reason for one in pod.status.conditions if one.type == "PodScheduled" and one.status == "False")
    for status in (*pod.status.init_container_statuses, *pod.status.container_statuses):
        for held in (status.state.waiting, status.state.terminated, status.last_state.terminated):
            if held is not None:
                yield f"{held.reason} {held.exit_code}"
