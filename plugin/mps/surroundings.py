"""What the daemons of a node stand on."""

from dataclasses import dataclass
from pathlib import Path

from plugin.mps.compute_mode import ComputeModes
from plugin.mps.daemon import Place
from plugin.mps.tenancy import Tenancy
from plugin.mps.timing import Timing


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """Shared by all keepers, and the same from start to end."""

    place: Place
    state_dir: Path
    boot_id: str
    vgpus_per_gpu: int  # as the plugin cuts GPUs: what the policies said at the start
    modes: ComputeModes
    tenancy: Tenancy
    timing: Timing
