"""Two GPUs whose shares are handed over, and the container that starts with what it is told."""

from dataclasses import replace
from itertools import chain, combinations
from pathlib import Path
from typing import Any

from plugin.gpus.gpu import Pool
from plugin.shares.allocation import Allocation
from plugin.shares.cdi import grids_of
from plugin.shares.handover import Answer, Delivery, HandoverSettings, delivery
from plugin.shares.specifications import Specifications
from plugin.shares.strategy import Mps, Sharing
from plugin.simulated.gpus import simulated_gpus
from policies.contract import Handover
from tests.plugin.shares.cdi_runtime import Started, created, read_directory

NAME = "gpu-share.dev/vgpu"
MPS = Mps("/tmp/nvidia-mps")
SIMULATED = simulated_gpus("2xH200")
A, B = (replace(gpu, minor=gpu.index) for gpu in SIMULATED)
POOL = Pool(gpus=(A, B), vgpus_per_gpu=10)
FIFTH = Allocation(gpus=(A,), vgpus=2, vgpus_per_gpu=10)
BOTH = Allocation(gpus=(A, B), vgpus=10, vgpus_per_gpu=10)
WAYS: tuple[Handover, ...] = ("envvar", "cdi", "devices")
EVERY_SET = [frozenset(ways) for ways in chain.from_iterable(combinations(WAYS, size) for size in (1, 2, 3))]
TOLD = {"GPU_SHARE_FRACTION": "0.2", "GPU_SHARE_MEMORY_MIB": "28728"}

# NVIDIA's own devices, as its toolkit specifies them: of the GPU, and hostile ones of everything else.
HOSTILE = ["NVIDIA_VISIBLE_DEVICES=all", "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=100", "GPU_SHARE_FRACTION=1"]
THEIRS: dict[str, dict[str, Any]] = {
    f"nvidia.com/gpu={gpu.uuid}": {"env": HOSTILE, "deviceNodes": [{"path": f"/dev/nvidia{gpu.minor}"}]}
    for gpu in (A, B)
}


def settings(directory: Path, ways: frozenset[Handover]) -> HandoverSettings:
    return HandoverSettings(ways=ways, cdi_dir=directory / "cdi")


def prepare(chosen: HandoverSettings, name: str, pool: Pool, sharing: Sharing, *, dev: Path = Path("/dev")) -> Delivery:
    """Have all ready that containers of a resource need."""
    Specifications(chosen).advertise(name, grids_of(pool, sharing))
    return delivery(chosen, name, dev=dev)


def started(told: Answer, directory: Path, *, runtime_knows_cdi: bool) -> Started:
    """Start a container whose image wants all GPUs."""
    known = read_directory(directory) | THEIRS if told.cdi_devices and runtime_knows_cdi else {}
    every = [known[name] for name in told.cdi_devices] if known else []
    edits = {
        field: [one for edit in every for one in edit.get(field, ())] for field in ("env", "mounts", "deviceNodes")
    }
    return created(
        image={"NVIDIA_VISIBLE_DEVICES": "all", "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": "100"},
        requested=list(told.environment.items()),
        mounts=[(mount.container_path, mount.host_path) for mount in told.mounts],
        edits=edits,
    )
