"""A pod in sentences: what it asked for, what it was granted and why, where it is, what holds it, and what is wrong."""

from collections.abc import Iterator

import msgspec

from console.explain.placement import placement
from console.explain.remedies import remedy
from console.explain.subject import Answer, Subject
from console.words import ABSENT, age, gib, moment, percent, several
from policies.contract import MILLI_PER_GPU
from policies.grant import Denied
from policies.node_state import Gpu, Tenant
from policies.reasons import reasons
from policies.share import milli_text


class Section(msgspec.Struct, frozen=True, kw_only=True):
    """A part of an explanation."""

    title: str
    lines: tuple[str, ...]


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """A pod, or an object without pods."""

    title: str
    sections: tuple[Section, ...]


def explanations(answer: Answer) -> tuple[Explanation, ...]:
    """Explain each pod; where there is none, say who denied it."""
    if answer.subjects:
        return tuple(_of_pod(one) for one in answer.subjects)
    told = tuple(f"{one.kind} {one.name}, {several(one.count, 'time')}: {one.message}" for one in answer.denials)
    lines = told or ("it has no pods, and no event says that one was denied in the last 20 minutes",)
    return (Explanation(title=f"{answer.name}: no pods", sections=(Section(title="Denied", lines=lines),)),)


def _of_pod(subject: Subject) -> Explanation:
    pod = subject.pod
    now = moment(subject.seen.at)
    passed = f" for {age(pod.pod.metadata.creation_timestamp, now)}" if now else ""
    on = f" on {pod.node}" if pod.node else ""
    sections = [
        Section(title="Request", lines=subject.asked or ("nothing that asks for a share is written in it",)),
        Section(title="Granted", lines=tuple(_granted(subject))),
        Section(title="Policies of now", lines=tuple(_decided(subject))),
        Section(title="GPU", lines=tuple(_place(subject))),
        Section(title="State", lines=tuple(_state(subject))),
        Section(title="Events", lines=subject.events),
        Section(title="Not seen", lines=tuple(_unseen(subject))),
    ]
    return Explanation(
        title=f"Pod {pod.namespace}/{pod.name}: {pod.phase}{on}{passed}",
        sections=tuple(one for one in sections if one.lines),
    )


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
    for node, gpu, tenant in subject.seen.tenants():
        if (tenant.namespace, tenant.pod) != (subject.pod.namespace, subject.pod.name):
            continue
        where = f"{gpu.model} {gpu.uuid} (GPU {gpu.index} of {node.name})"
        yield f'container "{tenant.container}": {_share(gpu, tenant)} of {where}'
        yield from (f"  {line}" for line in _limits(gpu, tenant))
        others = [f"{one.name} ({_share(gpu, one)})" for one in gpu.tenants if one.name != tenant.name]
        yield f"  with {', '.join(others)}" if others else "  with nobody else"
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
    if pod.phase in ("Running", "Succeeded") and not pod.why:
        return
    yield pod.why or f"{pod.phase}, and nothing says why"
    if found := remedy(pod.why):
        yield f"what to do: {found.what} (docs/{found.page})"
    if pod.phase == "Pending" and not pod.node:
        yield from placement(subject)


def _unseen(subject: Subject) -> Iterator[str]:
    silent = [one.silent for one in subject.seen.nodes if one.silent and one.name == subject.pod.node]
    for one in (*subject.seen.unseen, *silent, *([subject.undecided] if subject.undecided else [])):
        yield one.sentence


def _share(gpu: Gpu, tenant: Tenant) -> str:
    return milli_text(MILLI_PER_GPU * tenant.parts // gpu.parts)
