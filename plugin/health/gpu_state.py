"""What is known of one GPU's health, and what of it goes on to the next plugin: its faults, with their evidence."""

from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from plugin.health.state import Fault, Source

NEED_RESET: frozenset[Source] = frozenset({"xid", "recovery", "lost"})  # outlive the plugin: its end repairs nothing
NOT_REACHED: frozenset[Source] = frozenset({"gone", "lost", "mig"})  # the next look shows whether it is still so
_BEFORE_US = 0  # the generation of NVML in which an earlier plugin saw the GPU


@dataclass(frozen=True, slots=True)
class Moment:
    """A time, for the rules and for people."""

    seconds: float  # as `state_files.boot_seconds`
    text: str  # ISO 8601, UTC


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenFault:
    """A fault that holds, and since when the evidence says that it is over."""

    fault: Fault
    over_since_seconds: float | None = None  # None without evidence


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuState:
    """One GPU."""

    open: tuple[OpenFault, ...] = ()  # at most one of each source
    energy_mj: int | None = None  # as last seen
    reset_below_mj: int | None = None  # an energy below it shows that the GPU was reset since its last critical fault
    was_reset: bool = False  # since then
    away_in: int | None = None  # generation of NVML in which it was away; None if it has been found again
    tells_recovery: bool = False  # the driver says what the GPU needs
    seen: frozenset[Source] = frozenset()  # what the last look showed to be so, not only to have happened

    @property
    def faults(self) -> tuple[Fault, ...]:
        """Why it is unhealthy; empty if it is healthy."""
        return tuple(_with_evidence(one.fault, self) for one in self.open)


def restored(faults: Iterable[Fault], *, is_missing: bool = False) -> GpuState:
    """Go on with what an earlier plugin knew since the same start of the machine, also of a GPU that *is_missing*."""
    outlive = NEED_RESET | NOT_REACHED if is_missing else NEED_RESET
    kept = [fault for fault in faults if fault.source in outlive]
    return GpuState(
        open=tuple(OpenFault(fault=fault) for fault in kept),
        reset_below_mj=max((fault.energy_mj for fault in kept if fault.energy_mj is not None), default=None),
        away_in=_BEFORE_US if any(fault.shows_reset for fault in kept) else None,
    )


def _with_evidence(fault: Fault, state: GpuState) -> Fault:
    """Write into a fault that outlives the plugin what the next one will know a reset by."""
    if fault.source not in NEED_RESET:
        return fault
    shows_reset = state.away_in is not None or state.was_reset
    return msgspec.structs.replace(fault, energy_mj=state.reset_below_mj, shows_reset=shows_reset)
