"""What may stand in `_cluster.yaml`: what the webhook and every node must agree on."""

from typing import Annotated

import msgspec
from msgspec import Meta

from policies.contract import (
    DEFAULT_EXEMPT_NAMESPACES,
    DEFAULT_PIPE_DIRECTORY,
    DEFAULT_RESOURCE_NAMES,
    DEFAULT_VGPUS_PER_GPU,
    Strategy,
)
from policies.frameworks import Framework
from policies.policy import Section

Namespace = Annotated[str, Meta(pattern=r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$(?!\n)")]


class ClusterMps(Section, frozen=True, kw_only=True):
    """Where MPS lives on every node."""

    # A unix socket's path may have 107 bytes: <this>/<UUID, 40 characters>/control_privileged.
    pipe_directory: Annotated[
        str,
        Meta(
            description="Folder on the node that holds one MPS pipe folder per GPU.",
            pattern=r"^(/[A-Za-z0-9_-][A-Za-z0-9._-]*)+$(?!\n)",
            max_length=46,
        ),
    ] = DEFAULT_PIPE_DIRECTORY


ResourceName = Annotated[
    str,
    Meta(
        pattern=r"^(?!requests\.)(?!.*kubernetes\.io/)([a-z0-9]([-a-z0-9]*[a-z0-9])?\.)+[a-z0-9]([-a-z0-9]*[a-z0-9])?/"
        r"[A-Za-z0-9]([A-Za-z0-9._-]{0,53}[A-Za-z0-9])?$(?!\n)",
        max_length=120,
    ),
]


class Cluster(Section, frozen=True, kw_only=True):
    """What webhook and plugin must agree on: `_cluster.yaml`. Every field is optional."""

    resource_names: Annotated[
        dict[Strategy, ResourceName], Meta(description="The extended resource of each strategy.")
    ] = msgspec.field(default_factory=dict)
    vgpus_per_gpu: Annotated[int, Meta(description="vGPUs that one GPU is cut into.", ge=1, le=100)] = (
        DEFAULT_VGPUS_PER_GPU
    )
    mps: ClusterMps = msgspec.field(default_factory=ClusterMps)
    exempt_namespaces: Annotated[
        tuple[Namespace, ...], Meta(description="Namespaces whose pods are never looked at.")
    ] = DEFAULT_EXEMPT_NAMESPACES
    frameworks: Annotated[
        tuple[Framework, ...],
        Meta(description="Additions to the built-in catalogue; an entry with the same name replaces the built-in one."),
    ] = ()

    def __post_init__(self) -> None:
        """Complete the resource names, so that a file may name one of them only."""
        names: dict[Strategy, str] = DEFAULT_RESOURCE_NAMES | self.resource_names
        if len(set(names.values())) < len(names):
            raise ValueError("resourceNames must differ, or the scheduler could not keep the strategies apart")
        msgspec.structs.force_setattr(self, "resource_names", names)
