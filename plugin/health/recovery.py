"""
When an administrator's word ends a fault: the rule, without a clock, a driver or a file.

Some faults end by evidence that not every driver or GPU gives: a reset is seen by the energy counter alone where the
driver does not say what it asks for. Somebody who knows better may end those. What a look shows now nobody can end.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace

from plugin.health.gpu_state import NEED_RESET, GpuState
from plugin.health.state import Fault, FaultName


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovered:
    """What a word has come to: faults that it ended, or why none."""

    state: GpuState
    cleared: tuple[Fault, ...] = ()
    refused: str = ""  # one sentence; empty if some were ended


def after_word(state: GpuState, meant: Collection[FaultName]) -> Recovered:
    """End the faults that need a reset as evidence; *meant* are those that the administrator has seen."""
    if refused := _why_not(state, meant):
        return Recovered(state=state, refused=refused)
    cleared = tuple(fault for fault in state.faults if fault.source in NEED_RESET)
    left = tuple(one for one in state.open if one.fault.source not in NEED_RESET)
    # What was remembered to recognise a reset by is of no use any more.
    forgotten = replace(state, open=left, was_reset=False, reset_below_mj=None, away_in=None)
    return Recovered(state=forgotten, cleared=cleared)


def _why_not(state: GpuState, meant: Collection[FaultName]) -> str:
    if not state.open:
        return "it is healthy"
    for fault in state.faults:
        if fault.source in state.seen:
            return f"{fault.why}, as the last look shows: it recovers {fault.comes_back}"
    if not any(fault.source in NEED_RESET for fault in state.faults):
        return "; ".join(f"{fault.why}: it recovers {fault.comes_back}" for fault in state.faults)
    newer = [fault for fault in state.faults if fault.source in NEED_RESET and FaultName.of(fault) not in meant]
    return f"{newer[0].why}, which was not there when this was asked for: look again" if newer else ""
