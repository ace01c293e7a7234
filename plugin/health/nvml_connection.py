"""
One run of NVML, from its start to its end: how the GPUs are, and what the driver tells of them.

Newer calls are optional, and one broken GPU must not hide the others. Handles are worth nothing in the next run.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from plugin.gpus.discovery import (
    driver_version,
    errors_of_one,
    in_mig_mode,
    listed,
    minor_of,
    not_shared,
    pci_address,
    read_gpu,
    uuid_of,
)
from plugin.gpus.gpu import Gpu
from plugin.gpus.nvml import AWAY, NvmlHealth, if_answered, number_of, raise_if_nvml_failed
from plugin.health.reports import Event, Look, Probe

# NVML's numbers.
_TIMEOUT = 10
_RECOVERY_ACTION = 230
_MEMBERS = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")  # of a field's value, by its type
_DOUBLE_BIT_ECC, _XID, _MIG_CHANGE, _UNAVAILABLE, _RECOVERY_CHANGE = 0x2, 0x8, 0x100, 0x4000, 0x8000
_CRITICAL = {_DOUBLE_BIT_ECC: "a double-bit ECC error", _UNAVAILABLE: "the GPU to be unavailable"}
_WANTED = _XID | _DOUBLE_BIT_ECC | _MIG_CHANGE | _UNAVAILABLE | _RECOVERY_CHANGE


@dataclass(slots=True)
class KnownGpus:
    """What outlives a run of NVML."""

    gpus: dict[str, Gpu] = field(default_factory=dict)  # by UUID: all that could be shared once
    addresses: dict[str, str | None] = field(default_factory=dict)  # by UUID: on the PCI bus
    uuids: dict[int, str] = field(default_factory=dict)  # by NVML's number, when it last said


class NvmlConnection:
    """NVML while it is initialised; *clock* is that of the reports. Every call but `close` raises NVML's errors."""

    def __init__(
        self, nvml: NvmlHealth, known: KnownGpus, *, generation: int, clock: Callable[[], float], sysfs: Path
    ) -> None:
        self._nvml = nvml
        self._known = known
        self._generation = generation
        self._clock = clock
        self._sysfs = sysfs
        self._handles: dict[str, Any] = {}  # of the GPUs that the last probe has reached, by UUID
        self._driver = ""  # its version, once it is known
        self._listened_to: frozenset[str] | None = None
        self._events: Any = None  # NVML's set; None while nothing is registered
        self._away: set[str] = set()  # the GPUs that a probe of this run has found lost, or not at all
        self.misses_some = False  # the last probe did not reach all GPUs that are listed or known, or none

    @property
    def reached(self) -> frozenset[str]:
        """The GPUs that the last probe has reached."""
        return frozenset(self._handles)

    @property
    def found_some_again(self) -> bool:
        """Whether a GPU is back that was away in this run: if the next one finds it as well, it was reset."""
        return not self._away.isdisjoint(self._handles)

    def probe(self, *, events_failure: str = "") -> Probe:
        """
        Look at all GPUs; fails only where NVML as a whole does.

        *events_failure* says why events cannot be waited for; empty where they can.
        """
        found = listed(self._nvml)
        handles, uuids, errors = found.handles, found.uuids, found.errors
        looks = {uuid: self._look(handles[index], events_failure=events_failure) for index, uuid in uuids.items()}
        # A GPU that cannot say who it is: NVML keeps its number.
        for index in tuple(errors):
            uuid = self._known.uuids.get(index)
            if uuid is not None and uuid not in looks:
                looks[uuid] = _unreached(errors.pop(index))
        self._known.uuids.update(uuids)
        errors |= self._get_to_know(uuids, handles)
        self._handles = {uuid: handles[index] for index, uuid in uuids.items() if not looks[uuid].problem}
        self._away |= {uuid for uuid in {*self._known.gpus, *looks} if uuid not in looks or looks[uuid].away}
        failed = any(number_of(error) is not None for error in errors.values())
        self.misses_some = failed or not self._handles or not self._known.gpus.keys() <= self._handles.keys()
        return Probe(
            seconds=self._clock(),
            generation=self._generation,
            looks=looks,
            gpus=tuple(self._known.gpus[uuid] for uuid in looks if uuid in self._known.gpus),
            skipped=tuple(not_shared(index, found.count, errors[index]) for index in sorted(errors)),
            driver=self._driver_version(),
        )

    def listen(self) -> frozenset[str]:
        """
        Have the driver tell of the GPUs that were reached; nothing happens if it does already.

        Returns:
            The GPUs that it tells nothing of.
        """
        # What an old set has not told yet is lost with it, so a GPU that is reached no more may stay in it.
        if self._listened_to is not None and self.reached <= self._listened_to:
            return frozenset()
        self.stop_listening()
        try:
            events = self._events = self._nvml.nvmlEventSetCreate()
        except self._nvml.NVMLError as error:
            raise_if_nvml_failed(error)
            return self.reached
        self._listened_to = self.reached
        silent = frozenset(uuid for uuid, handle in self._handles.items() if not self._registered(handle, events))
        if silent == self.reached:
            self.stop_listening()  # there is nothing to lose by another try
        return silent

    @property
    def listens(self) -> bool:
        """Whether there is anything to wait for."""
        return self._events is not None

    def wait(self, seconds: float) -> Event | Literal["look"] | None:
        """Wait that long for the driver; "look" is the advice to probe, None that nothing came."""
        try:
            event = self._nvml.nvmlEventSetWait_v2(self._events, max(1, int(seconds * 1000)))
        except self._nvml.NVMLError as error:
            if number_of(error) == _TIMEOUT:
                return None
            raise
        critical = f"XID {event.eventData}" if event.eventType == _XID else _CRITICAL.get(event.eventType)
        if critical is None:
            return "look"
        try:
            uuid = uuid_of(self._nvml, event.device)
        except errors_of_one(self._nvml):
            return "look"
        xid = int(event.eventData) if event.eventType == _XID else None
        energy_mj = self._energy_mj(event.device)
        return Event(seconds=self._clock(), gpu_uuid=uuid, what=critical, xid=xid, energy_mj=energy_mj)

    def _energy_mj(self, handle: Any) -> int | None:
        """Ask what the GPU has counted by now; whatever fails, the event is not lost."""
        try:
            return int(self._nvml.nvmlDeviceGetTotalEnergyConsumption(handle))
        except self._nvml.NVMLError:
            return None

    def stop_listening(self) -> None:
        """Give up what `listen` has set up."""
        self._listened_to = None
        self._free_events()

    def close(self) -> None:
        """End NVML, as far as it lets us."""
        self.stop_listening()
        with suppress(self._nvml.NVMLError):
            self._nvml.nvmlShutdown()

    def _free_events(self) -> None:
        events, self._events = self._events, None
        if events is not None:
            with suppress(self._nvml.NVMLError):
                self._nvml.nvmlEventSetFree(events)

    def _driver_version(self) -> str:
        if not self._driver:  # a text for people, no reason to fail
            with suppress(UnicodeDecodeError):
                self._driver = driver_version(self._nvml)
        return self._driver

    def _look(self, handle: Any, *, events_failure: str) -> Look:
        try:
            self._nvml.nvmlDeviceGetMemoryInfo(handle)  # unlike its UUID, not known by heart
            recovery_action = if_answered(self._nvml, lambda: self._recovery_action(handle))
            return Look(
                in_mig_mode=bool(if_answered(self._nvml, lambda: in_mig_mode(self._nvml, handle))),
                recovery_action=recovery_action,
                events_failure=events_failure if recovery_action is None else "",
                energy_mj=if_answered(self._nvml, lambda: self._nvml.nvmlDeviceGetTotalEnergyConsumption(handle)),
            )
        except self._nvml.NVMLError as error:
            return _unreached(raise_if_nvml_failed(error))

    def _recovery_action(self, handle: Any) -> int | None:
        (answer,) = self._nvml.nvmlDeviceGetFieldValues(handle, [_RECOVERY_ACTION])
        if answer.nvmlReturn:
            raise self._nvml.NVMLError(answer.nvmlReturn)
        return int(getattr(answer.value, _MEMBERS[answer.valueType])) if answer.valueType < len(_MEMBERS) else None

    def _get_to_know(self, uuids: Mapping[int, str], handles: Mapping[int, Any]) -> dict[int, Exception]:
        """Read the GPUs that are new; why not, by number, for those that cannot be shared."""
        errors: dict[int, Exception] = {}
        for index, uuid in uuids.items():
            if known := self._known.gpus.get(uuid):
                self._known.gpus[uuid] = self._renewed(known, index, handles[index])
                continue
            try:
                gpu = read_gpu(self._nvml, index, handles[index], sysfs=self._sysfs)
                self._known.addresses[uuid] = pci_address(self._nvml, handles[index])
            except errors_of_one(self._nvml) as error:
                errors[index] = raise_if_nvml_failed(error)
            else:
                self._known.gpus[uuid] = gpu
        return errors

    def _renewed(self, known: Gpu, index: int, handle: Any) -> Gpu:
        """Read what can change: a driver that is loaded anew without one GPU numbers the others anew."""
        try:
            minor = minor_of(self._nvml, handle)
        except self._nvml.NVMLError as error:
            raise_if_nvml_failed(error)
            return known
        return replace(known, index=index, minor=known.minor if minor is None else minor)

    def _registered(self, handle: Any, events: Any) -> bool:
        """Whether the driver is going to tell of a GPU."""
        try:
            types = self._nvml.nvmlDeviceGetSupportedEventTypes(handle) & _WANTED
            if types:
                self._nvml.nvmlDeviceRegisterEvents(handle, types, events)
        except self._nvml.NVMLError as error:
            raise_if_nvml_failed(error)
            return False
        return bool(types & _XID)


def _unreached(error: Exception) -> Look:
    return Look(problem=str(error), away=number_of(error) in AWAY)
