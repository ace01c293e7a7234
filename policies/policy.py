"""What may stand in a policy file, and the policy that holds for a namespace."""

from functools import lru_cache
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from policies.contract import DEVICE_PLUGIN, MILLI_PER_GPU, Allocation, Strategy
from policies.device_names import GPU_DEVICE, DeviceName, device_name, read_device
from policies.errors import Problem
from policies.form import Section
from policies.host_paths import HostPathRules
from policies.partitions import PartitionName
from policies.placement import Placement
from policies.share import Headroom, Share

_ONE_GPU = Share(MILLI_PER_GPU)


def _share(milli: int) -> Any:
    return msgspec.field(default_factory=lambda: Share(milli))


class ShareRules(Section, frozen=True, kw_only=True):
    """How large a share may be."""

    minimum: Annotated[Share, Meta(description="The smallest share that one container may ask for.")] = _share(1)
    maximum: Annotated[
        Share, Meta(description="The largest share that one container is granted, rounded up to whole vGPUs.")
    ] = _share(MILLI_PER_GPU)
    pod_maximum: Annotated[
        Share | None,
        Meta(
            description="The most that one pod is granted at any moment, over all its containers. "
            "null: one GPU, or `maximum` if that is more."
        ),
    ] = None
    rounding: Annotated[
        Literal["up", "exact"],
        Meta(description="A share that is not a whole number of vGPUs is rounded up with a warning, or denied."),
    ] = "up"
    whole: Annotated[
        Literal["vgpus", "gpus"],
        Meta(
            description="What a pod gets whose shares are all whole numbers: all vGPUs of that many GPUs, or whole "
            "GPUs (`resourceNames.whole`) of nodes that advertise them. A limit keeps the kind it names: vGPUs "
            "whatever this says, so that users who write them by hand keep them, and whole GPUs with gpus alone. "
            "Under strategy mps a container gets the vGPUs of one GPU at most: several are denied."
        ),
    ] = "vgpus"

    @property
    def largest_pod(self) -> Share:
        """The most that one pod may hold."""
        return self.pod_maximum or max(self.maximum, _ONE_GPU)


class MpsRules(Section, frozen=True, kw_only=True):
    """How a pod reaches the MPS daemon of its GPU."""

    attach: Annotated[
        Literal["auto", "pod", "node"],
        Meta(
            description="pod: hostIPC and a hostPath volume in the pod. node: nothing in the pod, the device plugin "
            "mounts what is needed; the only one that Pod Security baseline and restricted admit. auto: node where the "
            "namespace's label pod-security.kubernetes.io/enforce says baseline or restricted, else pod."
        ),
    ] = "auto"
    shared_memory: Annotated[
        Literal["replace", "deny"],
        Meta(
            description="A container with a share that mounts an emptyDir at /dev/shm gets the shared memory of MPS "
            "there instead, with a warning, or its pod is denied."
        ),
    ] = "replace"


class MemoryRules(Section, frozen=True, kw_only=True):
    """How much memory the framework inside is told to take."""

    basis: Annotated[
        Literal["requested", "granted"],
        Meta(description="The fraction is of the share that was asked for, or of the whole vGPUs granted."),
    ] = "requested"
    headroom: Annotated[
        Headroom,
        Meta(
            description="Taken off the fraction for what lies outside the framework's pool, CUDA contexts above all. "
            "A part of one GPU, below `share.minimum`."
        ),
    ] = msgspec.field(default_factory=lambda: Headroom(0))


class FrameworkRules(Section, frozen=True, kw_only=True):
    """How frameworks are recognised, and what happens to a memory setting of the user's own."""

    detect: Annotated[
        bool,
        Meta(
            description="Recognise the framework by image and program, not only by annotation. "
            "What users set is judged in any case."
        ),
    ] = True
    on_conflict: Annotated[
        Literal["lower", "deny"],
        Meta(description="A user's own value above the share is lowered to it with a warning, or denied."),
    ] = "lower"
    unread: Annotated[
        Literal["deny", "warn"],
        Meta(
            description="Where nothing else limits the memory, which is so under time-slicing: a pod that may make a "
            "memory setting that admission cannot read is denied, or admitted with a warning. Say warn where its "
            "users are trusted to keep to their shares. Under mps it is a warning whatever this says. With "
            "`onConflict: deny` it is denied under either."
        ),
    ] = "deny"


class EnvironmentRules(Section, frozen=True, kw_only=True):
    """What happens to variables that would lift a limit."""

    reserved: Annotated[
        Literal["deny", "strip"],
        Meta(
            description="A pod that sets NVIDIA_VISIBLE_DEVICES, CUDA_VISIBLE_DEVICES, CUDA_MPS_*, "
            "NVIDIA_GPU_MEMORY_*, GPU_SHARE_FRACTION or GPU_SHARE_MEMORY_MIB is denied, or they are removed "
            "with a warning."
        ),
    ] = "deny"
    env_from: Annotated[
        Literal["allow", "deny"] | None,
        Meta(
            description="A container with a share that takes variables from ConfigMaps or Secrets as a whole is "
            "admitted or denied: admission cannot see whether a reserved variable is among them. null: admitted where "
            "that would lift no limit, which is so under `handover: [cdi]` of _cluster.yaml, else denied."
        ),
    ] = None


class Policy(Section, frozen=True, kw_only=True):
    """
    The policy of a namespace: what `_default.yaml` and `<namespace>.yaml` hold.

    Every field is optional. A namespace's file overrides `_default.yaml` field by field, and that overrides the
    defaults given here.
    """

    enabled: Annotated[bool, Meta(description="false: no shares in this namespace.")] = True
    mode: Annotated[
        Literal["enforce", "warn"],
        Meta(
            description="warn: a pod that would be denied is admitted unchanged, with a warning that says why. "
            "If it asks by a limit, it gets that share, unchecked. "
            "The namespace needs the label gpu-share.dev/mode=warn too, for the policy in the API server."
        ),
    ] = "enforce"
    strategy: Annotated[
        Strategy,
        Meta(
            description="mps: limits on threads and memory through NVIDIA MPS. time-slicing: turns on the GPU with no "
            "limit on memory; its own resource, no MPS volume, no hostIPC. partition: the smallest partition in "
            "hardware that holds the share, by the plugin of its maker."
        ),
    ] = "mps"
    partition: Annotated[
        PartitionName | None,
        Meta(description="With strategy partition: the name of the partitions in `_cluster.yaml`."),
    ] = None
    allocation: Annotated[
        Allocation,
        Meta(
            description="Who allocates the GPU. device-plugin: the kubelet, from what its node has free. dra: the "
            "scheduler, which sees each GPU, so that a share waits until one GPU has room for it; needs Kubernetes "
            "1.36, and nodes whose GPUs are allocated that way."
        ),
    ] = DEVICE_PLUGIN
    devices: Annotated[
        tuple[DeviceName, ...],
        Meta(
            description="What a share is of: gpu, a `device` that `nodes` of `_cluster.yaml` names, such as t4, or the "
            "MIG instances of a profile, such as mig-1g.10gb, where it says mig: shared or whole. The first is what a "
            "pod gets that does not say; the annotation gpu-share.dev/device can choose another one of them.",
            min_length=1,
            max_length=100,
        ),
    ] = (device_name(GPU_DEVICE),)
    share: ShareRules = msgspec.field(default_factory=ShareRules)
    mps: MpsRules = msgspec.field(default_factory=MpsRules)
    memory: MemoryRules = msgspec.field(default_factory=MemoryRules)
    frameworks: FrameworkRules = msgspec.field(default_factory=FrameworkRules)
    environment: EnvironmentRules = msgspec.field(default_factory=EnvironmentRules)
    host_paths: Annotated[
        HostPathRules,
        Meta(
            description="Paths of the node that pods with a share may mount, and no others. The namespace needs them "
            "in its annotation gpu-share.dev/host-paths too, for the policy in the API server."
        ),
    ] = ()
    placement: Placement = msgspec.field(default_factory=Placement)

    @property
    def shared_devices(self) -> tuple[str, ...]:
        """The devices that a share may be of, in order, as resources name them."""
        return _known_devices(self.devices)


@lru_cache(1024)  # every pod asks, and policies write the same few
def _known_devices(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(device for one in names if (device := read_device(one)) is not None)


class Source(msgspec.Struct, frozen=True, gc=False):
    """Where a field of an effective policy was written."""

    file: str  # empty for a built-in default
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.file else "built-in default"


BUILT_IN = Source(file="", line=0)


class EffectivePolicy(msgspec.Struct, frozen=True, gc=False):
    """The policy that holds for a namespace, and where each of its fields comes from."""

    file: str  # the namespace's own file, else `_default.yaml`, else empty
    name: str  # how logs and grants call it: the namespace, `_default` or `built-in`
    policy: Policy
    places: bool  # whether `placement` says anything
    sources: dict[str, Source]  # by dotted field, such as `share.maximum`; absent for built-in defaults
    broken: Problem | None = None  # why nothing is known of it, and all it could grant is denied

    def source(self, field: str) -> Source:
        """Where *field* was written; a whole field such as `placement.tolerations` counts as one."""
        return self.sources.get(field, BUILT_IN)


_DENIES = Policy(enabled=False)  # also for who does not ask whether a policy is broken


def broken_policy(name: str, problem: Problem) -> EffectivePolicy:
    """Make the policy of a file that cannot be used; *name* is the namespace or `_default`."""
    return EffectivePolicy(f"{name}.yaml", name, _DENIES, places=False, sources={}, broken=problem)
