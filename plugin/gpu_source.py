"""Where the plugin learns of GPUs and their health: this machine, or a simulation of one."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

from plugin.gpus.nvml import NvmlHealth, load_nvml
from plugin.gpus.reading import SYSFS
from plugin.mps.state import MpsFaults, PublishedMpsFaults
from plugin.shares.strategy import Mps
from plugin.state_files import boot_id


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuSource:
    """Where the GPUs and their health come from: this machine, or a simulation."""

    nvml: NvmlHealth
    sysfs: Path | None  # None says nothing of a PCI bus
    mps_faults: MpsFaults
    mps_daemons: Callable[[], Collection[str]] = tuple  # the GPUs, by UUID, that have a daemon, good or not
    mps_serving: Callable[[], Mps | None] = lambda: None  # where the daemons are; None for where _cluster.yaml says


def gpu_source(simulate: str | None, state_dir: Path, *, pipe_directory: str) -> GpuSource:
    """
    Choose what is monitored: simulated GPUs if *simulate* says which, or NVML's.

    *pipe_directory* is the one that containers are told.

    Raises:
        DiscoveryError: If the bindings of NVML are not installed.
        SimulationError: If `--simulate` is invalid.
    """
    if simulate is not None:
        return _simulated(simulate)
    faults = PublishedMpsFaults(state_dir, boot_id=boot_id(), pipe_directory=pipe_directory)
    return GpuSource(
        nvml=load_nvml(),
        sysfs=SYSFS,
        mps_faults=faults,
        mps_daemons=faults.daemons,
        mps_serving=faults.serving,
    )


def _simulated(specification: str) -> GpuSource:
    from plugin.simulated.gpus import simulated_mps_faults, simulated_node  # noqa: PLC0415 - not where GPUs are real
    from plugin.simulated.nvml import SimulatedNvml  # noqa: PLC0415 - likewise

    node = simulated_node(specification)
    began = monotonic()
    return GpuSource(
        nvml=SimulatedNvml(node, clock=lambda: monotonic() - began),
        sysfs=None,
        mps_faults=lambda _uuids: simulated_mps_faults(node, monotonic() - began),
    )
