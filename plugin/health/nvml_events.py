"""What the driver tells by itself: NVML's set of events, in one run of NVML."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

from plugin.gpus.nvml import NvmlHealth, explained, if_answered, number_of, raise_if_nvml_failed
from plugin.gpus.reading import errors_of_one, uuid_of
from plugin.health.recovery_action import recovery_action
from plugin.health.reports import Event

# NVML's numbers.
_NOT_SUPPORTED, _TIMEOUT = 3, 10
_DOUBLE_BIT_ECC, _XID, _MIG_CHANGE, _UNAVAILABLE, _RECOVERY_CHANGE = 0x2, 0x8, 0x100, 0x4000, 0x8000
_CRITICAL = {_DOUBLE_BIT_ECC: "a double-bit ECC error", _UNAVAILABLE: "the GPU to be unavailable"}
_WANTED = _XID | _DOUBLE_BIT_ECC | _MIG_CHANGE | _UNAVAILABLE | _RECOVERY_CHANGE

_LASTS_TIMES = 2  # to register a GPU fails: once can be a moment

_ALL_INSTANCES = 0xFFFFFFFF  # in place of an instance's number

# "GPU recovery action changed", to none as well: where the driver tells the action, that is what counts.
_RECOVERY_ACTION_XID = 154


@dataclass(frozen=True, slots=True)
class Told:
    """One event, as quickly as it can be read: a program can cause thousands in a second."""

    handle: Any
    gpu_uuid: str
    what: str  # such as XID 79
    xid: int | None  # None for another kind of event
    gpu_instance: int | None = None  # None: the whole GPU
    compute_instance: int | None = None


class NvmlEvents:
    """The events of the GPUs that are listened to; *clock* is that of the reports. `stop` raises nothing."""

    def __init__(self, nvml: NvmlHealth, *, clock: Callable[[], float]) -> None:
        self._nvml = nvml
        self._clock = clock
        self._listened_to: frozenset[str] | None = None
        self._set: Any = None  # NVML's; None while nothing is registered
        self._known: dict[bytes, Told] = {}  # of this set, as the driver wrote them
        self._uuids: dict[bytes, str] = {}  # of what was registered, by its handle
        self._failures: dict[str, _Failure] = {}  # of GPUs, by UUID, that the driver supports events of

    @property
    def listens(self) -> bool:
        """Whether there is anything to wait for."""
        return self._set is not None

    def failure(self, uuid: str) -> str:
        """Say why the driver tells nothing of a GPU, once it has failed to twice in a row; empty otherwise."""
        failure = self._failures.get(uuid)
        return failure.why if failure is not None and failure.times >= _LASTS_TIMES else ""

    def listen(self, handles: Mapping[str, Any]) -> frozenset[str]:
        """
        Have the driver tell of these GPUs, by UUID; where it does already, those are tried again that it failed to.

        Returns:
            Those that were tried, and that it tells nothing of.
        """
        wanted = frozenset(handles)
        # What an old set has not told yet is lost with it, so a GPU that is reached no more may stay in it.
        if self._listened_to is not None and wanted <= self._listened_to:
            return self._silent(handles, wanted.intersection(self._failures))
        self.stop()
        try:
            self._set = self._nvml.nvmlEventSetCreate()
        except self._nvml.NVMLError as error:
            raise_if_nvml_failed(error)
            for uuid in wanted:
                self._fail(uuid, error)
            return wanted
        self._listened_to = wanted
        silent = self._silent(handles, wanted)
        if silent == wanted:
            self.stop()  # there is nothing to lose by another try
        return silent

    def wait(self, seconds: float) -> Told | Literal["look"] | None:
        """Wait that long for the driver; "look" is the advice to probe, None that nothing came."""
        try:
            event = self._nvml.nvmlEventSetWait_v2(self._set, max(1, int(seconds * 1000)))
        except self._nvml.NVMLError as error:
            if number_of(error) == _TIMEOUT:
                return None
            raise
        raw = _raw(event)
        known = self._known.get(raw) if raw else None
        if known is not None:
            return known
        told = self._told(event)
        if raw and isinstance(told, Told):
            self._known[raw] = told
        return told

    def event(self, told: Told, *, times: int = 1) -> Event:
        """Make the report of an event, which came *times* times by now."""
        return Event(
            seconds=self._clock(),
            gpu_uuid=told.gpu_uuid,
            what=told.what,
            xid=told.xid,
            energy_mj=self._energy_mj(told.handle),
            gpu_instance=told.gpu_instance,
            compute_instance=told.compute_instance,
            times=times,
        )

    def stop(self) -> None:
        """Give up what `listen` has set up."""
        self._listened_to = None
        self._known.clear()
        self._uuids.clear()
        events, self._set = self._set, None
        if events is not None:
            with suppress(self._nvml.NVMLError):
                self._nvml.nvmlEventSetFree(events)

    def _told(self, event: Any) -> Told | Literal["look"]:
        xid = int(event.eventData) if event.eventType == _XID else None
        what = _CRITICAL.get(event.eventType) if xid is None else f"XID {xid}"
        if what is None:
            return "look"
        try:
            if xid == _RECOVERY_ACTION_XID and self._tells_recovery(event.device):
                return "look"
            parts = _part(event, "gpuInstanceId"), _part(event, "computeInstanceId")
            return Told(event.device, self._uuid_of(event.device), what, xid, *parts)
        except errors_of_one(self._nvml):
            return "look"

    def _uuid_of(self, handle: Any) -> str:
        """Name a GPU, also one that does not say who it is at this moment: the event may be all that tells of it."""
        try:
            return uuid_of(self._nvml, handle)
        except errors_of_one(self._nvml):
            if known := self._uuids.get(_raw(handle) or b""):
                return known
            raise

    def _tells_recovery(self, handle: Any) -> bool:
        return if_answered(self._nvml, lambda: recovery_action(self._nvml, handle)) is not None

    def _energy_mj(self, handle: Any) -> int | None:
        """Ask what the GPU has counted by now; whatever fails, the event is not lost."""
        try:
            return int(self._nvml.nvmlDeviceGetTotalEnergyConsumption(handle))
        except self._nvml.NVMLError:
            return None

    def _silent(self, handles: Mapping[str, Any], tried: frozenset[str]) -> frozenset[str]:
        return frozenset(uuid for uuid in tried if not self._registered(uuid, handles[uuid]))

    def _registered(self, uuid: str, handle: Any) -> bool:
        """Whether the driver is going to tell of a GPU."""
        try:
            types = self._nvml.nvmlDeviceGetSupportedEventTypes(handle) & _WANTED
            if types:
                self._nvml.nvmlDeviceRegisterEvents(handle, types, self._set)
                if raw := _raw(handle):
                    self._uuids[raw] = uuid
        except self._nvml.NVMLError as error:
            raise_if_nvml_failed(error)
            self._fail(uuid, error)
            return False
        self._failures.pop(uuid, None)
        return bool(types & _XID)

    def _fail(self, uuid: str, error: Exception) -> None:
        if number_of(error) == _NOT_SUPPORTED:  # and will not be
            self._failures.pop(uuid, None)
            return
        before = self._failures.get(uuid)
        why = f"NVML does not deliver events: {explained(error)}"
        self._failures[uuid] = _Failure(times=before.times + 1 if before else 1, why=why)


@dataclass(frozen=True, slots=True)
class _Failure:
    """To register a GPU, as often in a row."""

    times: int
    why: str


def _part(event: Any, field: str) -> int | None:
    """Read which instance of the GPU an event is of; None for all of them."""
    number = int(getattr(event, field, _ALL_INSTANCES))
    return None if number == _ALL_INSTANCES else number


def _raw(written: Any) -> bytes | None:
    """
    Copy what the driver wrote: an event, or a handle.

    That tells events apart in a tenth of the time. None if NVML is not the library.
    """
    try:
        return bytes(written)
    except TypeError:
        return None
