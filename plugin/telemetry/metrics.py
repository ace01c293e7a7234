"""Which metrics a node has: their names, labels and meanings, and which of its parts says them."""

from typing import Final

from program.metrics import Metric

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
OUTSIDER_PROCESSES: Final = Metric(
    name="gpu_share_processes_without_share",
    meaning="Processes on a GPU of a container that has no share of it; of a GPU the 50 containers that take most.",
    source=_NVML,
    labels=_TENANT,
)
OUTSIDER_MEMORY: Final = Metric(
    name="gpu_share_memory_used_without_share_bytes",
    meaning="Memory of a GPU that such a container takes. Missing where NVML does not tell.",
    source=_NVML,
    labels=_TENANT,
)
NODE_PROCESSES: Final = Metric(
    name="gpu_share_node_processes",
    meaning="Processes of the node itself that compute on a GPU, those of MPS left out. Missing where there are none.",
    source=_NVML,
    labels=_GPU,
)
NODE_MEMORY: Final = Metric(
    name="gpu_share_node_memory_used_bytes",
    meaning="Memory of a GPU that these take. Missing where NVML does not tell.",
    source=_NVML,
    labels=_GPU,
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
    *(SHARE, MEMORY_LIMIT, THREAD_LIMIT, SINCE, TENANTS_KNOWN),
    *(POLICY_TAKEN, SLICES_PUBLISHED, REGISTERED, LEFT_OUT, AGE, BUILD),
)
MPS_METRICS: Final = (
    *(MEMORY_USED, SM_USED, PROCESSES),
    *(OUTSIDER_PROCESSES, OUTSIDER_MEMORY, NODE_PROCESSES, NODE_MEMORY),
    *(AGE, BUILD),
)
