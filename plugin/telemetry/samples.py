"""What the metrics of a node are now, from the document that its parts publish."""

from collections.abc import Iterator
from datetime import datetime

from plugin.health.state import FRESH_SECONDS
from plugin.telemetry.metrics import (
    AGE,
    BUILD,
    DAEMON_READY,
    FAULT,
    FREE,
    GRANTED,
    HEALTHY,
    HIDDEN,
    INFO,
    LARGEST,
    LEFT_OUT,
    MEMORY,
    MEMORY_LIMIT,
    MEMORY_USED,
    NODE_MEMORY,
    NODE_PROCESSES,
    OUTSIDER_MEMORY,
    OUTSIDER_PROCESSES,
    POLICY_TAKEN,
    PROCESSES,
    REGISTERED,
    SHARE,
    SINCE,
    SLICES_PUBLISHED,
    SM_USED,
    TENANTS_KNOWN,
    THREAD_LIMIT,
    VGPUS,
)
from policies.contract import DEVICE_PLUGIN, DRA, MPS
from policies.node_state import Gpu, NodeState, Tenant, left_out
from policies.outsiders import OfNode, Outsider
from program.metrics import Metric, Sample


def plugin_samples(state: NodeState) -> Iterator[Sample]:
    """Say how GPUs are and who holds what of them: what `gpu-share plugin` knows."""
    yield from _of_part(state, ("health", "tenants", "mps"))
    yield Sample(TENANTS_KNOWN, (state.node,), float(not state.tenants_unknown))
    age_seconds = state.ages.health
    if age_seconds is None or age_seconds > FRESH_SECONDS:  # whatever it was, it may be otherwise by now
        return
    yield Sample(POLICY_TAKEN, (state.node,), float(not state.not_taken))
    if state.slices_not_published or any(gpu.allocation == DRA for gpu in state.gpus):
        yield Sample(SLICES_PUBLISHED, (state.node,), float(not state.slices_not_published))
    if state.not_registered or any(gpu.allocation == DEVICE_PLUGIN for gpu in state.gpus):
        yield Sample(REGISTERED, (state.node,), float(not state.not_registered))
    yield Sample(LEFT_OUT, (state.node,), len(left_out(state.skipped)))
    for gpu in state.gpus:
        yield from _of_gpu(gpu, (state.node, str(gpu.index), gpu.uuid))


def mps_samples(state: NodeState) -> Iterator[Sample]:
    """Say what containers take of the GPUs: what `gpu-share mps` measures."""
    yield from _of_part(state, ("use",))
    for gpu in state.gpus:
        labels = (state.node, str(gpu.index), gpu.uuid)
        for tenant in gpu.tenants:
            yield from _of_use(tenant, _labels(labels, tenant))
        for outsider in gpu.outsiders or ():
            yield from _taken(outsider, OUTSIDER_PROCESSES, OUTSIDER_MEMORY, _labels(labels, outsider))
        if gpu.of_node is not None:
            yield from _taken(gpu.of_node, NODE_PROCESSES, NODE_MEMORY, labels)


def _of_part(state: NodeState, facts: tuple[str, ...]) -> Iterator[Sample]:
    yield Sample(BUILD, (state.node, state.part, state.program), 1)
    for kind in facts:
        age_seconds: float | None = getattr(state.ages, kind)
        if age_seconds is not None:
            yield Sample(AGE, (state.node, state.part, kind), age_seconds)


def _of_gpu(gpu: Gpu, labels: tuple[str, str, str]) -> Iterator[Sample]:
    yield Sample(INFO, (*labels, gpu.model, gpu.strategy, gpu.allocation, gpu.resource), 1)
    yield Sample(HEALTHY, labels, float(gpu.healthy))
    for source in {fault.source: None for fault in gpu.faults}:
        yield Sample(FAULT, (*labels, source), 1)
    if gpu.strategy == MPS:
        is_ready = not any(fault.source == MPS for fault in gpu.faults)
        yield Sample(DAEMON_READY, labels, float(is_ready))
    if gpu.memory_bytes is not None:
        yield Sample(MEMORY, labels, gpu.memory_bytes)
    if gpu.vgpus_per_gpu is not None:
        yield Sample(VGPUS, labels, gpu.vgpus_per_gpu)
    counted = ((GRANTED, gpu.granted), (FREE, gpu.free), (HIDDEN, gpu.hidden), (LARGEST, gpu.largest_free))
    for metric, parts in counted:
        if parts is not None:
            yield Sample(metric, labels, gpu.ratio(parts))
    for tenant in gpu.tenants:
        yield from _of_tenant(gpu, tenant, _labels(labels, tenant))


def _of_tenant(gpu: Gpu, tenant: Tenant, labels: tuple[str, ...]) -> Iterator[Sample]:
    yield Sample(SHARE, labels, gpu.ratio(tenant.parts))
    if tenant.memory_limit_bytes is not None:
        yield Sample(MEMORY_LIMIT, labels, tenant.memory_limit_bytes)
    if tenant.thread_limit_ratio is not None:
        yield Sample(THREAD_LIMIT, labels, tenant.thread_limit_ratio)
    if tenant.since is not None:
        yield Sample(SINCE, labels, datetime.fromisoformat(tenant.since).timestamp())


def _of_use(tenant: Tenant, labels: tuple[str, ...]) -> Iterator[Sample]:
    use = tenant.use
    if use is None:
        return
    for metric, value in ((MEMORY_USED, use.memory_bytes), (SM_USED, use.sm_ratio), (PROCESSES, use.processes)):
        if value is not None:
            yield Sample(metric, labels, value)


def _taken(by: Outsider | OfNode, processes: Metric, memory: Metric, labels: tuple[str, ...]) -> Iterator[Sample]:
    yield Sample(processes, labels, by.processes)
    if by.memory_bytes is not None:
        yield Sample(memory, labels, by.memory_bytes)


def _labels(gpu: tuple[str, str, str], tenant: Tenant | Outsider) -> tuple[str, ...]:
    return (*gpu, tenant.namespace, tenant.pod, tenant.container)
