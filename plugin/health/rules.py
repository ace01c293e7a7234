"""
When a GPU is healthy: the rules, without a clock, a driver or a file.

Each source of faults stands for itself, and a GPU is healthy while none of them has one. A fault opens at once. It is
closed by evidence alone, which every probe has seen for STEADY_SECONDS: the driver asks for no recovery, or the GPU was
reset. That a GPU answers is no evidence: after most XIDs it still does (Project-HAMi/HAMi#2201).
"""

from dataclasses import dataclass, replace

from plugin.health.gpu_state import NEED_RESET, GpuState, Moment, OpenFault
from plugin.health.reports import Event, Look
from plugin.health.state import Fault, Source
from policies.contract import MPS, TIME_SLICING, WHOLE, SharingStrategy
from policies.node_state import EXCLUSIVE_PROCESS, EXCLUSIVE_THREAD, PROHIBITED

STEADY_SECONDS = 15.0

# NVML's number to what the driver asks for.
_RECOVERIES = {
    1: "a reset of the GPU",
    2: "a reboot of the node",
    3: "draining its peer-to-peer traffic",
    4: "draining its peer-to-peer traffic, then a reset of the GPU",
    5: "a recovery of its IMEX domain",
    6: "a reset of its bus",
    7: "a reboot of the system",
}
# Compute modes in which programs cannot share a GPU, or have it.
_CLOSED = {TIME_SLICING: frozenset({EXCLUSIVE_PROCESS, EXCLUSIVE_THREAD, PROHIBITED}), WHOLE: frozenset({PROHIBITED})}
# By others, who have the patience already; and when the GPU comes back.
_REPORTED: dict[Source, str] = {
    "mps": "once its MPS daemon is ready",
    "held": "once it can be written",
    "handover": "once it takes that, as `not taken` says, or `handover` in _cluster.yaml is what it was before",
    "division": "once it has no more vGPUs than it can have",
    "advertised": "once it can be advertised, which is tried again every second",
    "mode": "once `gpu-share mps`, if it set that mode, has put it back, or by `nvidia-smi -c DEFAULT`",
    "claims": "once DRA is installed again, or the pods have ended and the file that the plugin's log names is removed",
}


def closed_by_mode(strategy: SharingStrategy, compute_mode: str, *, by_mps: bool = False) -> str:
    """
    Say that a compute mode keeps programs off a GPU that its strategy lets on it; empty if it does not.

    *by_mps*: an MPS daemon still serves the GPU, and its server is the one process that an exclusive one has.
    """
    is_closed = compute_mode in _CLOSED.get(strategy, ())
    is_taken = by_mps and strategy != MPS and compute_mode == EXCLUSIVE_PROCESS
    return f"its compute mode is {compute_mode}, under {strategy}" if is_closed or is_taken else ""


def after_event(state: GpuState, event: Event, at: Moment) -> GpuState:
    """Apply the driver's word that something critical happened on the GPU."""
    comes_back = (
        f"once the driver has required no recovery action for {STEADY_SECONDS:.0f} s"
        if state.tells_recovery
        else "once the GPU has been reset, which alone is evidence with this driver"
    )
    opened = _Opened(source="xid", why=f"the driver reported {event.what}", comes_back=comes_back, xid=event.xid)
    # Not the energy of the last probe: a reset between that and the event would look like one after it.
    return replace(_with(state, opened, at), was_reset=False, reset_below_mj=event.energy_mj, away_in=None)


def after_look(
    state: GpuState, look: Look | None, at: Moment, *, generation: int, steady_seconds: float = STEADY_SECONDS
) -> GpuState:
    """Apply what a probe of NVML's *generation* saw; None if NVML does not list the GPU."""
    is_away = look is None or look.away  # an instance that was destroyed says nothing of its GPU
    if look is None or look.destroyed:
        look = None
        gone = _Opened(source="gone", why="NVML no longer lists it", comes_back="once NVML lists it again")
        state = _with(state, gone, at)
    elif look.problem:
        comes_back = "once NVML reaches it again: reset the GPU, or reboot the node"
        lost = _Opened(source="lost", why=f"NVML does not reach it: {look.problem}", comes_back=comes_back)
        state = _with(state, lost, at)
    else:
        state = _with_seen_faults(_learned(state, look, generation), look, at)
    if is_away:
        state = replace(state, away_in=generation)
    state = replace(state, seen=_seen(look))
    return _without_those_over(state, look, at, steady_seconds)


def after_nvml_failure(state: GpuState, why: str, at: Moment) -> GpuState:
    """Apply that NVML tells nothing about the GPU."""
    kept = tuple(replace(one, over_since_seconds=None) for one in state.open)
    state = replace(state, open=kept, seen=frozenset({"nvml"}))
    return _with(state, _Opened(source="nvml", why=why, comes_back="once NVML answers again"), at)


def after_report(state: GpuState, source: Source, why: str | None, at: Moment) -> GpuState:
    """Apply what the GPU's MPS daemon is, or who holds something of the GPU; None if that is good."""
    if why is None:
        return replace(state, open=tuple(one for one in state.open if one.fault.source != source))
    return _with(state, _Opened(source=source, why=why, comes_back=_REPORTED[source]), at)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Opened:
    """A fault that was just seen."""

    source: Source
    why: str
    comes_back: str
    xid: int | None = None


def _with(state: GpuState, opened: _Opened, at: Moment) -> GpuState:
    """Open a fault, or tell one that is open anew; there is no evidence of its end then."""
    found = next((one.fault for one in state.open if one.fault.source == opened.source), None)
    fault = Fault(
        source=opened.source,
        why=opened.why,
        since=found.since if found else at.text,
        comes_back=opened.comes_back,
        xid=opened.xid,
    )
    if found is None:
        return replace(state, open=(*state.open, OpenFault(fault=fault)))
    return replace(state, open=tuple(OpenFault(fault=fault) if one.fault is found else one for one in state.open))


def _nothing_proven(state: GpuState) -> GpuState:
    """Forget what was seen of a reset: it says nothing about what has happened now."""
    return replace(state, was_reset=False, reset_below_mj=state.energy_mj)


def _learned(state: GpuState, look: Look, generation: int) -> GpuState:
    """Learn from a look at a GPU that is reached whether it was reset."""
    found_again = state.away_in is not None and generation > state.away_in
    began_anew = (
        state.reset_below_mj is not None and look.energy_mj is not None and look.energy_mj < state.reset_below_mj
    )
    state = replace(
        state,
        energy_mj=look.energy_mj,
        was_reset=state.was_reset or found_again or began_anew,
        away_in=None if found_again else state.away_in,
        tells_recovery=look.recovery_action is not None,
    )
    return state if state.was_reset else replace(state, reset_below_mj=_reset_below_mj(state))


def _reset_below_mj(state: GpuState) -> int | None:
    """
    Say below what an energy counter is that has begun anew.

    It is what the counter showed at the fault, or half of what it shows now if that is more: a fault soon after the
    machine's start leaves so little that a GPU which is reset later is past it before anyone looks. And not all of
    what it shows, which would trust the counter to its last digit.
    """
    if state.energy_mj is None or not any(one.fault.source in NEED_RESET for one in state.open):
        return state.reset_below_mj
    if state.reset_below_mj is None:
        return state.energy_mj
    return max(state.reset_below_mj, state.energy_mj // 2)


def _with_seen_faults(state: GpuState, look: Look, at: Moment) -> GpuState:
    if look.events_failure:
        state = _with(
            state, _Opened(source="nvml", why=look.events_failure, comes_back="once NVML delivers events"), at
        )
    if look.in_mig_mode:
        mig = _Opened(source="mig", why="it is in MIG mode", comes_back="once its MIG mode is off")
        state = _with(state, mig, at)
    if look.remade_as:
        why = f"it was destroyed, and a MIG instance of the profile {look.remade_as} has its UUID now"
        comes_back = "once it is there again with its own profile; a plugin that is restarted shares the new one"
        state = _with(state, _Opened(source="mig", why=why, comes_back=comes_back), at)
    if look.recovery_action:
        asked = _RECOVERIES.get(look.recovery_action, f"recovery action {look.recovery_action}")
        recovery = _Opened(source="recovery", why=f"the driver asks for {asked}", comes_back=f"after {asked}")
        state = _nothing_proven(_with(state, recovery, at))
    return state


def _seen(look: Look | None) -> frozenset[Source]:
    if look is None:
        return frozenset({"gone"})
    shows: dict[Source, bool] = {
        "lost": bool(look.problem),
        "mig": look.in_mig_mode or bool(look.remade_as),
        "nvml": bool(look.events_failure),
        "recovery": bool(look.recovery_action),
    }
    return frozenset(source for source, shown in shows.items() if shown)


def _without_those_over(state: GpuState, look: Look | None, at: Moment, steady_seconds: float) -> GpuState:
    """Drop the faults whose end has been evident for long enough."""
    kept: list[OpenFault] = []
    for one in state.open:
        if one.fault.source in _REPORTED:
            kept.append(one)
            continue
        if not _is_over(one.fault.source, state, look):
            kept.append(replace(one, over_since_seconds=None))
            continue
        since = at.seconds if one.over_since_seconds is None else one.over_since_seconds
        if at.seconds - since < steady_seconds:
            kept.append(replace(one, over_since_seconds=since))
    return replace(state, open=tuple(kept))


def _is_over(source: Source, state: GpuState, look: Look | None) -> bool:
    """Whether there is evidence that a fault is over."""
    if source == "nvml":
        return look is None or not look.events_failure
    if look is None:
        return False
    if source == "gone":
        return True
    if look.problem:
        return False
    if source == "mig":
        return not look.in_mig_mode and not look.remade_as
    if look.recovery_action is not None:
        return look.recovery_action == 0
    return state.away_in is None if source == "lost" else state.was_reset
