"""
Every name that two parts must agree on: annotations, resources, variables, IDs.

Users write some of these into their pods, so a change here is a change of the product.
"""

from typing import Final, Literal

Strategy = Literal["mps", "time-slicing", "partition"]  # as a policy's `strategy` names it
VgpuStrategy = Literal["mps", "time-slicing"]  # of vGPUs
MPS: Final = "mps"
TIME_SLICING: Final = "time-slicing"
# The sharing strategy of a GPU: cut into vGPUs that share it by MPS or time-slicing, or whole.
SharingStrategy = Literal["mps", "time-slicing", "whole"]
WHOLE: Final = "whole"
# Partitions are cut and allocated by the GPU's maker: a strategy of policies, and none of our plugin's.
PARTITION: Final = "partition"
GrantStrategy = Literal["mps", "time-slicing", "whole", "partition"]

# Who allocates the GPU: the kubelet with the device plugin, or the scheduler by Dynamic Resource Allocation.
Allocation = Literal["device-plugin", "dra"]
DEVICE_PLUGIN: Final = "device-plugin"
DRA: Final = "dra"

# The request, as users write it.
SHARE_ANNOTATION: Final = "gpu-share"
SHARE_ANNOTATION_ALIAS: Final = "gpu-share.dev/share"
CONTAINER_ANNOTATION_PREFIX: Final = "container.gpu-share.dev/"
FRAMEWORK_ANNOTATION: Final = "gpu-share.dev/framework"
FRAMEWORK_ANNOTATION_PREFIX: Final = "framework.gpu-share.dev/"
NO_FRAMEWORK: Final = "none"
DEVICE_ANNOTATION: Final = "gpu-share.dev/device"  # what the share is of: gpu, or mig- and a profile
DEFAULT_CONTAINER_ANNOTATION: Final = "kubectl.kubernetes.io/default-container"
MIRROR_ANNOTATION: Final = "kubernetes.io/config.mirror"  # on the API's copy of a static pod

# The paths of the webhook. The API server sees the labels of a namespace, and says by the path what they mean.
MUTATE_PATH: Final = "/mutate"
MUTATE_RESTRICTED_PATH: Final = "/mutate/restricted"
POD_SECURITY_LABEL: Final = "pod-security.kubernetes.io/enforce"
RESTRICTED_LEVELS: Final = ("baseline", "restricted")

# The answer, as the webhook writes it.
GRANT_ANNOTATION: Final = "gpu-share.dev/grant"
SHARED_LABEL: Final = "gpu-share.dev/shared"
MPS_VOLUME: Final = "nvidia-mps"

# On containers in the container runtime's eyes, not on pods: which part of which GPU the device plugin has answered.
HELD_ANNOTATION: Final = "gpu-share.dev/held"

# Namespaces with this label may scrape our pods.
SCRAPER_LABEL: Final = "gpu-share.dev/scraper"

# Shares are whole thousandths of one GPU.
MILLI_PER_GPU: Final = 1000

# How a container gets its GPU and its limits on the node. What comes by CDI alone overrides what its pod sets.
Handover = Literal["envvar", "cdi", "devices"]
CDI: Final = "cdi"

# Defaults of `_cluster.yaml`.
DEFAULT_HANDOVER: Final[tuple[Handover, ...]] = ("envvar",)
DEFAULT_RESOURCE_NAMES: Final[dict[SharingStrategy, str]] = {
    MPS: "gpu-share.dev/vgpu",
    TIME_SLICING: "gpu-share.dev/vgpu-timesliced",
    WHOLE: "gpu-share.dev/gpu",
}
DEFAULT_VGPUS_PER_GPU: Final = 10
DEFAULT_PIPE_DIRECTORY: Final = "/tmp/nvidia-mps"  # noqa: S108 - where CUDA looks by default
DEFAULT_EXEMPT_NAMESPACES: Final = ("kube-system",)

# By DRA each size is a resource and a DeviceClass of its own: `gpu-share.dev/share-200m`, `share-200m.gpu-share.dev`.
DRIVER: Final = "gpu-share.dev"
SIZE_RESOURCE_PREFIX: Final = "gpu-share.dev/share-"
SIZE_CLASS_PREFIX: Final = "share-"
SIZE_CLASS_SUFFIX: Final = f".{DRIVER}"
IMPLICIT_RESOURCE_PREFIX: Final = "deviceclass.resource.kubernetes.io/"  # Kubernetes makes one of each DeviceClass
MOST_MPS_CLIENTS: Final = 60  # CUDA contexts on one GPU under MPS, from CUDA 13.1 on
MPS_CLIENTS_BEFORE_CUDA_13_1: Final = 48  # which any driver serves
MOST_GPUS_TOGETHER: Final = 8  # whole GPUs in one device: those of one machine, as most are built

# A device ID is `<GPU UUID>::<n>`: NVIDIA's plugin writes it so, and dcgm-exporter splits at `::`.
DEVICE_ID_SEPARATOR: Final = "::"

# What the plugin sets in a container, and what an image or a pod could use to reach past its share.
VISIBLE_DEVICES: Final = "NVIDIA_VISIBLE_DEVICES"
NO_DEVICES: Final = "void"
CUDA_VISIBLE_DEVICES: Final = "CUDA_VISIBLE_DEVICES"
AMD_VISIBLE_DEVICES: Final = "AMD_VISIBLE_DEVICES"
HABANA_VISIBLE_DEVICES: Final = "HABANA_VISIBLE_DEVICES"
MPS_PIPE_DIRECTORY: Final = "CUDA_MPS_PIPE_DIRECTORY"
MPS_THREAD_PERCENTAGE: Final = "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"
MPS_MEMORY_LIMIT: Final = "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"
SHARE_FRACTION: Final = "GPU_SHARE_FRACTION"
SHARE_MEMORY_MIB: Final = "GPU_SHARE_MEMORY_MIB"

# A pod may set none of these itself: its own `env` beats what the device plugin sets.
RESERVED_VARIABLES: Final = frozenset({VISIBLE_DEVICES, CUDA_VISIBLE_DEVICES, SHARE_FRACTION, SHARE_MEMORY_MIB})
RESERVED_VARIABLE_PREFIXES: Final = ("CUDA_MPS_", "NVIDIA_GPU_MEMORY_")


# In pods with a partition too: they choose devices of AMD (https://rocm.docs.amd.com/en/latest/conceptual/gpu-isolation.html
# and https://instinct.docs.amd.com/projects/container-toolkit) and Gaudi (https://docs.habana.ai/en/latest/Orchestration/
# Multiple_Tenants_on_HPU). CUDA_VISIBLE_DEVICES, which HIP reads as well, is among those above.
PARTITION_VARIABLES: Final = frozenset(
    {
        AMD_VISIBLE_DEVICES,
        "ROCR_VISIBLE_DEVICES",
        "HIP_VISIBLE_DEVICES",
        "GPU_DEVICE_ORDINAL",
        HABANA_VISIBLE_DEVICES,
        "HABANA_VISIBLE_MODULES",
    }
)
# What hides the devices of a maker from a container, as its container runtime reads it.
HIDES: Final = {VISIBLE_DEVICES: NO_DEVICES, AMD_VISIBLE_DEVICES: "none", HABANA_VISIBLE_DEVICES: "none"}


def is_reserved(variable: str, *, partitioned: bool = False) -> bool:
    """Whether a pod may not set *variable* itself; in pods with partitions there are more."""
    if partitioned and variable in PARTITION_VARIABLES:
        return True
    return variable in RESERVED_VARIABLES or variable.startswith(RESERVED_VARIABLE_PREFIXES)


# What a container under MPS may have of the driver: MPS limits no graphics.
DRIVER_CAPABILITIES: Final = "NVIDIA_DRIVER_CAPABILITIES"
COMPUTE_CAPABILITIES: Final = ("compat32", "compute", "utility", "video")


def is_denied(variable: str, value: str | None, *, under: GrantStrategy) -> bool:
    """
    Whether a container with a share *under* a strategy is denied for a *variable* that somebody sets in it.

    The API server's policy denies the same, whoever sets it. *value* is None where it cannot be read.
    """
    if is_reserved(variable, partitioned=under == PARTITION):
        return True
    if under != MPS or variable != DRIVER_CAPABILITIES:
        return False
    return value is None or any(part.strip() not in ("", *COMPUTE_CAPABILITIES) for part in set(value.split(",")))


# Whole GPUs of the vendors' own device plugins, which cannot be ours too.
WHOLE_GPU_RESOURCE_PREFIXES: Final = (
    "nvidia.com/gpu",
    "nvidia.com/mig-",
    "amd.com/gpu",
    "gpu.intel.com/",
)

# A pod has a share or GPUs by another way, never both. These patterns are in the API server's policies too, so they are
# written in what RE2 and Python have in common. docs/security.md lists who reads which annotation.
OTHER_GPU_RESOURCES: Final = (
    "(?i:gpu|cuda)|/[^/]*(?i:nvidia)|^nvidia[.]com/(mig-|[A-Z])"
    "|^(amd[.]com|habana[.]ai|deviceclass[.]resource[.]kubernetes[.]io)/"
)
OTHER_SHARE_ANNOTATIONS: Final = ("gpu-fraction", "gpu-memory")  # of NVIDIA's KAI scheduler
DEVICE_ANNOTATIONS: Final = (
    "^([^/]+[.])?(cdi[.]k8s[.]io|crio[.]io|nri[.]io|noderesource[.]dev|nri[.]containerd[.]io|devices[.]gke[.]io)(/|$)"
    "|^(io[.]kubernetes[.]cri-o|io[.]katacontainers|dev[.]gvisor|run[.]oci|org[.]systemd[.]property|org[.]criu)[.]"
    "|^io[.](kubernetes[.]cri[.]untrusted-workload|containers[.]trace-syscall)(/|$)"
    "|^scheduling[.]koordinator[.]sh/device-allocated$"
)
# Of the same domains, and about processors, memory and what a container's own processes may do.
TUNING_ANNOTATIONS: Final = (
    "^([^/]+[.])?((resource-policy|memory-policy|memory-qos|memtierd)[.]nri[.]io|memory-policy[.]noderesource[.]dev)(/|$)"
    "|^((cpu|irq)-[a-z-]+|try-skip-volume-selinux-label|umask|disable-fips|seccomp-notifier-action)[.]crio[.]io(/|$)"
    "|^io[.]kubernetes[.]cri-o[.](TrySkipVolumeSELinuxLabel|umask|DisableFIPS|seccompNotifierAction)(/|$)"
)

# What a container in a pod with a share may add to its capabilities: those of Pod Security's baseline, and those that
# change what it may do in its own namespaces and cgroup. Any other one reaches the node, or is not known yet.
ALLOWED_CAPABILITIES: Final = (
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "IPC_LOCK",
    "KILL",
    "LEASE",
    "MKNOD",
    "NET_ADMIN",
    "NET_BIND_SERVICE",
    "NET_BROADCAST",
    "NET_RAW",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
    "SYS_NICE",
    "SYS_PTRACE",
    "SYS_RESOURCE",
)

# What is installed, and how the parts find each other in the cluster.
NAMESPACE: Final = "gpu-share"
POLICIES_CONFIG_MAP: Final = "gpu-share-policies"
CLUSTER_CONFIG_MAP: Final = "gpu-share-cluster"
POLICIES_VOLUME: Final = "policies"  # of all our pods that read policy files
WEBHOOK_SERVICE: Final = "gpu-share-webhook"
WEBHOOK_CONFIGURATION: Final = "gpu-share"
WEBHOOK_NAME: Final = "pods.gpu-share.dev"  # of the webhook in it that is called for most pods
RESTRICTED_WEBHOOK_NAME: Final = "restricted-pods.gpu-share.dev"  # where Pod Security forbids hostIPC and hostPath
EPHEMERAL_WEBHOOK_NAME: Final = "ephemeral-containers.gpu-share.dev"
WEBHOOK_NAMES: Final = (
    WEBHOOK_NAME,
    RESTRICTED_WEBHOOK_NAME,
    EPHEMERAL_WEBHOOK_NAME,
)  # all of them have the same caBundle
SERVING_SECRET: Final = "gpu-share-webhook-tls"  # noqa: S105 - a name
CA_SECRET: Final = "gpu-share-authority"  # noqa: S105 - a name
NODE_LABEL: Final = "gpu-share.dev/node"  # "true" on nodes whose GPUs are shared
HOST_PATHS_ANNOTATION: Final = "gpu-share.dev/host-paths"  # on namespaces whose policy lists hostPaths: "/a,/b:rw"
MODE_LABEL: Final = "gpu-share.dev/mode"  # "warn" on namespaces whose policy says mode: warn
