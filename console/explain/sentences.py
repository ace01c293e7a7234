"""A pod in sentences: what it asked for, what it was granted and why, where it is, what holds it, and what is wrong."""

from collections.abc import Iterable, Iterator

import msgspec

from console.explain.likeness import ended, last_ended_at, not_ready
from console.explain.memory import remedies_of_programs
from console.explain.placement import placement
from console.explain.remedies import Remedy, of_denials, remedies
from console.explain.said import by_kubernetes, by_programs
from console.explain.subject import EVENTS, Answer, Subject
from console.seen import SeenPod
from console.taints import UNNAMED, node_condition
from console.words import ABSENT, age, gib, moment, percent, several
from policies.contract import DRA
from policies.grant import Denied, Grant
from policies.node_state import Gpu, Tenant
from policies.reasons import reasons
from policies.share import milli_text

_OVER = ("Succeeded", "Failed")


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
    if answer.subjects and not answer.trouble:
        return
    lines = answer.trouble or (_without_pods(answer),)
    yield Section(title="Not created", lines=(*lines, *_what_to_do(of_denials(answer.trouble))))
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
    passed = f" for {age(_since(pod), now)}" if now else ""
    on = f" on {pod.node}" if pod.node else ""
    sections = [
        Section(title="Request", lines=subject.asked or ("nothing that asks for a share is written in it",)),
        Section(title="Granted", lines=tuple(_granted(subject))),
        Section(title="Policies of now", lines=tuple(_decided(subject))),
        Section(title="GPU", lines=tuple(_place(subject))),
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


def _since(pod: SeenPod) -> str | None:
    """Say since when a pod has its phase, as far as it tells: since it was created, or its last container ended."""
    return last_ended_at(pod.pod) if pod.phase in _OVER else pod.pod.metadata.creation_timestamp


def _granted(subject: Subject) -> Iterator[str]:
    grant = subject.pod.grant
    if grant is None:
        yield "no grant: gpu-share gave it nothing when it was created"
        return
    attach = f", attached in the {grant.attach}" if grant.attach else ""
    kind = grant.resource or grant.allocation
    yield f"by the policy {grant.policy}: strategy {grant.strategy}{attach}{f', {kind}' if kind else ''}"
    for name, one in grant.containers.items():
        of = f"{one.vgpus} of {one.of} vGPUs" if one.of else one.resource or f"{one.vgpus}"
        yield f'container "{name}": {one.share} of a GPU, {of}'
    for container in (*subject.pod.pod.spec.init_containers, *subject.pod.pod.spec.containers):
        if container.name in grant.containers and container.args:
            yield f'arguments of "{container.name}": {" ".join(container.args)}'


def _decided(subject: Subject) -> Iterator[str]:
    if subject.decision is None:
        return
    if isinstance(subject.decision, Denied) and subject.pod.grant is not None:
        yield "They would deny the pod, were it created now:"
    yield from reasons(subject.decision)


def _place(subject: Subject) -> Iterator[str]:
    for one in subject.seen.nodes:
        if one.name != subject.pod.node:
            continue
        if one.ready is False:
            yield f"{one.name}: it is not Ready"
        if one.trouble and not one.silent:
            yield f"{one.name}: {one.trouble}"
    for node, gpu, tenant in subject.seen.tenants():
        if (tenant.namespace, tenant.pod, node.name) != (subject.pod.namespace, subject.pod.name, subject.pod.node):
            continue  # or of an earlier pod of its name, which another node has still
        where = f"{gpu.model} {gpu.uuid} (GPU {gpu.index} of {node.name})"
        yield f'container "{tenant.container}": {_share(gpu, tenant)} of {where}'
        yield from (f"  {line}" for line in _limits(gpu, tenant))
        others = [f"{one.name} ({_share(gpu, one)})" for one in gpu.tenants if one.name != tenant.name]
        nobody = "nobody else" if gpu.unnamed is not None else "nobody else that is known"
        unnamed = f"{milli_text(gpu.milli(gpu.unnamed))} that is of no named container" if gpu.unnamed else ""
        yield f"  with {', and '.join(filter(None, (', '.join(others), unnamed))) or nobody}"
        yield from (f"  the GPU is unhealthy: {fault.why}; it recovers {fault.comes_back}" for fault in gpu.faults)
        last = gpu.application_fault
        if last is not None and tenant.name in last.tenants:
            yield f"  a program on this GPU had a fault, XID {last.xid}, at {last.at}: it may have hit this container"


def _limits(gpu: Gpu, tenant: Tenant) -> Iterator[str]:
    by = gpu.limits_enforced_by
    holds = f"enforced by {by}" if by else "enforced by nothing: the framework is told of it"
    yield f"memory limit {gib(tenant.memory_limit_bytes)}, threads {percent(tenant.thread_limit_ratio)}, {holds}"
    use = tenant.use
    if use is None:
        yield "what it takes now is not known"
    else:
        processes = ABSENT if use.processes is None else str(use.processes)
        yield f"takes now: memory {gib(use.memory_bytes)}, SM {percent(use.sm_ratio)}, processes {processes}"


def _state(subject: Subject) -> Iterator[str]:
    pod = subject.pod
    ends = tuple(ended(pod.pod))
    unready = tuple(f'container "{name}" is not ready' for name in not_ready(pod.pod))
    if pod.phase in ("Running", "Succeeded") and not (pod.why or ends or unready):
        return
    if pod.why or not (ends or unready):
        yield pod.why or f"{pod.phase}, and nothing says why"
    yield from (*ends, *unready)
    if otherwise := _granted_otherwise(subject):
        yield f"what to do: {otherwise}"
    else:
        yield from _remedies(subject)
    if pod.waits:
        yield from subject.claims
        yield from placement(subject)


def _not_named(subject: Subject) -> Iterator[str]:
    """Yield what nodes have of the taints that newer schedulers do not name."""
    if UNNAMED in subject.pod.why:
        yield from (node_condition(why) for node in subject.seen.nodes for why in node.closed)


def _granted_otherwise(subject: Subject) -> str:
    """Say that a pod waits for what the policies grant no more; empty if they would grant the same."""
    before, now = subject.pod.grant, subject.decision
    if not subject.pod.waits or before is None or not isinstance(now, Grant):
        return ""
    by_dra, is_by_dra = before.allocation == DRA, now.allocation == DRA
    if (before.strategy, by_dra) == (now.strategy, is_by_dra):
        return ""
    how, by = f"{before.strategy}{' by dra' * by_dra}", f"{now.strategy}{' by dra' * is_by_dra}"
    return (
        f"it was granted a share under {how}, and its policy says {by} by now: delete the pod, so that the next one is "
        "granted anew (docs/operations.md#change-a-policy)"
    )


def _remedies(subject: Subject) -> Iterator[str]:
    pod = subject.pod.pod
    yield from _what_to_do(remedies((*by_kubernetes(pod), *subject.in_the_way, *_not_named(subject))))
    yield from _what_to_do(remedies_of_programs(by_programs(pod), subject.pod, subject.seen))


def _what_to_do(found: Iterable[Remedy]) -> Iterator[str]:
    for one in found:
        yield f"what to do: {one.what} (docs/{one.page})"


def _unseen(subject: Subject) -> Iterator[str]:
    silent = [one.silent for one in subject.seen.nodes if one.silent and one.name == subject.pod.node]
    undecided = [subject.undecided] if subject.undecided else []
    every = dict.fromkeys((*subject.seen.unseen, *silent, *undecided, *subject.unseen))
    yield from (one.sentence for one in every)


def _share(gpu: Gpu, tenant: Tenant) -> str:
    return milli_text(gpu.milli(tenant.parts))
