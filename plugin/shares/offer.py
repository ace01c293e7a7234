"""What a node offers of a GPU: who allocates it, in which parts, and what is left of it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import NamedTuple

from plugin.gpus.gpu import Gpu, VGpuId
from plugin.shares.allocation import Allocation
from plugin.shares.parts import free_vgpus, part
from policies.contract import DEVICE_PLUGIN, MILLI_PER_GPU, SharingStrategy
from policies.contract import Allocation as Allocator


class Outlived(NamedTuple):
    """Of a GPU, what processes use that outlive their pods, and what is left beside that and all else that is held."""

    used: Fraction
    left: Fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """
    One GPU as it can be allocated.

    It is counted in `parts`: vGPUs, or thousandths by DRA, and while containers hold vGPUs of an earlier number.
    """

    gpu: Gpu
    strategy: SharingStrategy
    allocation: Allocator
    resource: str  # extended resource; empty where DRA allocates it
    device: str  # that shares of it are of
    vgpus_per_gpu: int  # by DRA the grid, of which each share is a multiple
    left: tuple[int, int] = (0, 0)  # vGPUs that are free, and those of them that are hidden; not by DRA
    advertised: int | None = None  # vGPUs that the kubelet is told are healthy; None by DRA
    numbers: Mapping[str, int] = field(default_factory=dict)  # by ID: how many to the GPU, of each held vGPU
    claimed: frozenset[str] = frozenset()  # devices of DRA that claims hold on it, by name
    outlived: Outlived | None = None  # None where nothing is

    @property
    def parts(self) -> int:
        """How many parts the GPU has."""
        is_usual = self.allocation == DEVICE_PLUGIN and all(one == self.vgpus_per_gpu for one in self.numbers.values())
        return self.vgpus_per_gpu if is_usual else MILLI_PER_GPU

    def parts_of(self, vgpus: Iterable[VGpuId]) -> int:
        """Count the parts that vGPUs on this GPU are; what is less than one is nobody's."""
        held = part(self.numbers.get(str(vgpu), self.vgpus_per_gpu) for vgpu in vgpus)
        return min(self.parts, held * self.parts // 1)

    def free_parts(self, held: int) -> tuple[int, int]:
        """Count the free parts, those that are hidden left out, and the hidden ones, where so many are *held*."""
        if self.allocation != DEVICE_PLUGIN:
            most = self.parts * self.outlived.left // 1 if self.outlived else self.parts  # whoever is named
            return max(0, min(self.parts - held, most)), 0
        free, hidden = (Fraction(vgpus, self.vgpus_per_gpu) * self.parts // 1 for vgpus in self.left)
        return free - hidden, hidden

    @property
    def outlived_parts(self) -> int:
        """Count the parts that processes use which outlive their pods."""
        return min(self.parts, self.parts * self.outlived.used // 1) if self.outlived else 0

    def largest(self, free: int) -> int:
        """Say which is the largest share that fits into so many free parts."""
        return max(size for units in range(self.vgpus_per_gpu + 1) if (size := self._size(units)) <= free)

    def are_all_named(self, vgpus: Iterable[VGpuId], devices: Iterable[str]) -> bool:
        """Whether these are all that is held of the GPU, and nothing can be held that nobody knows of."""
        is_all = frozenset(map(str, vgpus)).issuperset(self.numbers) and self.claimed.issubset(devices)
        # Where more may be held than is known, nothing is free.
        free = free_vgpus(self.numbers.values(), vgpus_per_gpu=self.vgpus_per_gpu)
        return is_all and (self.allocation != DEVICE_PLUGIN or self.left[0] == free)

    def limits_of(self, vgpus: Iterable[VGpuId], parts: int) -> Allocation:
        """Say what a container with these vGPUs on this GPU holds, as its limits were made from it."""
        own = [str(vgpu) for vgpu in vgpus]
        if own:
            per_gpu = self.numbers.get(own[0], self.vgpus_per_gpu)
            return Allocation(gpus=(self.gpu,), vgpus=min(len(own), per_gpu), vgpus_per_gpu=per_gpu)
        units = -(-min(parts, self.parts) * self.vgpus_per_gpu // self.parts)
        if self._size(units) == parts:
            return Allocation(gpus=(self.gpu,), vgpus=units, vgpus_per_gpu=self.vgpus_per_gpu)
        return Allocation(gpus=(self.gpu,), vgpus=min(parts, self.parts), vgpus_per_gpu=self.parts)

    def _size(self, units: int) -> int:
        return self.parts * units // self.vgpus_per_gpu
