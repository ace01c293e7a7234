"""What may stand in `_cluster.yaml`: what the webhook and every node must agree on."""

from collections.abc import Mapping
from typing import Annotated

import msgspec
from msgspec import Meta

from policies.contract import (
    CDI,
    DEFAULT_EXEMPT_NAMESPACES,
    DEFAULT_HANDOVER,
    DEFAULT_PIPE_DIRECTORY,
    DEFAULT_RESOURCE_NAMES,
    DEFAULT_VGPUS_PER_GPU,
    DRA,
    MOST_MPS_CLIENTS,
    MPS,
    WHOLE,
    Allocation,
    Handover,
    SharingStrategy,
)
from policies.device_names import (
    GPU_DEVICE,
    ResourceName,
    device_in,
    fault_of_names,
    is_instance,
    profile_of_device,
    resource_of,
)
from policies.form import Section, form
from policies.frameworks.framework import Framework
from policies.host_paths import fault_of_pipes
from policies.mig import ProfileName, profile_of
from policies.mps_clients import too_many_clients
from policies.nodes import NodeRule, fault_of_numbers
from policies.partitions import MOST_PARTITIONS, Partition, PartitionName, fault_of
from policies.sizes import is_sized, is_too_fine, too_fine

_MOST_FRAMEWORKS = 64  # each is looked for in every pod with a share: they make the dearest pods cost half as much more

NAMESPACE_PATTERN = r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
Namespace = Annotated[str, form("the name of a namespace", "kube-system", pattern=NAMESPACE_PATTERN)]


class ClusterMps(Section, frozen=True, kw_only=True):
    """Where MPS lives on every node."""

    # A unix socket's path may have 107 bytes: <this>/<UUID, 40 characters>/control_privileged.
    pipe_directory: Annotated[
        str,
        form(
            "an absolute path of at most 46 characters, with no . or .. and no / at its end",
            DEFAULT_PIPE_DIRECTORY,
            pattern=r"(/[A-Za-z0-9_-][A-Za-z0-9._-]*)+",
            max_length=46,
        ),
        Meta(description="Directory on the node that holds one MPS pipe directory per GPU."),
    ] = DEFAULT_PIPE_DIRECTORY

    def __post_init__(self) -> None:
        """Check that pods may write where the pipes are."""
        if fault := fault_of_pipes(self.pipe_directory):
            raise ValueError(f"pipeDirectory {fault}")


class Cluster(Section, frozen=True, kw_only=True):
    """What webhook and plugin must agree on: `_cluster.yaml`. Every field is optional."""

    resource_names: Annotated[
        dict[SharingStrategy, ResourceName],
        Meta(description="The extended resource of each strategy, and of whole GPUs."),
    ] = msgspec.field(default_factory=dict)
    vgpus_per_gpu: Annotated[
        int,
        Meta(
            description="vGPUs that one GPU is divided into. Under mps at most as many as MPS serves clients: "
            f"{MOST_MPS_CLIENTS}, and 48 with drivers before CUDA 13.1.",
            ge=1,
            le=100,
            examples=[DEFAULT_VGPUS_PER_GPU],
        ),
    ] = DEFAULT_VGPUS_PER_GPU
    vgpus_per_instance: Annotated[
        dict[ProfileName, Annotated[int, Meta(ge=1, le=MOST_MPS_CLIENTS, examples=[6])]],
        Meta(
            description="vGPUs that one MIG instance is divided into, by its profile; else vgpusPerGpu. MPS serves "
            "fewer clients on an instance than on a GPU, in proportion to its compute slices: 6 of 48 on 1 slice of 7."
        ),
    ] = msgspec.field(default_factory=dict)
    mps: ClusterMps = msgspec.field(default_factory=ClusterMps)
    handover: Annotated[
        tuple[Handover, ...],
        Meta(
            description="How a container gets its GPU and its limits: by variables (envvar), as a CDI device, which "
            "overrides what the pod sets (cdi), as device nodes (devices), or by several of these.",
            min_length=1,
        ),
    ] = DEFAULT_HANDOVER
    nodes: Annotated[
        tuple[NodeRule, ...],
        Meta(
            description="The sharing strategy of some GPUs. Each entry selects GPUs by `node` and `model` (* and ? "
            "allowed) and `indexes`; its `offer` is their strategy: mps, time-slicing, whole or none. The first that "
            "matches a GPU decides; where none does, `--strategy` of the plugin on its node. `device` and "
            "`vgpusPerGpu` give them resources and a number of vGPUs of their own."
        ),
    ] = ()
    partitions: Annotated[
        dict[PartitionName, Annotated[tuple[Partition, ...], Meta(min_length=1, max_length=MOST_PARTITIONS)]],
        Meta(
            description="Partitions of a GPU, and whole devices, by a name that the policy of a namespace picks. Each "
            "entry says which part of one GPU, `share`, the `resource` of its maker's plugin is."
        ),
    ] = msgspec.field(default_factory=dict)
    exempt_namespaces: Annotated[
        tuple[Namespace, ...], Meta(description="Namespaces whose pods are admitted unchanged, whatever they ask for.")
    ] = DEFAULT_EXEMPT_NAMESPACES
    frameworks: Annotated[
        tuple[Framework, ...],
        Meta(
            description="Additions to the built-in catalogue; an entry with the same name replaces the built-in one.",
            max_length=_MOST_FRAMEWORKS,
        ),
    ] = ()

    def __post_init__(self) -> None:
        """Complete the resource names, so that a file may name one of them only; check what the types cannot say."""
        names: dict[SharingStrategy, str] = DEFAULT_RESOURCE_NAMES | self.resource_names
        counts = {profile_of(name) or name: count for name, count in self.vgpus_per_instance.items()}
        if fault := self._fault_of_names(names) or self._fault_of_numbers(counts) or self._fault_of_partitions(names):
            raise ValueError(fault)
        msgspec.structs.force_setattr(self, "resource_names", names)
        msgspec.structs.force_setattr(self, "vgpus_per_instance", counts)

    def _fault_of_names(self, names: Mapping[SharingStrategy, str]) -> str:
        if len(set(names.values())) < len(names):
            return "resourceNames must differ, or the scheduler could not keep the strategies apart: give each its own"
        has_instances = any(rule.mig != "none" for rule in self.nodes)
        return fault_of_names(names, has_instances=has_instances, models=self.models) or fault_of_numbers(self.nodes)

    def _fault_of_numbers(self, per_instance: Mapping[str, int]) -> str:
        if len(per_instance) < len(self.vgpus_per_instance):
            return "vgpusPerInstance has a profile twice, once with + and once with a dot: remove one"
        divided = [rule for rule in self.nodes if rule.vgpus_per_gpu is None and rule.strategy not in ("none", WHOLE)]
        if is_too_fine(self.vgpus_per_gpu) and any(rule.allocation == DRA for rule in divided):
            return too_fine(self.vgpus_per_gpu)
        is_under_mps = any(rule.strategy == MPS for rule in divided)
        return too_many_clients(self.vgpus_per_gpu) if is_under_mps else ""

    def _fault_of_partitions(self, names: Mapping[SharingStrategy, str]) -> str:
        for name, table in self.partitions.items():
            ours = next((one.resource for one in table if _is_ours(one.resource, names)), "")
            fault = f"{name} has {ours}, a resource of gpu-share itself: write the maker's" if ours else ""
            if fault := fault or fault_of(name, table):
                return f"partitions {fault}"
        return ""

    @property
    def models(self) -> tuple[str, ...]:
        """The devices that `nodes` gives a name, each once."""
        return tuple(dict.fromkeys(rule.of_device for rule in self.nodes if rule.device is not None))

    def is_ours(self, resource: str) -> bool:
        """Whether an extended resource is a share, or whole GPUs, whoever allocates it."""
        return _is_ours(resource, self.resource_names)

    def resource(self, strategy: SharingStrategy, device: str = GPU_DEVICE) -> str:
        """Name the extended resource of a device under a strategy."""
        return resource_of(self.resource_names[strategy], device)

    def is_of(self, strategy: SharingStrategy, resource: str) -> bool:
        """Whether an extended resource is that of some device under a strategy."""
        return device_in(resource, self.resource_names[strategy]) is not None

    def device_named_by(self, resource: str) -> str | None:
        """Say which device a resource of the device plugin is of; None if it is not ours."""
        found = (device_in(resource, name) for name in self.resource_names.values())
        return next((one for one in found if one is not None), None)

    def own_parts(self, device: str) -> int | None:
        """Count the vGPUs of one GPU, or MIG instance, by the device's own number; None if it is the cluster's."""
        if device == GPU_DEVICE:
            return None
        if is_instance(device):
            return self.vgpus_per_instance.get(profile_of_device(device))
        numbers = (rule.vgpus_per_gpu for rule in self.nodes if rule.of_device == device)
        return next((number for number in numbers if number is not None), None)

    @property
    def own_numbers(self) -> frozenset[int]:
        """The numbers of vGPUs that are not the cluster's."""
        of_models = (number for rule in self.nodes if (number := rule.vgpus_per_gpu) is not None)
        return frozenset((*self.vgpus_per_instance.values(), *of_models))

    def parts(self, strategy: SharingStrategy, device: str = GPU_DEVICE) -> int:
        """Count the vGPUs of one GPU, or of one MIG instance, under a strategy."""
        return 1 if strategy == WHOLE else self.own_parts(device) or self.vgpus_per_gpu

    def parts_named_by(self, resource: str) -> int | None:
        """Count the vGPUs of one GPU in the unit of *resource*; None if that is none of the device plugin's vGPUs."""
        for strategy, name in self.resource_names.items():
            device = device_in(resource, name)
            if device is not None and strategy != WHOLE:
                return self.parts(strategy, device)
        return None

    @property
    def overrides_pods(self) -> bool:
        """Whether what a container with a share of one GPU receives overrides all variables that its pod sets."""
        return set(self.handover) == {CDI}

    def strategy(self, *, node: str, model: str, index: int, otherwise: SharingStrategy) -> SharingStrategy | None:
        """Return the sharing strategy of a GPU, None for none; *otherwise* where no entry of `nodes` fits."""
        rule = self.rule(node=node, model=model, index=index)
        if rule is None or rule.strategy is None:
            return otherwise
        return None if rule.strategy == "none" else rule.strategy

    def strategy_of_instances(self, *, node: str, model: str, index: int) -> SharingStrategy | None:
        """Return the sharing strategy of the MIG instances of a GPU; None where they are left to others."""
        rule = self.rule(node=node, model=model, index=index)
        return None if rule is None else rule.strategy_of_instances

    def allocation(self, *, node: str, model: str, index: int, otherwise: Allocation) -> Allocation:
        """Say who allocates a GPU; *otherwise* where no entry of `nodes` fits, or it does not say."""
        rule = self.rule(node=node, model=model, index=index)
        return otherwise if rule is None or rule.allocation is None else rule.allocation

    def rule(self, *, node: str, model: str, index: int) -> NodeRule | None:
        """Return the entry of `nodes` that decides on a GPU; None if none fits."""
        return next((rule for rule in self.nodes if rule.fits(node=node, model=model, index=index)), None)

    def nodes_of(self, node: str) -> tuple[NodeRule, ...]:
        """Return the entries of `nodes` that can select GPUs of the node with this name."""
        return tuple(rule for rule in self.nodes if rule.is_for(node))


def _is_ours(resource: str, names: Mapping[SharingStrategy, str]) -> bool:
    return is_sized(resource) or any(device_in(resource, name) is not None for name in names.values())
