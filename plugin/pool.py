"""The GPUs of this node, and the vGPUs that they are handed out as."""

from collections.abc import Iterator
from dataclasses import dataclass

from plugin.vgpu import VGpuId


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """One physical GPU, as it was first seen."""

    uuid: str  # NVML UUID, stable across reboots
    index: int  # NVML's number; it can be another GPU's after one has vanished
    minor: int | None  # of its device node, /dev/nvidia<minor>; None where there is none
    model: str
    memory_bytes: int
    numa_node: int | None  # of the CPUs next to it; None where the machine does not say


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """GPUs in inventory order, each cut into the same number of vGPUs."""

    gpus: tuple[Gpu, ...]
    vgpus_per_gpu: int

    def gpu(self, vgpu: VGpuId) -> Gpu | None:
        """Find the GPU that *vgpu* is a part of; None if this pool has no such vGPU."""
        if vgpu.index >= self.vgpus_per_gpu:
            return None
        return next((gpu for gpu in self.gpus if gpu.uuid == vgpu.gpu_uuid), None)

    def vgpus(self) -> Iterator[tuple[VGpuId, Gpu]]:
        """List every vGPU with its GPU, in inventory order."""
        for gpu in self.gpus:
            for index in range(self.vgpus_per_gpu):
                yield VGpuId(gpu.uuid, index), gpu
