"""
The most that one client of a GPU's MPS daemon may take, held by the daemon.

A container's own limit is in its environment, where its program can remove it. The daemon's is the same for all of its
clients, so it is the largest share that anyone on the GPU may have.
"""

from dataclasses import dataclass

from plugin.gpus.gpu import Gpu
from plugin.shares.allocation import Allocation
from plugin.shares.limits import memory_mib, thread_percentage


@dataclass(frozen=True, slots=True, kw_only=True)
class Ceiling:
    """What the daemon lets each client have at most."""

    thread_percentage: int
    memory_mib: int


def ceiling_of(gpu: Gpu, *, vgpus: int, vgpus_per_gpu: int) -> Ceiling:
    """Say what *vgpus* of a GPU are: exactly what a container that holds so many is told itself."""
    allocation = Allocation(gpus=(gpu,), vgpus=vgpus, vgpus_per_gpu=vgpus_per_gpu)
    return Ceiling(
        thread_percentage=thread_percentage(allocation),
        memory_mib=memory_mib(allocation),
    )


def next_vgpus(before: int | None, *, allowed: int, held: int | None, vgpus_per_gpu: int) -> int:
    """
    Count the vGPUs of the next ceiling.

    *before* is None at the start. *allowed* is what policies allow one container, *held* what the largest tenant has on
    this GPU, None where that is not known: it may then be anything up to the ceiling before, so that may rise only.
    """
    if held is None:
        held = vgpus_per_gpu if before is None else before
    return min(vgpus_per_gpu, max(1, allowed, held))


def commands(ceiling: Ceiling, gpu_uuid: str, servers: tuple[int, ...]) -> dict[str, str]:
    """
    Say how a daemon is told, and what it is asked to see whether that still holds: question to command.

    The defaults reach servers that are started later, so each running one is told by itself; its clients of
    now keep what they came with.
    """
    percent, memory = str(ceiling.thread_percentage), f"{ceiling.memory_mib}M"
    made = {
        "get_default_active_thread_percentage": f"set_default_active_thread_percentage {percent}",
        f"get_default_device_pinned_mem_limit {gpu_uuid}": f"set_default_device_pinned_mem_limit {gpu_uuid} {memory}",
    }
    for pid in servers:
        made[f"get_active_thread_percentage {pid}"] = f"set_active_thread_percentage {pid} {percent}"
        made[f"get_device_pinned_mem_limit {pid} {gpu_uuid}"] = f"set_device_pinned_mem_limit {pid} {gpu_uuid} {memory}"
    return made
