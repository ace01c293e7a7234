"""
From an allocation to what its container receives: variables and mounts.

Everything is rounded down: the shares of one GPU never add up to more than the GPU.
"""

from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import assert_never

from plugin.errors import AllocationError
from plugin.shares.allocation import Allocation
from plugin.shares.strategy import Mps, Sharing, TimeSlicing, Whole
from policies import contract

_MIB = 1024 * 1024
_FRACTION_UNIT = 10_000  # four places
# An MPS server takes memory of its own on its GPU, outside the limits of its clients: 30 MiB on an A100
# (docs.nvidia.com/datacenter/cloud-native/openshift/latest/mps-gpu-sharing.html), 66 on an H100 (decision 32).
MPS_SERVER_MIB = 128
ONLY_GPU = "0"  # for CUDA: no process that a limit on memory is for sees another GPU
_SHM_DIRECTORY = "shm"  # beside the pipe directories of the GPUs
_SHM_PATH = "/dev/shm"  # noqa: S108 - where CUDA looks for the memory it shares with the MPS server


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    """A directory of the host in the container, writable."""

    host_path: str
    container_path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerLimits:
    """What a container receives."""

    environment: dict[str, str]
    mounts: tuple[Mount, ...] = ()


def limits(allocation: Allocation, sharing: Sharing) -> ContainerLimits:
    """
    Say what holds a container to *allocation*.

    Raises:
        AllocationError: If these are several MIG instances, or several GPUs that are shared by MPS. A process reaches
            one daemon, there is one per GPU, and its server keeps the GPU from every process that does not come
            through it.
    """
    if len(allocation.gpus) > 1 and any(gpu.instance for gpu in allocation.gpus):
        raise AllocationError(
            f"a program reaches one MIG instance, got {len(allocation.gpus)}: ask for one in each container"
        )
    match sharing:
        case Mps():
            return _mps_limits(allocation, sharing)
        case TimeSlicing() | Whole():
            return ContainerLimits(environment=_share_variables(allocation, memory_mib(allocation)))
        case _:
            assert_never(sharing)


def memory_mib(allocation: Allocation, *, kept_mib: int = 0) -> int:
    """Count the MiB that the container may take on each of its GPUs, of which *kept_mib* are nobody's share."""
    smallest_bytes = max(0, min(gpu.memory_bytes for gpu in allocation.gpus) - kept_mib * _MIB)
    return smallest_bytes * allocation.vgpus // (allocation.vgpus_per_gpu * _MIB)


def thread_percentage(allocation: Allocation) -> int:
    """Count whole percent: MPS documents no other, and a number that it cannot read would limit nothing."""
    return max(1, 100 * allocation.vgpus // allocation.vgpus_per_gpu)


def _share_variables(allocation: Allocation, mib: int) -> dict[str, str]:
    return {
        contract.VISIBLE_DEVICES: ",".join(gpu.uuid for gpu in allocation.gpus),
        contract.SHARE_FRACTION: _fraction_text(allocation),
        contract.SHARE_MEMORY_MIB: str(mib),
    }


def _mps_limits(allocation: Allocation, sharing: Mps) -> ContainerLimits:
    if len(allocation.gpus) > 1:
        raise AllocationError(
            f"a process reaches one GPU through MPS, got {len(allocation.gpus)}: ask for at most "
            f"{allocation.vgpus_per_gpu} vGPUs in one container, or for GPUs that are advertised whole"
        )
    (gpu,) = allocation.gpus
    pipe = str(PurePosixPath(sharing.pipe_directory) / gpu.uuid)
    source = PurePosixPath(sharing.mount_sources or sharing.pipe_directory)
    mib = memory_mib(allocation, kept_mib=MPS_SERVER_MIB)
    return ContainerLimits(
        environment={
            **_share_variables(allocation, mib),
            contract.MPS_PIPE_DIRECTORY: pipe,
            contract.MPS_THREAD_PERCENTAGE: str(thread_percentage(allocation)),
            # Some drivers do not apply a limit by UUID: docs/decisions/0017-memory-limits-by-ordinal.md.
            contract.MPS_MEMORY_LIMIT: f"{ONLY_GPU}={mib}M",
        },
        mounts=(
            Mount(host_path=str(source / gpu.uuid), container_path=pipe),
            Mount(host_path=str(source / _SHM_DIRECTORY), container_path=_SHM_PATH),
        ),
    )


def _fraction_text(allocation: Allocation) -> str:
    """Write the part of each visible GPU, as frameworks take it: 1 for whole GPUs, however many."""
    whole, places = divmod(_FRACTION_UNIT * allocation.vgpus // allocation.vgpus_per_gpu, _FRACTION_UNIT)
    return f"{whole}.{places:04d}".rstrip("0") if places else str(whole)
