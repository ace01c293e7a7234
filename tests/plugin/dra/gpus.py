"""GPUs as the driver is given them, in few words."""

from dataclasses import dataclass

from plugin.gpus.gpu import Gpu
from policies.contract import SharingStrategy


@dataclass(frozen=True)
class Shared:
    gpu: Gpu
    strategy: SharingStrategy = "mps"
    why: str = ""


def gpu(index: int, *, numa: int | None = None, root: str = "", uuid: str = "") -> Gpu:
    return Gpu(
        uuid=uuid or f"GPU-{index:08d}",
        index=index,
        minor=index,
        model="H200",
        memory_bytes=100 << 30,
        numa_node=numa,
        pcie_root=root,
    )


def shared(count: int, strategy: SharingStrategy = "mps", **unhealthy: str) -> list[Shared]:
    return [Shared(gpu(index), strategy, unhealthy.get(f"gpu{index}", "")) for index in range(count)]
