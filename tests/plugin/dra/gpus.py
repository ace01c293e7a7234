"""GPUs as the driver is given them, in few words."""

from dataclasses import dataclass

from plugin.gpus.gpu import Gpu
from plugin.gpus.numbers import GpuNumbers
from plugin.shares.division import Division
from policies.cluster import Cluster
from policies.contract import SharingStrategy
from policies.nodes import NodeRule


@dataclass(frozen=True)
class Shared:
    gpu: Gpu
    strategy: SharingStrategy = "mps"
    why: str = ""
    is_reached: bool = True


def divided(vgpus_per_gpu: int = 10, *nodes: NodeRule) -> Division:
    return Division(
        Cluster(vgpus_per_gpu=vgpus_per_gpu, nodes=nodes), node_name="node", number_of=GpuNumbers(None, ()).of
    )


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
