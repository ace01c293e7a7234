"""A node on which CDI devices lie ready, and whose containers hold what a test says."""

from pathlib import Path
from typing import Any

from plugin.errors import HandoverError
from plugin.gpus.gpu import Gpu
from plugin.shares.cdi import Grid
from plugin.shares.handover import HandoverSettings
from plugin.shares.specifications import HeldGrid, HeldGrids, Specifications
from plugin.shares.strategy import Sharing
from policies.contract import Handover
from tests.plugin.shares.cdi_runtime import read_directory
from tests.plugin.shares.two_gpus import MPS, NAME

OLD = "example.com/old"


class Node:
    """A node whose containers hold what a test says."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory / "cdi"
        self.held = HeldGrids(is_complete=True)

    def starts(
        self,
        *gpus: Gpu,
        of: int = 10,
        ways: tuple[Handover, ...] = ("cdi",),
        name: str = NAME,
        sharing: Sharing = MPS,
    ) -> None:
        """Start the plugin anew, with *gpus* as *name*."""
        settings = HandoverSettings(ways=frozenset(ways), cdi_dir=self.directory)
        self.specifications = Specifications(settings, lambda: self.held)
        self.specifications.see({gpu.uuid: (gpu, sharing) for gpu in gpus})
        self.specifications.advertise(name, [Grid(gpu, sharing, of) for gpu in gpus])
        self.specifications.restore()

    def holds(self, *grids: HeldGrid, is_complete: bool = True) -> None:
        self.held = HeldGrids(frozenset(grids), is_complete)

    def has(self, gpu: Gpu, *, of: int = 10, name: str = NAME) -> bool:
        names = {f"{name}={gpu.uuid}-{vgpus}of{of}" for vgpus in range(1, of + 1)}
        there = names & set(read_directory(self.directory)) if self.directory.exists() else set()
        assert there in (set(), names)
        return bool(there)

    def gives(self, gpu: Gpu, *, of: int = 10, name: str = NAME) -> list[Any]:
        """Say what containers with a share of *gpu* start with, the smallest share first."""
        there = read_directory(self.directory)
        return [there[f"{name}={gpu.uuid}-{vgpus}of{of}"] for vgpus in range(1, of + 1)]


def held(gpu: Gpu, *, of: int = 10, name: str = NAME, by_cdi: bool = True) -> HeldGrid:
    return HeldGrid(resource=name, gpu_uuid=gpu.uuid, of=of, by_cdi=by_cdi)


def full(*_: object) -> None:
    raise HandoverError("no space left")
