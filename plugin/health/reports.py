"""What the monitor reports to the rest of the plugin. It crosses threads, so all of it is frozen."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from time import monotonic

from plugin.errors import DiscoveryError
from plugin.gpus.discovery import no_gpus, wait_for_gpus
from plugin.gpus.gpu import Gpu
from plugin.shares.strategy import StrategyOf
from policies.node_state import DEFAULT_MODE, EXCLUSIVE_PROCESS, EXCLUSIVE_THREAD, PROHIBITED

# NVML's numbers (nvml.h, nvmlComputeMode_t).
_COMPUTE_MODES = {0: DEFAULT_MODE, 1: EXCLUSIVE_THREAD, 2: PROHIBITED, 3: EXCLUSIVE_PROCESS}


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What one probe saw of one GPU that NVML lists."""

    problem: str = ""  # why NVML does not reach it; empty if it does
    away: bool = False  # lost, or useless until a reset: once it is reached again, it was reset
    in_mig_mode: bool = False
    destroyed: bool = False  # a MIG instance that is not there, of a GPU that is
    profile: str = ""  # of the MIG instance that has this UUID now
    remade_as: str = ""  # that profile, where the instance of whom it is the UUID had another one
    recovery_action: int | None = None  # NVML's number, 0 for none; None if the driver does not say
    events_failure: str = ""  # why nothing would tell of a critical error: no events come, and the driver does not say
    compute_mode: int | None = None  # NVML's number; None if the driver does not say
    energy_mj: int | None = None  # total since the driver was loaded or the GPU reset; None if it does not count

    @property
    def compute_mode_name(self) -> str:
        """Name the compute mode; a number that is newer than this program's names is not named."""
        return "" if self.compute_mode is None else _COMPUTE_MODES.get(self.compute_mode, "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """A look at all GPUs."""

    seconds: float  # `state_files.boot_seconds` at its end
    generation: int  # how often NVML had been initialised by then
    looks: Mapping[str, Look]  # by UUID
    gpus: tuple[Gpu, ...]  # those that can be shared or allocated whole, in NVML's order
    skipped: tuple[str, ...]  # one sentence for each other
    driver: str  # version; empty if unknown


@dataclass(frozen=True, slots=True, kw_only=True)
class NvmlFailure:
    """NVML as a whole does not work: nothing is known of any GPU."""

    seconds: float
    why: str  # with what to do about it


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """The driver's word that something happened on one GPU, once or several times."""

    seconds: float
    gpu_uuid: str
    what: str  # such as XID 79
    xid: int | None  # None for another kind of event
    energy_mj: int | None = None  # total then; None if the GPU does not count, or does not say
    gpu_instance: int | None = None  # on which it happened, by NVML's numbers; None: on all of the GPU
    compute_instance: int | None = None
    times: int = 1


def concerns(event: Event, gpu: Gpu) -> bool:
    """Whether an event happened on *gpu*, or on the GPU or GPU instance of which that is a part."""
    if event.gpu_uuid == gpu.uuid:
        return True
    part = gpu.instance
    return (
        part is not None
        and event.gpu_uuid == part.parent_uuid
        and event.gpu_instance in (None, part.gpu_instance)
        and event.compute_instance in (None, part.compute_instance)
    )


Report = Probe | NvmlFailure | Event

SILENT_SECONDS = 30.0  # a driver that answers takes less for a probe
SILENT = f"NVML has not answered for more than {SILENT_SECONDS:.0f} s: see the kernel's log for the driver"

_RETRY_SECONDS = 0.5  # between two looks for the first probe, once it is known that there is no GPU yet


def first_probe(
    reports: "SimpleQueue[Report | None]",
    strategy_of: StrategyOf,
    *,
    wait_seconds: float,
    ended: Callable[[float, str], bool],
    clock: Callable[[], float] = monotonic,
) -> Probe | None:
    """
    Take reports until one shows a GPU that is to be shared; as `wait_for_gpus` waits.

    Raises:
        DiscoveryError: If there is no GPU to share, in *wait_seconds*.
    """
    heard = clock()

    def look() -> Probe | None:
        nonlocal heard
        try:
            report = reports.get_nowait()
        except Empty:
            if clock() - heard > SILENT_SECONDS:
                raise DiscoveryError(SILENT) from None
            return None
        heard = clock()
        if isinstance(report, Probe) and any(strategy_of(gpu) for gpu in report.gpus):
            return report
        if why := _why_none(report):
            raise DiscoveryError(why)
        return None

    return wait_for_gpus(look, wait_seconds=wait_seconds, ended=ended, retry_seconds=_RETRY_SECONDS, clock=clock)


def _why_none(report: Report | None) -> str:
    match report:
        case NvmlFailure(why=why):
            return why
        case Probe(gpus=()):
            return no_gpus(report.skipped)
        case Probe(gpus=gpus, skipped=skipped):
            left = f"{len(gpus)} GPU{'s' if len(gpus) > 1 else ''}" if skipped else f"all {len(gpus)} GPUs"
            return no_gpus((f"nodes in _cluster.yaml leaves {left} of this node to others", *skipped))
        case _:
            return ""
