"""What the thread that talks to NVML tells the rest of the plugin. It crosses threads, so all of it is frozen."""

from collections.abc import Mapping
from dataclasses import dataclass

from plugin.gpus.gpu import Gpu


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What one probe saw of one GPU that NVML lists."""

    problem: str = ""  # why NVML does not reach it; empty if it does
    away: bool = False  # lost, or useless until a reset: once it is reached again, it was reset
    in_mig_mode: bool = False
    recovery_action: int | None = None  # NVML's number, 0 for none; None if the driver does not say
    unheard: str = ""  # why nothing would tell of a critical error: no events come, and the driver does not say
    energy_mj: int | None = None  # total since the driver was loaded or the GPU reset; None if it does not count


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """A look at all GPUs."""

    seconds: float  # `boot_clock.boot_seconds` at its end
    generation: int  # how often NVML had been initialised by then
    looks: Mapping[str, Look]  # by UUID
    gpus: tuple[Gpu, ...]  # those that can be shared or handed out whole, in NVML's order
    skipped: tuple[str, ...]  # one sentence for each other
    driver: str  # version; empty if unknown


@dataclass(frozen=True, slots=True, kw_only=True)
class NvmlFailure:
    """NVML as a whole does not work: nothing is known of any GPU."""

    seconds: float
    why: str  # with what to do about it


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """The driver's word that something happened on one GPU."""

    seconds: float
    gpu_uuid: str
    what: str  # such as XID 79
    xid: int | None  # None for what is no XID


Report = Probe | NvmlFailure | Event
