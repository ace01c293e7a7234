"""The metrics of a node, from the document that its parts publish."""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from plugin.health.state import FRESH_SECONDS
from policies.contract import DEVICE_PLUGIN, DRA, MPS
from policies.node_state import Gpu, NodeState, Tenant, left_out
from program.metrics import Metric, Sample

_NODE = ("node",)
_GPU = ("node", "gpu", "gpu_uuid")
_TENANT = (*_GPU, "namespace", "pod", "container")

_HEALTH = "NVML, by `gpu-share plugin`"
_KUBELET = "the kubelet's PodResources, by `gpu-share plugin`"
_OURS = "what `gpu-share plugin` told the container"
_NVML = "NVML's processes, by `gpu-share mps`"

INFO: Final = Metric(
    name="gpu_share_gpu_info",
    meaning="1 for each GPU, with its model and how it is shared.",
    source=_HEALTH,
    labels=(*_GPU, "model", "strategy", "allocation", "resource"),
)
HEALTHY: Final = Metric(
    name="gpu_share_gpu_healthy", meaning="Whether containers may start on a GPU: 1 or 0.", source=_HEALTH, labels=_GPU
)
FAULT: Final = Metric(
    name="gpu_share_gpu_fault",
    meaning="1 for each kind of fault that a GPU has now, such as xid, lost, nvml or mps.",
    source=_HEALTH,
    labels=(*_GPU, "fault"),
)
DAEMON_READY: Final = Metric(
    name="gpu_share_mps_daemon_ready",
    meaning="Whether the MPS daemon of a GPU serves containers: 1 or 0. Only GPUs that are shared by MPS have one.",
    source="`gpu-share mps`",
    labels=_GPU,
)
MEMORY: Final = Metric(
    name="gpu_share_gpu_memory_bytes", meaning="Memory of a GPU that shares are of.", source=_HEALTH, labels=_GPU
)
VGPUS: Final = Metric(
    name="gpu_share_gpu_vgpus",
    meaning="Number of vGPUs of a GPU that the kubelet allocates; none by DRA.",
    source="`vgpusPerGpu` of `_cluster.yaml`",
    labels=_GPU,
)
GRANTED: Final = Metric(
    name="gpu_share_gpu_granted_ratio",
    meaning="Part of a GPU that containers hold, from 0 to 1.",
    source=_KUBELET,
    labels=_GPU,
)
FREE: Final = Metric(
    name="gpu_share_gpu_free_ratio",
    meaning="Part of a GPU that can be allocated now, from 0 to 1; 0 while it is unhealthy.",
    source=_KUBELET,
    labels=_GPU,
)
HIDDEN: Final = Metric(
    name="gpu_share_gpu_hidden_ratio",
    meaning="Part of a healthy GPU that nobody holds and that is kept from new containers, from 0 to 1.",
    source=_KUBELET,
    labels=_GPU,
)
LARGEST: Final = Metric(
    name="gpu_share_gpu_largest_free_ratio",
    meaning="The largest share that still fits on a GPU, from 0 to 1.",
    source=_KUBELET,
    labels=_GPU,
)
SHARE: Final = Metric(
    name="gpu_share_granted_ratio",
    meaning="Share of a GPU that a container holds, from 0 to 1.",
    source=_KUBELET,
    labels=_TENANT,
)
MEMORY_LIMIT: Final = Metric(
    name="gpu_share_memory_limit_bytes",
    meaning="Memory of a GPU that a container may take: enforced by MPS, else what frameworks are told.",
    source=_OURS,
    labels=_TENANT,
)
THREAD_LIMIT: Final = Metric(
    name="gpu_share_thread_limit_ratio",
    meaning="Part of a GPU's threads that a container may use at once, from 0 to 1, under MPS.",
    source=_OURS,
    labels=_TENANT,
)
SINCE: Final = Metric(
    name="gpu_share_granted_timestamp_seconds",
    meaning="When a container got its share, in seconds since 1970. Missing if it had it before anyone looked.",
    source=_KUBELET,
    labels=_TENANT,
)
MEMORY_USED: Final = Metric(
    name="gpu_share_memory_used_bytes",
    meaning="Memory of a GPU that the processes of a container take now. Missing where NVML does not tell.",
    source=_NVML,
    labels=_TENANT,
)
SM_USED: Final = Metric(
    name="gpu_share_sm_utilization_ratio",
    meaning="Part of the time in which a container ran a kernel on a GPU, 0 to 1. Missing where NVML does not tell.",
    source=_NVML,
    labels=_TENANT,
)
PROCESSES: Final = Metric(
    name="gpu_share_processes",
    meaning="Processes of a container on a GPU. Missing where NVML does not tell.",
    source=_NVML,
    labels=_TENANT,
)
AGE: Final = Metric(
    name="gpu_share_facts_age_seconds",
    meaning="How old what is known is, by kind: health, tenants, mps, use. Health that is older than 20 s is left out.",
    source="the part that is asked",
    labels=(*_NODE, "part", "facts"),
)
TENANTS_KNOWN: Final = Metric(
    name="gpu_share_tenants_known",
    meaning="Whether the kubelet says who holds which share: 1 or 0.",
    source=_KUBELET,
    labels=_NODE,
)
POLICY_TAKEN: Final = Metric(
    name="gpu_share_cluster_policy_taken",
    meaning="Whether a node takes `_cluster.yaml` as it is now: 1, or 0 while it is broken or some is `not taken`.",
    source="`gpu-share plugin`",
    labels=_NODE,
)
SLICES_PUBLISHED: Final = Metric(
    name="gpu_share_slices_published",
    meaning="Whether the scheduler sees the GPUs of a node that DRA allocates as they are: 1, or 0 while their "
    "ResourceSlices cannot be published. Missing where DRA is not used.",
    source="`gpu-share plugin`",
    labels=_NODE,
)
REGISTERED: Final = Metric(
    name="gpu_share_resources_registered",
    meaning="Whether the kubelet of a node knows all extended resources of its plugin: 1, or 0 once it has not known "
    "one for half a minute. Missing where DRA allocates all GPUs.",
    source="`gpu-share plugin`",
    labels=_NODE,
)
LEFT_OUT: Final = Metric(
    name="gpu_share_gpus_left_out",
    meaning="Number of GPUs of a node that should be shared, and cannot be, whole or some of their MIG instances; "
    "none in MIG mode whose instances are left to NVIDIA's plugin.",
    source=_HEALTH,
    labels=_NODE,
)
BUILD: Final = Metric(
    name="gpu_share_build_info",
    meaning="1, with the version of gpu-share.",
    source="the part that is asked",
    labels=(*_NODE, "part", "version"),
)

PLUGIN_METRICS: Final = (
    *(INFO, HEALTHY, FAULT, DAEMON_READY, MEMORY, VGPUS, GRANTED, FREE, HIDDEN, LARGEST),
    *(
        SHARE,
        MEMORY_LIMIT,
        THREAD_LIMIT,
        SINCE,
        TENANTS_KNOWN,
        POLICY_TAKEN,
        SLICES_PUBLISHED,
        REGISTERED,
        LEFT_OUT,
        AGE,
        BUILD,
    ),
)
MPS_METRICS: Final = (MEMORY_USED, SM_USED, PROCESSES, AGE, BUILD)


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
        for tenant in gpu.tenants:
            yield from _of_use(tenant, _labels((state.node, str(gpu.index), gpu.uuid), tenant))


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


def _labels(gpu: tuple[str, str, str], tenant: Tenant) -> tuple[str, ...]:
    return (*gpu, tenant.namespace, tenant.pod, tenant.container)
