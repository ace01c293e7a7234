"""What is held on a GPU by no container that its node names."""

from policies.contract import MILLI_PER_GPU
from policies.node_state import Gpu


def unnamed_parts(gpu: Gpu) -> int | None:
    """Count the parts that are held by no container that is named; None if nobody knows."""
    if gpu.granted is None:
        return None
    unnamed = gpu.granted - sum(one.parts for one in gpu.tenants)
    return unnamed if unnamed > _rounded(gpu) else 0


def _rounded(gpu: Gpu) -> int:
    """Count the parts that may be nobody's: thousandths of each tenant are rounded, and free are whole vGPUs."""
    if gpu.parts != MILLI_PER_GPU or gpu.parts == gpu.vgpus_per_gpu:
        return 0
    return len(gpu.tenants) + 1 + gpu.parts // (gpu.vgpus_per_gpu or gpu.parts)
