"""What a decision says: a grant with all that follows from it, a denial, or nothing to do."""

import msgspec

from policies.changes import RemoveMount, RemoveVariable, ReplaceArgument, SetMountField
from policies.contract import VISIBLE_DEVICES, Allocation, GrantStrategy
from policies.denial import Deny
from policies.frameworks.memory import Advice
from policies.pod import Slot
from policies.policy import EffectivePolicy
from policies.share import Share

ReadOnlyMounts = tuple[tuple[Slot, SetMountField], ...]  # of the node's paths


class ContainerGrant(msgspec.Struct, frozen=True, gc=False):
    """What one container gets."""

    slot: Slot
    vgpus: int  # or whole GPUs
    resource: str  # in its limits, and how many of it
    quantity: int
    share: Share | None  # as asked; None if it was asked as a limit
    share_text: str  # as asked, or the vGPUs as a share, cut to thousandths
    asked_by: str  # the annotation or the resource
    fraction_milli: int  # what its framework is told, in thousandths of one GPU
    tells_its_share: bool  # whether that is the share, or of several GPUs all of one
    advice: Advice
    removed: tuple[RemoveVariable, ...] = ()
    replaced: str = ""  # the resource by which it asked, where the limits have another one instead
    literals: tuple[ReplaceArgument, ...] = ()  # what the kubelet cannot expand by DRA
    unmounted: tuple[RemoveMount, ...] = ()  # what MPS mounts its shared memory instead of


class Hidden(msgspec.Struct, frozen=True, gc=False):
    """A container of the pod that has no share, and must see no GPU."""

    slot: Slot
    removed: tuple[RemoveVariable, ...] = ()
    variables: tuple[str, ...] = (VISIBLE_DEVICES,)  # that hide them


class Grant(msgspec.Struct, frozen=True):
    """A pod that gets what it asks for."""

    policy: EffectivePolicy
    resource: str  # the device plugin's
    vgpus_per_gpu: int  # 1 of whole GPUs
    pipe_directory: str
    strategy: GrantStrategy  # whole: its resource is whole GPUs
    allocation: Allocation  # by dra each container has a resource of its size
    attaches_in_pod: bool  # whether the pod itself carries hostIPC and the MPS volume
    containers: tuple[ContainerGrant, ...]
    hidden: tuple[Hidden, ...]
    read_only: ReadOnlyMounts = ()
    warnings: tuple[str, ...] = ()
    device: str = ""  # that they are parts of; empty for GPUs without a name of their own
    not_taken_by: tuple[str, ...] = ()  # by dra: entries of nodes whose GPUs have other sizes
    partition: str = ""  # the name of the partitions; each container has the resource of one


class Added(msgspec.Struct, frozen=True):
    """Ephemeral containers that are added to a pod with a share, and must see no GPU."""

    policy: EffectivePolicy
    hidden: tuple[Hidden, ...]
    read_only: ReadOnlyMounts = ()
    warnings: tuple[str, ...] = ()


class Untouched(msgspec.Struct, frozen=True):
    """A pod that is admitted as it came."""

    reason: str
    warnings: tuple[str, ...] = ()
    denied: "Denied | None" = None  # what `mode: warn` turned into a warning


class Denied(msgspec.Struct, frozen=True):
    """A pod that is denied."""

    policy: EffectivePolicy
    reasons: tuple[Deny, ...]  # at least one

    @property
    def deny(self) -> Deny:
        """The first reason, as the webhook says it."""
        return self.reasons[0]

    @property
    def message(self) -> str:
        """The first reason, and how many more there are."""
        return self.deny.with_more(len(self.reasons) - 1)


Decision = Grant | Denied | Untouched
