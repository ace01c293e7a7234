"""What the parts of a node could have written, and the command that reads it."""

import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec

from plugin.health.state import GpuHealth, NodeHealth
from plugin.mps.state import MpsGpu, MpsState
from plugin.pod_resources.occupancy import GpuOccupancy, NodeOccupancy, Occupant
from plugin.state_files import boot_id, boot_seconds
from plugin.usage.record import ContainerUse, GpuUse, NodeUse

ROOT = Path(__file__).parents[3]


def ago(**duration: float) -> str:
    return (datetime.now(UTC) - timedelta(**duration)).isoformat()


def healthy(index: int, **replaced: object) -> GpuHealth:
    gpu = GpuHealth(uuid=f"GPU-{index}", index=index, model="H200", resource="gpu-share.dev/vgpu", since=ago(hours=3.5))
    return msgspec.structs.replace(gpu, **replaced)


def node(*gpus: GpuHealth, **replaced: object) -> NodeHealth:
    made = NodeHealth(boot_id=boot_id(), heartbeat_seconds=boot_seconds(), pid=7, driver="580.95.05", gpus=gpus)
    return msgspec.structs.replace(made, **replaced)


def daemons(**gpus: MpsGpu) -> MpsState:
    return MpsState(boot_id=boot_id(), gpus={name.replace("_", "-"): gpu for name, gpu in gpus.items()})


def occupant(pod: str, parts: int, **replaced: object) -> Occupant:
    """A container with some of the ten vGPUs of a GPU."""
    return msgspec.structs.replace(Occupant(namespace="team-a", pod=pod, container="main", parts=parts), **replaced)


def occupied(*occupants: Occupant, **replaced: object) -> GpuOccupancy:
    """A GPU of ten vGPUs; what its occupants do not have is free."""
    granted = sum(one.parts for one in occupants)
    made = GpuOccupancy(
        strategy="mps",
        allocation="device-plugin",
        resource="gpu-share.dev/vgpu",
        vgpus_per_gpu=10,
        parts=10,
        granted=granted,
        hidden=0,
        free=10 - granted,
        largest_free=10 - granted,
        occupants=occupants,
    )
    return msgspec.structs.replace(made, **replaced)


def occupancy(*gpus: GpuOccupancy, **replaced: object) -> NodeOccupancy:
    """The GPUs of `healthy`, as the kubelet said them a moment ago."""
    by_uuid = {healthy(index).uuid: gpu for index, gpu in enumerate(gpus)}
    return msgspec.structs.replace(
        NodeOccupancy(boot_id=boot_id(), looked_seconds=boot_seconds(), gpus=by_uuid), **replaced
    )


def taken(by: Occupant, **replaced: object) -> ContainerUse:
    """What the processes of a container take of its GPU."""
    made = ContainerUse(namespace=by.namespace, pod=by.pod, container=by.container, processes=1, memory_bytes=2**20)
    return msgspec.structs.replace(made, **replaced)


def use(*gpus: GpuUse, **replaced: object) -> NodeUse:
    """What is taken of the GPUs of `healthy`, as measured a moment ago."""
    by_uuid = {healthy(index).uuid: gpu for index, gpu in enumerate(gpus)}
    return msgspec.structs.replace(
        NodeUse(boot_id=boot_id(), measured_seconds=boot_seconds(), gpus=by_uuid), **replaced
    )


def status(directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the real command."""
    return subprocess.run(
        [
            sys.executable,
            "-W",
            "error",
            "-m",
            "gpu_share",
            "plugin",
            "status",
            "--state-dir",
            str(directory),
            *arguments,
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=20,
    )
