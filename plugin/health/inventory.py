"""All GPUs that this node shares and the health of each: what reports and rules come to."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace

from plugin.gpus.gpu import Gpu
from plugin.health import missing
from plugin.health.entry import Entry
from plugin.health.gpu_state import GpuState, Moment, restored
from plugin.health.recovery import after_word
from plugin.health.recovery_request import RecoveryRequest
from plugin.health.reports import SILENT, SILENT_SECONDS, Event, Look, NvmlFailure, Probe, Report, concerns
from plugin.health.rules import (
    STEADY_SECONDS,
    after_event,
    after_look,
    after_nvml_failure,
    after_report,
    closed_by_mode,
)
from plugin.health.state import ApplicationFault, Fault, GpuHealth, NodeHealth, Recovery, Source
from plugin.shares.strategy import SharedGpu, StrategyOf
from policies.contract import MPS, SharingStrategy
from policies.mig import names_instance


class GpuInventory:
    """
    Takes reports, and knows every GPU that was ever shared: one that is gone has a fault.

    *before* is what the last plugin knew since the same boot of the machine. What that shared and NVML does not reach
    now is known as long as it matters: *held* says of which GPUs containers hold something, or may hold some, given
    these by UUID. One thread at a time calls.
    """

    def __init__(
        self,
        *,
        strategy_of: StrategyOf,
        application_xids: Collection[int],
        before: NodeHealth | None,
        held: Callable[[Collection[str]], Collection[str]] = lambda _: (),
        steady_seconds: float = STEADY_SECONDS,
    ) -> None:
        self._strategy_of = strategy_of
        self._application_xids = application_xids
        self._before = before.known if before else {}
        self._reached_before = before.reached if before else {}
        self._held = held
        self._steady_seconds = steady_seconds
        self._entries: dict[str, Entry] = {}
        self._missing: set[str] = set()  # of the entries, those that this plugin has never found
        self._looks: Mapping[str, Look] = {}  # as last taken
        self._left: set[str] = set()  # UUIDs of what was ever left to others
        self._heard_seconds: float | None = None  # when NVML last answered, if only by failing
        self._application_faults: dict[tuple[str, int], int] = {}
        self.skipped: tuple[str, ...] = ()  # one sentence for each GPU that cannot be shared
        self.driver = ""  # version; empty if unknown

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The GPUs in the order in which they were found."""
        return tuple(self._entries.values())

    @property
    def present(self) -> tuple[Entry, ...]:
        """Those of them that are there, and have no more vGPUs than they can have."""
        return tuple(
            one for one in self.entries if not any(fault.source in ("gone", "division") for fault in one.state.faults)
        )

    @property
    def absent(self) -> tuple[GpuHealth, ...]:
        """Those that were unhealthy when an earlier plugin shared them, and that this one has not found, or may not."""
        return tuple(one for uuid, one in self._before.items() if one.faults and uuid not in self._entries)

    @property
    def left_to_others(self) -> frozenset[str]:
        """UUIDs of the GPUs that are left to others, of those that NVML has now, but for those in MIG mode."""
        listed = self._left & self._looks.keys()
        return frozenset(one for one in listed if not (names_instance(one) or self._looks[one].in_mig_mode))

    @property
    def reached(self) -> dict[str, Gpu]:
        """What each of both was when it was last reached, by UUID, for the next plugin."""
        before = {one.uuid: self._reached_before[one.uuid] for one in self.absent if one.uuid in self._reached_before}
        return before | {uuid: replace(entry.gpu, links=()) for uuid, entry in self._entries.items()}

    def faults(self, uuids: Collection[str]) -> dict[str, str]:
        """Say why those of *uuids* are unhealthy that are; one that is not shared is if NVML does not reach it."""
        why = {
            uuid: entry.why if (entry := self._entries.get(uuid)) else missing.why_not_reached(self._looks.get(uuid))
            for uuid in uuids
        }
        return {uuid: one for uuid, one in why.items() if one}

    def take(self, report: Report, at: Moment) -> None:
        """Learn from *report*, which came at that moment."""
        seen = Moment(report.seconds, at.text)
        match report:
            case Probe():
                self._heard_seconds = at.seconds
                self._take_probe(report, seen)
            case NvmlFailure(why=why):
                self._heard_seconds = at.seconds
                for uuid, entry in self._entries.items():
                    self._set(uuid, after_nvml_failure(entry.state, why, seen), at)
            case Event():
                self._take_event(report, seen)

    def expect_nvml(self, at: Moment) -> None:
        """Mark all GPUs if NVML has not answered for too long: nobody sees what happens to them."""
        if self._heard_seconds is None or at.seconds - self._heard_seconds <= SILENT_SECONDS:
            return
        for uuid, entry in self._entries.items():
            self._set(uuid, after_nvml_failure(entry.state, SILENT, at), at)

    def set_mps_faults(self, faults: Mapping[str, str], at: Moment) -> None:
        """Apply why, by UUID, for each GPU shared by MPS whose daemon is not good; those of all others are."""
        for uuid, entry in self._entries.items():
            if entry.strategy == MPS:
                self._set(uuid, after_report(entry.state, "mps", faults.get(uuid), at), at)

    def set_reported_faults(self, source: Source, why_of: Callable[[SharedGpu], str], at: Moment) -> None:
        """Apply why, by what *source* reports, each GPU cannot be shared; nothing where it can."""
        for uuid, entry in self._entries.items():
            self._set(uuid, after_report(entry.state, source, why_of(entry) or None, at), at)

    def judge_modes(self, at: Moment, *, by_mps: Collection[str] = ()) -> None:
        """See that no GPU's compute mode keeps programs off it that may share it; MPS daemons serve those *by_mps*."""
        for uuid, entry in self._entries.items():
            why = closed_by_mode(entry.strategy, entry.compute_mode, by_mps=uuid in by_mps)
            self._set(uuid, after_report(entry.state, "mode", why or None, at), at)

    def application_faults(self) -> Mapping[tuple[str, int], int]:
        """Count the faults of programs since this was last called, by UUID and XID."""
        counted, self._application_faults = self._application_faults, {}
        return counted

    def remember(self, uuid: str, fault: ApplicationFault) -> None:
        """Keep a program's fault beside the GPU that it happened on, if that is still known."""
        if entry := self._entries.get(uuid):
            self._entries[uuid] = replace(entry, application_fault=fault)

    def recover(self, request: RecoveryRequest, at: Moment) -> Recovery | None:
        """End what an administrator's word can end; None if the GPU is not known."""
        entry = self._entries.get(request.gpu_uuid)
        if entry is None:
            return None
        # Of one that was never found, that it is not reached says no more than its author: it was taken out or divided.
        seen = entry.state.seen - ({"gone", "mig"} if request.gpu_uuid in self._missing else frozenset())
        recovered = after_word(replace(entry.state, seen=seen), request.faults)
        recovery = Recovery(
            id=request.id,
            at=at.text,
            by=request.by,
            reason=request.reason,
            cleared=tuple(fault.why for fault in recovered.cleared),
            refused=recovered.refused,
        )
        self._set(request.gpu_uuid, recovered.state, at)
        self._entries[request.gpu_uuid] = replace(self._entries[request.gpu_uuid], recovery=recovery)
        return recovery

    def health(self, resource_of: Callable[[SharedGpu], str]) -> tuple[GpuHealth, ...]:
        """Write down how the GPUs are; *resource_of* names the resource of each."""
        return tuple(entry.health(resource_of(entry)) for entry in self._entries.values())

    def _take_probe(self, probe: Probe, at: Moment) -> None:
        self.skipped = probe.skipped
        self.driver = probe.driver
        self._looks = probe.looks
        others = {gpu.uuid for gpu in probe.gpus if (entry := self._entries.get(gpu.uuid)) and entry.is_another(gpu)}
        found = [gpu for gpu in probe.gpus if gpu.uuid not in others]
        for gpu in found:
            if known := self._entries.get(gpu.uuid):
                self._entries[gpu.uuid] = replace(known, gpu=gpu)
            elif gpu.uuid not in self._left:
                self._get_to_know(gpu, probe.looks.get(gpu.uuid), at)
        self._look_for_missing(frozenset(gpu.uuid for gpu in found), at)
        for uuid, entry in self._entries.items():
            look = entry.seen_in(self._looks)
            state = after_look(entry.state, look, at, generation=probe.generation, steady_seconds=self._steady_seconds)
            self._set(uuid, state, at)
            self._entries[uuid] = replace(self._entries[uuid], compute_mode=look.compute_mode_name if look else "")

    def _get_to_know(self, gpu: Gpu, look: Look | None, at: Moment) -> None:
        """Decide how a GPU is shared; that stays, though its number can become another's."""
        strategy = self._strategy_of(gpu)
        if strategy:
            self._entries[gpu.uuid] = self._found(gpu, strategy, look, at)
        else:
            self._left.add(gpu.uuid)

    def _look_for_missing(self, found: Collection[str], at: Moment) -> None:
        """Take up those of before that NVML does not reach, and forget those that matter to nobody any more."""
        self._missing.difference_update(found)
        new = [uuid for uuid in self._before if uuid not in self._entries and uuid not in self._left]
        new = [uuid for uuid in new if missing.why_not_reached(self._looks.get(uuid))]
        held = self._held([*new, *self._missing]) if new or self._missing else ()
        for uuid in [one for one in self._missing if not self._matters(one, self._entries[one].state.faults, held)]:
            kept = missing.remembered(self._before.pop(uuid), self._entries[uuid].state.faults)
            self._before |= {uuid: kept} if kept else {}
            del self._entries[uuid]
            self._missing.remove(uuid)
        for uuid in new:
            before = self._before[uuid]
            gpu = missing.as_reached(before, self._reached_before)
            if gpu and self._matters(uuid, before.faults, held):
                self._get_to_know(gpu, self._looks.get(uuid), at)
                self._missing |= {uuid} & self._entries.keys()

    def _matters(self, uuid: str, faults: Iterable[Fault], held: Collection[str]) -> bool:
        return missing.matters(uuid, faults, look=self._looks.get(uuid), held=held)

    def _take_event(self, event: Event, at: Moment) -> None:
        for uuid, entry in self._entries.items():
            if not concerns(event, entry.gpu):
                continue
            if event.xid is not None and event.xid in self._application_xids:
                key = (uuid, event.xid)
                self._application_faults[key] = self._application_faults.get(key, 0) + event.times
            else:
                self._set(uuid, after_event(entry.state, event, at), at)

    def _found(self, gpu: Gpu, strategy: SharingStrategy, look: Look | None, at: Moment) -> Entry:
        before = self._before.get(gpu.uuid)
        if before is None:
            return Entry(gpu=gpu, strategy=strategy, state=GpuState(), since=at.text, application_fault=None)
        # Where the driver says what the GPU needs, it knows better than we remember.
        driver_tells = look is not None and look.recovery_action is not None
        is_missing = bool(missing.why_not_reached(look))
        state = GpuState() if driver_tells and not is_missing else restored(before.faults, is_missing=is_missing)
        return Entry(
            gpu=gpu,
            strategy=strategy,
            state=state,
            since=before.since if bool(state.open) == bool(before.faults) else at.text,
            application_fault=before.application_fault,
            recovery=before.recovery,
        )

    def _set(self, uuid: str, state: GpuState, at: Moment) -> None:
        entry = self._entries[uuid]
        changed = bool(state.open) != bool(entry.state.open)
        self._entries[uuid] = replace(entry, state=state, since=at.text if changed else entry.since)
