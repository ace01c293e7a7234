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
    SIZE_RESOURCE_PREFIX,
    WHOLE,
    WHOLE_GPU_RESOURCE_PREFIXES,
    Allocation,
    Handover,
    SharingStrategy,
)
from policies.form import Section, form
from policies.frameworks.framework import Framework
from policies.mig import NO_PROFILE, ProfileName, fault_of_names, profile_in, profile_of, resource_of
from policies.nodes import NodeRule
from policies.partitions import Partition, PartitionName, fault_of
from policies.sizes import is_sized, is_too_fine, too_fine

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


# A pod with one of these beside a share is denied, so a share cannot be one of them; nor can it be a size of DRA's.
_VENDORS = "|".join(prefix.replace(".", r"\.") for prefix in (*WHOLE_GPU_RESOURCE_PREFIXES, SIZE_RESOURCE_PREFIX))

ResourceName = Annotated[
    str,
    form(
        "a resource outside kubernetes.io that is none of a vendor's own plugin and no gpu-share.dev/share-...",
        "example.com/vgpu",
        pattern=rf"(?!{_VENDORS})"
        r"(?!requests\.)(?!.*kubernetes\.io/)([a-z0-9]([-a-z0-9]*[a-z0-9])?\.)+[a-z0-9]([-a-z0-9]*[a-z0-9])?/"
        r"[A-Za-z0-9]([A-Za-z0-9._-]{0,53}[A-Za-z0-9])?",
        max_length=120,
    ),
]


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
            "matches a GPU decides; where none does, `--strategy` of the plugin on its node."
        ),
    ] = ()
    partitions: Annotated[
        dict[PartitionName, Annotated[tuple[Partition, ...], Meta(min_length=1)]],
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
        Meta(description="Additions to the built-in catalogue; an entry with the same name replaces the built-in one."),
    ] = ()

    def __post_init__(self) -> None:
        """Complete the resource names, so that a file may name one of them only."""
        names: dict[SharingStrategy, str] = DEFAULT_RESOURCE_NAMES | self.resource_names
        if len(set(names.values())) < len(names):
            raise ValueError(
                "resourceNames must differ, or the scheduler could not keep the strategies apart: give each its own"
            )
        if fault := fault_of_names(names, has_instances=any(rule.mig != "none" for rule in self.nodes)):
            raise ValueError(fault)
        counts = {profile_of(name) or name: count for name, count in self.vgpus_per_instance.items()}
        if len(counts) < len(self.vgpus_per_instance):
            raise ValueError("vgpusPerInstance has a profile twice, once with + and once with a dot: remove one")
        msgspec.structs.force_setattr(self, "vgpus_per_instance", counts)
        if is_too_fine(self.vgpus_per_gpu) and any(rule.allocation == DRA for rule in self.nodes):
            raise ValueError(too_fine(self.vgpus_per_gpu))
        if self.too_many_for_mps and any(rule.strategy == MPS for rule in self.nodes):
            raise ValueError(self.too_many_for_mps)
        for name, table in self.partitions.items():
            ours = next((one.resource for one in table if _is_ours(one.resource, names)), "")
            fault = f"{name} has {ours}, a resource of gpu-share itself: write the maker's" if ours else ""
            if fault or fault_of(name, table):
                raise ValueError(f"partitions {fault or fault_of(name, table)}")
        msgspec.structs.force_setattr(self, "resource_names", names)

    @property
    def too_many_for_mps(self) -> str:
        """Why no GPU can be shared by MPS; empty if some driver can serve a client in each vGPU."""
        if self.vgpus_per_gpu <= MOST_MPS_CLIENTS:
            return ""
        return (
            f"vgpusPerGpu {self.vgpus_per_gpu} is more than the {MOST_MPS_CLIENTS} clients that MPS has on one GPU: "
            f"at most {MOST_MPS_CLIENTS} under mps, or share by time-slicing"
        )

    def is_ours(self, resource: str) -> bool:
        """Whether an extended resource is a share, or whole GPUs, whoever allocates it."""
        return _is_ours(resource, self.resource_names)

    def resource(self, strategy: SharingStrategy, profile: str = NO_PROFILE) -> str:
        """Name the extended resource of GPUs under a strategy, or of MIG instances with a profile."""
        return resource_of(self.resource_names[strategy], profile)

    def is_of(self, strategy: SharingStrategy, resource: str) -> bool:
        """Whether an extended resource is that of GPUs under a strategy, or of MIG instances under it."""
        return profile_in(resource, self.resource_names[strategy]) is not None

    def profile_of(self, resource: str) -> str | None:
        """Say which profile a resource of the device plugin is of, empty for GPUs; None if it is not ours."""
        found = (profile_in(resource, name) for name in self.resource_names.values())
        return next((one for one in found if one is not None), None)

    def parts(self, strategy: SharingStrategy, profile: str = NO_PROFILE) -> int:
        """Count the vGPUs of one GPU under a strategy, or of one MIG instance with a profile."""
        if strategy == WHOLE:
            return 1
        return self.vgpus_per_instance.get(profile, self.vgpus_per_gpu) if profile else self.vgpus_per_gpu

    @property
    def overrides_pods(self) -> bool:
        """Whether what a container with a share of one GPU receives overrides all variables that its pod sets."""
        return set(self.handover) == {CDI}

    def strategy(self, *, node: str, model: str, index: int, otherwise: SharingStrategy) -> SharingStrategy | None:
        """Return the sharing strategy of a GPU, None for none; *otherwise* where no entry of `nodes` fits."""
        rule = self._rule(node=node, model=model, index=index)
        if rule is None or rule.strategy is None:
            return otherwise
        return None if rule.strategy == "none" else rule.strategy

    def strategy_of_instances(self, *, node: str, model: str, index: int) -> SharingStrategy | None:
        """Return the sharing strategy of the MIG instances of a GPU; None where they are left to others."""
        rule = self._rule(node=node, model=model, index=index)
        return None if rule is None else rule.strategy_of_instances

    def allocation(self, *, node: str, model: str, index: int, otherwise: Allocation) -> Allocation:
        """Say who allocates a GPU; *otherwise* where no entry of `nodes` fits, or it does not say."""
        rule = self._rule(node=node, model=model, index=index)
        return otherwise if rule is None or rule.allocation is None else rule.allocation

    def _rule(self, *, node: str, model: str, index: int) -> NodeRule | None:
        return next((rule for rule in self.nodes if rule.fits(node=node, model=model, index=index)), None)

    def nodes_of(self, node: str) -> tuple[NodeRule, ...]:
        """Return the entries of `nodes` that can select GPUs of the node with this name."""
        return tuple(rule for rule in self.nodes if rule.is_for(node))


def _is_ours(resource: str, names: Mapping[SharingStrategy, str]) -> bool:
    return is_sized(resource) or any(profile_in(resource, name) is not None for name in names.values())
