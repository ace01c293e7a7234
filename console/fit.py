"""How much of a GPU a share is, and how much is left of it, as the scheduler counts: in vGPUs where it has these."""

from policies.contract import MILLI_PER_GPU
from policies.node_state import Gpu


def needed(milli: int, granted: int | None, gpu: Gpu) -> int:
    """Count a share in thousandths of a GPU: vGPUs that were *granted* as the node divides its GPUs now."""
    return milli if not gpu.resource or granted is None else granted * MILLI_PER_GPU // _per_gpu(gpu)


def largest(gpu: Gpu) -> int:
    """Return the largest share that is free of a GPU, in thousandths; 0 where nobody knows."""
    free = gpu.largest_free or 0
    return vgpus(gpu, free) * MILLI_PER_GPU // _per_gpu(gpu) if gpu.resource else gpu.milli(free)


def vgpus(gpu: Gpu, parts: int) -> int:
    """Count the vGPUs that so many parts are; thousandths were rounded, to less than half a vGPU."""
    return (parts * _per_gpu(gpu) + gpu.parts // 2) // gpu.parts


def _per_gpu(gpu: Gpu) -> int:
    return gpu.vgpus_per_gpu or gpu.parts
