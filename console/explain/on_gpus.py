"""On which GPUs the containers of a pod are, with whom, what holds them to their share, and what they take."""

from collections.abc import Iterator

from console.explain.subject import Subject
from console.explain.troubles import may_have_hit
from console.off_gpu import OffGpus
from console.unnamed import unnamed_parts
from console.words import ABSENT, gib, percent
from policies.contract import MILLI_PER_GPU
from policies.node_state import Gpu, Tenant
from policies.share import milli_text


def on_gpus(subject: Subject) -> Iterator[str]:
    """Say it in lines, with what is wrong with node and GPUs."""
    for one in subject.seen.nodes:
        if one.name != subject.pod.node:
            continue
        if one.ready is False:
            yield f"{one.name}: it is not Ready"
        if one.trouble and not one.silent:
            yield f"{one.name}: {one.trouble}"
    if off := OffGpus(subject.seen).of(subject.pod):
        yield off.why
        yield f"what to do: {off.remedy} (docs/{off.page})"
    for node, gpu, tenant in subject.seen.tenants():
        if (tenant.namespace, tenant.pod, node.name) != (subject.pod.namespace, subject.pod.name, subject.pod.node):
            continue  # or of an earlier pod of its name, which another node has still
        where = f"{gpu.model} {gpu.uuid} (GPU {gpu.index} of {node.name})"
        yield f'container "{tenant.container}": {_share(gpu, tenant)} of {where}'
        yield from (f"  {line}" for line in _limits(gpu, tenant))
        nobody = "nobody else" if unnamed_parts(gpu) is not None else "nobody else that is known"
        yield f"  with {', and '.join(_others(gpu, tenant)) or nobody}"
        yield from (f"  the GPU is unhealthy: {fault.why}; it recovers {fault.comes_back}" for fault in gpu.faults)
        last = gpu.application_fault
        if last is not None and may_have_hit(last, tenant, subject.pod.pod):
            yield f"  a program on this GPU had a fault, XID {last.xid}, at {last.at}: it may have hit this container"


def _limits(gpu: Gpu, tenant: Tenant) -> Iterator[str]:
    by = gpu.limits_enforced_by
    holds = f"enforced by {by}" if by else "enforced by nothing: the framework is told of it"
    if tenant.memory_limit_bytes is None and gpu.milli(tenant.parts) == MILLI_PER_GPU:
        yield "no limits: all of the GPU is its own"
    else:
        yield f"memory limit {gib(tenant.memory_limit_bytes)}, threads {percent(tenant.thread_limit_ratio)}, {holds}"
    use = tenant.use
    if use is None:
        yield "what it takes now is not known"
    else:
        processes = ABSENT if use.processes is None else str(use.processes)
        yield f"takes now: memory {gib(use.memory_bytes)}, SM {percent(use.sm_ratio)}, processes {processes}"


def _others(gpu: Gpu, tenant: Tenant) -> Iterator[str]:
    named = [f"{one.name} ({_share(gpu, one)})" for one in gpu.tenants if one.name != tenant.name]
    if named:
        yield ", ".join(named)
    if unnamed := unnamed_parts(gpu):
        yield f"{milli_text(gpu.milli(unnamed))} that is of no named container"


def _share(gpu: Gpu, tenant: Tenant) -> str:
    return milli_text(gpu.milli(tenant.parts))
