"""A pod in sentences: what it asked for, what it was granted and why, where it is, what holds it, and what is wrong."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Final

import msgspec

from console.explain.likeness import ended, not_ready
from console.explain.memory import remedies_of_programs
from console.explain.on_gpus import on_gpus
from console.explain.otherwise import granted_otherwise
from console.explain.placement import judged, placement
from console.explain.remedies import NO_HEALTHY, is_of_another, of_denials, remedies
from console.explain.remedy import Remedy
from console.explain.said import by_kubernetes, by_programs
from console.explain.since import ending, since
from console.explain.subject import EVENTS, Answer, Subject
from console.taints import UNNAMED, node_condition
from console.unscheduled import unscheduled
from console.words import Shown, moment, several
from policies.contract import GRANT_ANNOTATION
from policies.grant import Denied
from policies.reasons import reasons

_UNREAD: Final = f"its grant cannot be read: {GRANT_ANNOTATION} was written by hand, or by another version"


class Section(msgspec.Struct, frozen=True, kw_only=True):
    """A part of an explanation."""

    title: str
    lines: tuple[str, ...]


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """A pod, or an object without pods."""

    title: str
    sections: tuple[Section, ...]


def explanations(answer: Answer) -> tuple[Explanation, ...]:
    """Explain each pod; where there is none, or some are missing, say who denied them; where many, of which most."""
    pods = tuple(_of_pod(one) for one in answer.subjects)
    sections = (*_not_created(answer), *_crowd(answer))
    if not sections:
        return pods
    title = f"{answer.name}: {several(_count(answer), 'pod') if pods else 'no pods'}"
    return (Explanation(title=title, sections=sections), *pods)


def _not_created(answer: Answer) -> Iterator[Section]:
    lines = answer.trouble or (() if answer.subjects or answer.is_over else (_without_pods(answer),))
    if lines:
        yield Section(title="Not created", lines=(*lines, *_what_to_do(of_denials(answer.trouble))))
    if answer.states:
        yield Section(title="State", lines=answer.states)
    if answer.quotas:
        yield Section(title="Quotas", lines=answer.quotas)
    if answer.unseen and not answer.subjects:
        yield Section(title="Not seen", lines=tuple(one.sentence for one in answer.unseen))


def _crowd(answer: Answer) -> Iterator[Section]:
    """Say which of many pods are explained, and how to ask for another one."""
    explained, count = len(answer.subjects), _count(answer)
    if explained == count:
        return
    lines = [f"{explained} of {count} explained: one of each state and revision, those with trouble first"]
    if answer.more:
        lines.append(f"{several(answer.more, 'pod')} in further states or revisions left out")
    lines.append(f"for any other one: gpu-share explain POD -n {answer.subjects[0].pod.namespace}")
    yield Section(title="Pods", lines=tuple(lines))


def _count(answer: Answer) -> int:
    return answer.more + sum(1 + one.alike for one in answer.subjects)


def _without_pods(answer: Answer) -> str:
    hidden = next((one for one in answer.unseen if one.what.startswith(EVENTS)), None)
    if hidden is not None:
        return f"it has no pods, and the events that would say why cannot be read: {hidden.why}"
    return "it has no pods, and no event says that one was denied in the last 20 minutes"


def _of_pod(subject: Subject) -> Explanation:
    pod = subject.pod
    now = moment(subject.seen.at)
    passed = since(pod, now) if now else ""
    on = f" on {pod.node}" if pod.node else ""
    sections = [
        Section(title="Request", lines=subject.asked or ("nothing that asks for a share is written in it",)),
        Section(title="Granted", lines=tuple(_granted(subject))),
        Section(title="Policies of now", lines=tuple(_decided(subject))),
        Section(title="GPU", lines=tuple(on_gpus(subject))),
        Section(title="State", lines=tuple(_state(subject))),
        Section(title="Events", lines=subject.events),
        Section(title="Quotas", lines=subject.quotas),
        Section(title="Not seen", lines=tuple(_unseen(subject))),
    ]
    others = f", and {subject.alike} more like it" if subject.alike else ""
    return Explanation(
        title=f"Pod {pod.namespace}/{pod.name}: {pod.phase}{on}{passed}{others}",
        sections=tuple(one for one in sections if one.lines),
    )


def _granted(subject: Subject) -> Iterator[str]:
    grant = subject.pod.grant
    if grant is None:
        is_there = GRANT_ANNOTATION in subject.pod.pod.metadata.annotations
        yield _UNREAD if is_there else "no grant: gpu-share gave it nothing when it was created"
        return
    attach = f", attached in the {grant.attach}" if grant.attach else ""
    kind = grant.resource or grant.allocation
    yield f"by the policy {grant.policy}: strategy {grant.strategy}{attach}{f', {kind}' if kind else ''}"
    for name, one in grant.containers.items():
        of = f"{one.vgpus} of {one.of} vGPUs" if one.of else one.resource or f"{one.vgpus}"
        yield f'container "{name}": {one.share} of a GPU, {of}'
    for container in (*subject.pod.pod.spec.init_containers, *subject.pod.pod.spec.containers):
        if container.name in grant.containers and container.args:
            yield f'arguments of "{container.name}": {Shown(" ".join(container.args))}'


def _decided(subject: Subject) -> Iterator[str]:
    if subject.decision is None:
        return
    if isinstance(subject.decision, Denied) and subject.pod.grant is not None:
        yield "They would deny the pod, were it created now:"
    yield from reasons(subject.decision)


def _state(subject: Subject) -> Iterator[str]:
    pod = subject.pod
    ends = tuple(ended(pod.pod))
    unready = tuple(f'container "{name}" is not ready' for name in not_ready(pod.pod))
    if pod.phase in ("Running", "Succeeded") and not (pod.why or ends or unready):
        return
    deleted = tuple(ending(pod, moment(subject.seen.at) or datetime.now(UTC)))
    if pod.why or not (ends or unready or deleted):
        yield pod.why or f"{pod.phase}, and {unscheduled(pod) or 'nothing says why'}"
    yield from (*deleted, *ends, *unready, *_unhealthy(subject))
    if otherwise := granted_otherwise(subject):
        yield f"what to do: {otherwise}"
    else:
        yield from _remedies(subject)
    if pod.waits:
        yield from subject.claims
        yield from placement(subject)


def _unhealthy(subject: Subject) -> Iterator[str]:
    """Yield what is wrong with the GPUs of a node on which the kubelet found no healthy one."""
    if NO_HEALTHY in subject.pod.why and not is_of_another(subject.pod.why, _resource(subject)):
        for node in subject.seen.nodes:
            for gpu in node.gpus if node.name == subject.pod.node else ():
                yield from (f"{node.name}: {gpu.called} is unhealthy: {one.why}" for one in gpu.faults)


def _not_named(subject: Subject) -> Iterator[str]:
    """Yield what nodes have of the taints that newer schedulers do not name."""
    if UNNAMED in subject.pod.why:
        yield from (node_condition(why) for node in judged(subject) for why in node.closed)


def _remedies(subject: Subject) -> Iterator[str]:
    pod = subject.pod.pod
    said = (*by_kubernetes(pod), *subject.in_the_way, *_not_named(subject))
    resource = _resource(subject)
    yield from _what_to_do(remedies(one for one in said if not is_of_another(one, resource)))
    if subject.pod.phase != "Succeeded":
        yield from _what_to_do(remedies_of_programs(by_programs(pod), subject.pod, subject.seen))


def _resource(subject: Subject) -> str:
    return subject.pod.grant.resource if subject.pod.grant else ""


def _what_to_do(found: Iterable[Remedy]) -> Iterator[str]:
    for one in found:
        yield f"what to do: {one.what} (docs/{one.page})"


def _unseen(subject: Subject) -> Iterator[str]:
    silent = [one.silent for one in subject.seen.nodes if one.silent and one.name == subject.pod.node]
    undecided = [subject.undecided] if subject.undecided else []
    every = dict.fromkeys((*subject.seen.unseen, *silent, *undecided, *subject.unseen))
    yield from (one.sentence for one in every)
