"""What is held of a node's GPUs at one moment, and what that leaves of each."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain

from plugin.device_plugin.holdings import Holder
from plugin.gpus.gpu import VGpuId
from plugin.shares.parts import free_vgpus


@dataclass(frozen=True, slots=True, kw_only=True)
class Occupied:
    """The held vGPUs by UUID of the GPU that each is on."""

    by_gpu: Mapping[str, Mapping[VGpuId, Holder]] = field(default_factory=dict)
    is_known: bool = False  # the kubelet has said it
    is_incomplete: bool = False  # more may be held than is known
    named: dict[str, set[int]] = field(init=False, default_factory=dict)  # by UUID in the ID, and index

    def __post_init__(self) -> None:
        for vgpu in chain.from_iterable(self.by_gpu.values()):
            self.named.setdefault(vgpu.gpu_uuid, set()).add(vgpu.index)

    def is_lost(self, gpus: Iterable[str]) -> bool:
        """Whether nobody knows of a vGPU that names one of these GPUs on which one it is."""
        return any(not holder.gpu for gpu in gpus for holder in self.by_gpu.get(gpu, {}).values())

    def free(self, gpu: str, *, vgpus_per_gpu: int, but: Collection[str] = ()) -> int:
        """Count what is free of a GPU, were it divided by that number, and as if the IDs in *but* were free too."""
        held = self.by_gpu.get(gpu, {})
        numbers = (holder.of for vgpu, holder in held.items() if not but or str(vgpu) not in but)
        return free_vgpus(numbers, vgpus_per_gpu=vgpus_per_gpu)

    def numbers(self, gpu: str, *, usual: int) -> dict[str, int]:
        """Say of each vGPU that is held on a GPU, by its ID, into how many the GPU was divided for it."""
        return {str(vgpu): holder.of or usual for vgpu, holder in self.by_gpu.get(gpu, {}).items()}

    def earlier(self, gpu: str, *, resource: str, now: int) -> frozenset[int]:
        """Say into how many parts else than *now* a GPU was divided for what is held of it as *resource*."""
        held = self.by_gpu.get(gpu, {}).values()
        return frozenset(holder.of for holder in held if holder.resource in ("", resource)) - {0, now}

    def healthy(self, faults: Collection[str], *, resource: str) -> Iterable[VGpuId]:
        """List the vGPUs that are held as *resource* on GPUs without faults."""
        for gpu, held in self.by_gpu.items():
            if gpu not in faults:
                yield from (vgpu for vgpu, holder in held.items() if holder.resource in ("", resource))
