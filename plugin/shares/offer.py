"""What a node offers of a GPU: who allocates it, in which parts, and which of these are kept back."""

from dataclasses import dataclass

from plugin.gpus.gpu import Gpu
from plugin.shares.allocation import Allocation
from policies.contract import DEVICE_PLUGIN, SharingStrategy
from policies.contract import Allocation as Allocator


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """One GPU as it can be allocated: in vGPUs by the kubelet, in thousandths by DRA."""

    gpu: Gpu
    strategy: SharingStrategy
    allocation: Allocator
    resource: str  # extended resource; empty where DRA allocates it
    parts: int  # vGPUs, or thousandths
    vgpus_per_gpu: int  # the same by the kubelet; by DRA the grid, of which each share is a multiple
    withheld: frozenset[str] = frozenset()  # IDs of vGPUs that the kubelet may not allocate

    def largest(self, free: int) -> int:
        """Say which is the largest share that fits into so many free parts."""
        if self.allocation == DEVICE_PLUGIN:
            return free
        return max(size for units in range(self.vgpus_per_gpu + 1) if (size := self._size(units)) <= free)

    def held(self, parts: int) -> Allocation:
        """Say what a container holds that has so many parts, as its limits were made from it."""
        parts = min(parts, self.parts)
        units = -(-parts * self.vgpus_per_gpu // self.parts)
        if self._size(units) == parts:
            return Allocation(gpus=(self.gpu,), vgpus=units, vgpus_per_gpu=self.vgpus_per_gpu)
        return Allocation(gpus=(self.gpu,), vgpus=parts, vgpus_per_gpu=self.parts)

    def _size(self, units: int) -> int:
        return self.parts * units // self.vgpus_per_gpu
