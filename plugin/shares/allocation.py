"""
From the vGPUs that the kubelet hands to a container to the GPU they are a share of.

The kubelet treats the preference in `preference` as a hint only: vGPUs of two GPUs can still
arrive here (NVIDIA/k8s-device-plugin#443), and such a share could not be held by anything.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from plugin.errors import AllocationError, NoRoomError
from plugin.gpus.gpu import Gpu, Pool, VGpuId

_MOST_IDS_NAMED = 6  # in a message: it ends up in the pod's status


@dataclass(frozen=True, slots=True, kw_only=True)
class Allocation:
    """What one container holds: a part of one GPU, or whole GPUs."""

    gpus: tuple[Gpu, ...]  # in inventory order
    vgpus: int  # on each of the GPUs
    vgpus_per_gpu: int
    number: int = field(default=0, compare=False)  # in this run of the plugin: that of a later one is greater

    @property
    def is_whole(self) -> bool:
        """Whether nobody else can be on the GPUs."""
        return self.vgpus == self.vgpus_per_gpu


def check_ids(ids: Sequence[str], pool: Pool) -> None:
    """
    See that *ids* can be those of a container.

    Raises:
        AllocationError: If there are none, one comes twice, or one is not of this node.
    """
    if not ids:
        raise AllocationError("a container must get at least one vGPU, got none")
    twice = [text for text, times in Counter(ids).items() if times > 1]
    if twice:
        raise AllocationError(f"a container must get each vGPU once, got {_named(twice)} more than once")
    unknown = [text for text in ids if not pool.has(text)]
    if unknown:
        raise AllocationError(f"the vGPUs must be of this node, {_named(unknown)} is not")


def allocate(ids: Sequence[str], pool: Pool) -> Allocation:
    """
    Allocate *ids* on the GPU that they name, or on the GPUs that they make up whole.

    Raises:
        AllocationError: If `check_ids` says so.
        NoRoomError: If they name several GPUs of which one is not taken whole.
    """
    check_ids(ids, pool)
    if gone := [text for text in ids if pool.gpu(text) is None]:
        raise AllocationError(f"the GPUs must be those of the resource, {_named(gone)} names one that no longer is")
    return _bind(Counter(gpu.uuid for text in ids if (gpu := pool.gpu(text))), ids=ids, pool=pool)


def _bind(vgpus_of: Counter[str], *, ids: Sequence[str], pool: Pool) -> Allocation:
    gpus = tuple(gpu for gpu in pool.gpus if gpu.uuid in vgpus_of)
    if len(gpus) > 1 and any(vgpus_of[gpu.uuid] != pool.vgpus_per_gpu for gpu in gpus):
        spread = ", ".join(f"{vgpus_of[gpu.uuid]} of {pool.vgpus_per_gpu} on {gpu.uuid}" for gpu in gpus)
        raise NoRoomError(f"{len(ids)} vGPUs must lie on one GPU, or be whole GPUs, got {spread}: {_named(ids)}")
    return Allocation(gpus=gpus, vgpus=vgpus_of[gpus[0].uuid], vgpus_per_gpu=pool.vgpus_per_gpu)


def _named(ids: Iterable[str]) -> str:
    """Write IDs in order, and how many more there are beyond the first few."""
    ordered = sorted(ids, key=lambda text: (VGpuId.parse(text) or VGpuId(text, 0), text))
    more = len(ordered) - _MOST_IDS_NAMED
    named = ", ".join(text if text.isprintable() else ascii(text) for text in ordered[:_MOST_IDS_NAMED])
    return f"{named} and {more} more" if more > 0 else named
