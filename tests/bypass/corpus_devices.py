"""Attempts to get a GPU another way than by the share: annotations, other plugins and schedulers, claims."""

from collections.abc import Iterator
from typing import Any

from tests.bypass.attempt import Attempt, by_policy, by_webhook, forged, with_spec
from tests.bypass.corpus_whole import forged_whole
from tests.policies.pods import container, limited, pod

ANNOTATIONS = (
    # The Container Device Interface, by whoever reads it from annotations; NVIDIA's toolkit has a domain of its own.
    "cdi.k8s.io/gpu",
    "cdi.k8s.io/nvidia.com_gpu",
    "nvidia.cdi.k8s.io/container.main",
    "nvidia.cdi.k8s.io/pod",
    "nvidia.cdi.k8s.io",
    "other.cdi.k8s.io/x",
    # Plugins of the Node Resource Interface, by their new domain and by the old ones.
    "devices.nri.io/container.main",
    "devices.nri.io/pod",
    "devices.nri.io",
    "cdi-devices.nri.io/container.main",
    "mounts.nri.io/pod",
    "network-devices.nri.io/pod",
    "devices.noderesource.dev/container.main",
    "devices.noderesource.dev",
    "cdi-devices.noderesource.dev/pod",
    "mounts.noderesource.dev/container.main",
    "sysctl.noderesource.dev/pod",
    "ulimits.noderesource.dev/container.main",
    "ulimits.nri.containerd.io/container.main",
    "netdevices.nri.containerd.io/eth1",
    "writable-cgroups.noderesource.dev",
    "required-plugins.noderesource.dev/container.main",
    "tomorrow.noderesource.dev",
    # The same by Google's plugin.
    "devices.gke.io/container.main",
    "devices.gke.io/pod",
    "devices.gke.io",
    # Koordinator's agent on the node, for what its scheduler writes at binding.
    "scheduling.koordinator.sh/device-allocated",
    # CRI-O.
    "io.kubernetes.cri-o.Devices",
    "io.kubernetes.cri-o.ShmSize",
    "io.kubernetes.cri-o.UnifiedCgroup",
    "io.kubernetes.cri-o.cgroup2-mount-hierarchy-rw",
    "io.kubernetes.cri-o.userns-mode",
    "io.kubernetes.cri-o.tomorrow",
    "devices.crio.io",
    "shm-size.crio.io",
    "unified-cgroup.crio.io/main",
    "platform-runtime-path.crio.io",
    "link-logs.crio.io",
    "seccomp-profile.crio.io/POD",
    # What CRI-O, and other runtimes that are told to, pass on to runc, crun, Kata Containers and gVisor.
    "org.systemd.property.DeviceAllow",
    "org.criu.config",
    "run.oci.handler",
    "run.oci.hooks.stdout",
    "run.oci.seccomp.receiver",
    "io.katacontainers.config.hypervisor.default_gpus",
    "io.katacontainers.config.hypervisor.hot_plug_vfio",
    "dev.gvisor.spec.mount.x.source",
    "dev.gvisor.flag.nvproxy",
    "io.containers.trace-syscall/main",
    "io.kubernetes.cri.untrusted-workload",
)
HARMLESS_ANNOTATIONS = (
    "prefer-isolated-cpus.resource-policy.nri.io/container.main",
    "balloon.balloons.resource-policy.nri.io",
    "policy.memory-policy.nri.io/container.main",
    "memory-policy.noderesource.dev/pod",
    "cpu-load-balancing.crio.io",
    "irq-load-balancing.crio.io/main",
    "io.kubernetes.cri-o.TrySkipVolumeSELinuxLabel",
    "try-skip-volume-selinux-label.crio.io",
    "io.kubernetes.cri-o.umask",
    "umask.crio.io",
    "io.kubernetes.cri-o.DisableFIPS",
    "seccomp-notifier-action.crio.io",
    "networking.gke.io/interfaces",
    "scheduling.koordinator.sh/resource-status",
    "scheduling.koordinator.sh/device-allocated-x",
    "container.apparmor.security.beta.kubernetes.io/main",
    "kubernetes.io/psp",
    "k8s.v1.cni.cncf.io/networks",
    "cdi.k8s.io.example.com/x",
    "mycdi.k8s.iox/a",
    "example.com/cdi.k8s.io",
    "run.ocicl.dev/x",
)
RESOURCES = (
    "nvidia.com/gpumem",
    "nvidia.com/gpumem-percentage",
    "nvidia.com/gpucores",
    "nvidia.com/vgpu",
    "nvidia.com/pgpu",
    "nvidia.com/GH100_H100_PCIE",
    "nvidia.com/GRID_T4-1Q",
    "hami.io/gpu",
    "volcano.sh/vgpu-number",
    "volcano.sh/gpu-memory",
    "aliyun.com/gpu-mem",
    "aliyun.com/gpu-core.percentage",
    "tencent.com/vcuda-core",
    "tke.cloud.tencent.com/qgpu-core",
    "koordinator.sh/gpu-core",
    "elasticgpu.io/gpu-memory",
    "vke.volcengine.com/mgpu-memory",
    "k8s.amazonaws.com/vgpu",
    "smarter-devices/nvidia0",
    "example.com/Shared-GPU",
    "amd.com/cpx_nps1",
    "gpu.intel.com/xe",
    "habana.ai/gaudi",
    "deviceclass.resource.kubernetes.io/gpu.nvidia.com",
    "deviceclass.resource.kubernetes.io/anything",
)
HARMLESS_RESOURCES = ("nvidia.com/hostdev", "rdma/hca_shared_devices_a", "hugepages-2Mi", "vpc.amazonaws.com/efa")
CLAIM = [{"name": "gpu", "resourceClaimTemplateName": "gpu"}]
RUNTIME, NEVER, ANOTHER = "by which a container runtime", "never both", "of another"


def other_devices() -> list[Attempt]:
    """List every attempt."""
    return [*_annotations(), *_resources(), *_requests()]


def annotated(on: dict[str, Any], key: str, value: str = "nvidia.com/gpu=all") -> dict[str, Any]:
    on["metadata"]["annotations"][key] = value
    return on


def _annotations() -> Iterator[Attempt]:
    for key in ANNOTATIONS:
        yield by_webhook(f"the annotation {key}", "ReservedAnnotation", annotated(pod("0.2"), key))
        yield by_policy(f"the annotation {key} by another webhook", RUNTIME, annotated(forged(), key))
    for key in HARMLESS_ANNOTATIONS:
        yield Attempt(f"the annotation {key}", annotated(pod("0.2"), key, "runtime/default"), "harmless")
    device = "cdi.k8s.io/gpu"
    sliced = annotated(pod("0.2"), device)
    yield by_webhook(f"{device} with a time-sliced share", "ReservedAnnotation", sliced, "strategy: time-slicing")
    whole = annotated(pod("1"), device)
    yield by_webhook(f"{device} with a whole GPU", "ReservedAnnotation", whole, "share: {whole: gpus}")
    yield by_policy(f"{device} with a forged grant of a whole GPU", RUNTIME, annotated(forged_whole(), device))


def _resources() -> Iterator[Attempt]:
    for name in RESOURCES:
        beside = pod("0.2", container(), limited("beside", "1", name))
        yield by_webhook(f"{name} beside the share", "ConflictingRequest", beside)
        late = forged()
        late["spec"]["containers"][0]["resources"]["limits"][name] = "1"
        yield by_policy(f"{name} that another webhook adds", NEVER, late)
    for name in HARMLESS_RESOURCES:
        asked = {"limits": {name: "1Gi", "cpu": 1} if name.startswith("huge") else {name: "1"}}
        yield Attempt(f"{name} beside the share", pod("0.2", container(resources=asked)), "harmless")
    zero = container(resources={"limits": {"nvidia.com/gpumem": "0"}})
    yield Attempt("none of another plugin's resource", pod("0.2", zero), "harmless")
    init = pod("0.2", initContainers=[limited("i", "1", "nvidia.com/gpucores")])
    yield by_webhook("another plugin's resource in an init container", "ConflictingRequest", init)


def _requests() -> Iterator[Attempt]:
    code = "ConflictingRequest"
    for key in ("gpu-fraction", "gpu-memory"):
        yield by_webhook(f"the annotation {key} of another scheduler", code, annotated(pod("0.2"), key, "0.5"))
        yield by_policy(f"the annotation {key} by another webhook", ANOTHER, annotated(forged(), key, "0.5"))
    claiming = container(resources={"claims": [{"name": "gpu"}]})
    yield by_webhook("a resource claim", code, pod("0.2", claiming, resourceClaims=CLAIM))
    yield by_webhook("a resource claim of the pod alone", code, pod("0.2", resourceClaims=CLAIM))
    named = [{"name": "gpu", "resourceClaimName": "mine"}]
    yield by_webhook("a resource claim by name", code, pod("0.2", resourceClaims=named))
    yield by_policy("a resource claim by another webhook", NEVER, with_spec(forged(), resourceClaims=CLAIM))
