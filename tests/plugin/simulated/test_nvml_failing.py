"""The simulated NVML, where a GPU is lost or all of it fails."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plugin.gpus.nvml import NvmlHealth
from plugin.simulated.faults import LostFault, MpsFault, NvmlFault, ScriptedFault, XidFault
from plugin.simulated.nvml_errors import SimulatedNvmlError
from tests.plugin.simulated_driver import (
    FIRST,
    RECOVERY_ACTION,
    SECOND,
    XID_EVENT,
    Clock,
    error_of,
    listening,
    recovery_action,
    started,
)

GPU_CALLS: list[Callable[[NvmlHealth, Any], Any]] = [
    lambda nvml, handle: nvml.nvmlDeviceGetUUID(handle),
    lambda nvml, handle: nvml.nvmlDeviceGetName(handle),
    lambda nvml, handle: nvml.nvmlDeviceGetMemoryInfo(handle),
    lambda nvml, handle: nvml.nvmlDeviceGetMigMode(handle),
    lambda nvml, handle: nvml.nvmlDeviceGetPciInfo(handle),
    lambda nvml, handle: nvml.nvmlDeviceGetMinorNumber(handle),
    lambda nvml, handle: nvml.nvmlDeviceGetNumaNodeId(handle),
    lambda nvml, handle: nvml.nvmlDeviceGetTotalEnergyConsumption(handle),
    lambda nvml, handle: nvml.nvmlDeviceGetFieldValues(handle, [RECOVERY_ACTION]),
    lambda nvml, handle: nvml.nvmlDeviceGetSupportedEventTypes(handle),
    lambda nvml, handle: nvml.nvmlDeviceRegisterEvents(handle, XID_EVENT, {}),
]


@pytest.mark.parametrize("call", GPU_CALLS)
def test_a_lost_gpu_fails_every_call_until_nvml_is_initialised_anew_and_the_other_none(
    call: Callable[[NvmlHealth, Any], Any],
) -> None:
    nvml, clock = started(LostFault(at_seconds=10, recovers_seconds=40, gpu_uuid=FIRST))
    lost, other = map(nvml.nvmlDeviceGetHandleByIndex, (0, 1))
    assert error_of(lambda: call(nvml, lost)) in (None, 3)
    for clock.seconds in (10, 39, 41):
        assert error_of(lambda: call(nvml, lost)) == 15
        assert error_of(lambda: call(nvml, other)) in (None, 3)
    assert error_of(lambda: nvml.nvmlDeviceGetHandleByIndex(0)) == 15
    assert nvml.nvmlDeviceGetCount() == 2
    nvml.nvmlShutdown()
    nvml.nvmlInit()
    assert error_of(lambda: call(nvml, nvml.nvmlDeviceGetHandleByIndex(0))) in (None, 3)


def test_one_more_user_of_nvml_neither_brings_a_lost_gpu_back_nor_loses_it_again() -> None:
    nvml, clock = started(LostFault(at_seconds=10, recovers_seconds=40, gpu_uuid=FIRST))
    clock.seconds = 41
    nvml.nvmlInit()
    assert error_of(lambda: nvml.nvmlDeviceGetHandleByIndex(0)) == 15
    nvml.nvmlShutdown()
    nvml.nvmlShutdown()
    nvml.nvmlInit()
    nvml.nvmlInit()
    assert error_of(lambda: nvml.nvmlDeviceGetHandleByIndex(0)) is None


def test_to_initialise_anew_too_early_does_not_bring_a_lost_gpu_back() -> None:
    nvml, clock = started(LostFault(at_seconds=10, recovers_seconds=40, gpu_uuid=FIRST))
    clock.seconds = 39
    nvml.nvmlShutdown()
    nvml.nvmlInit()
    clock.seconds = 41
    assert error_of(lambda: nvml.nvmlDeviceGetHandleByIndex(0)) == 15


def test_waiting_for_events_of_a_lost_gpu_fails_at_once_but_not_before_its_last_event() -> None:
    nvml, clock = started(
        XidFault(at_seconds=10, gpu_uuid=FIRST, xid=79), LostFault(at_seconds=10, recovers_seconds=40, gpu_uuid=FIRST)
    )
    both, second = listening(nvml, 0, 1), listening(nvml, 1)
    assert nvml.nvmlEventSetWait_v2(both, 60_000).eventData == 79
    assert error_of(lambda: nvml.nvmlEventSetWait_v2(both, 60_000)) == 15
    assert clock() == 10
    assert error_of(lambda: nvml.nvmlEventSetWait_v2(second, 1000)) == 10
    assert clock() == 11


def test_an_nvml_that_fails_stays_so_until_it_is_initialised_anew() -> None:
    nvml, clock = started(NvmlFault(at_seconds=60, recovers_seconds=90))
    handle, event_set = nvml.nvmlDeviceGetHandleByIndex(0), listening(nvml, 0)
    assert error_of(lambda: nvml.nvmlEventSetWait_v2(event_set, 100_000)) == 999
    assert clock() == 60
    assert error_of(nvml.nvmlInit) == 9
    clock.seconds = 91
    assert [error_of(lambda call=call: call(nvml, handle)) for call in GPU_CALLS] == [999] * len(GPU_CALLS)  # type: ignore[misc]
    nvml.nvmlShutdown()
    nvml.nvmlInit()
    assert nvml.nvmlDeviceGetUUID(handle) == FIRST


@st.composite
def _faults(draw: st.DrawFn) -> ScriptedFault:
    at = draw(st.integers(0, 30))
    window = {"at_seconds": float(at), "recovers_seconds": float(at + draw(st.integers(1, 20)))}
    uuid = draw(st.sampled_from([FIRST, SECOND]))
    match draw(st.sampled_from(["xid", "lost", "nvml", "mps"])):
        case "lost":
            return LostFault(**window, gpu_uuid=uuid)
        case "nvml":
            return NvmlFault(**{**window, "at_seconds": at + 0.5})
        case "mps":
            return MpsFault(**window, gpu_uuid=uuid, why="fault")
        case _:
            return XidFault(**window, gpu_uuid=uuid, xid=draw(st.sampled_from([31, 79])))


@given(faults=st.lists(_faults(), max_size=6), timeout_ms=st.integers(200, 7000))
def test_whoever_begins_anew_after_each_failure_hears_every_xid_once_and_finds_all_well_in_the_end(
    faults: list[ScriptedFault], timeout_ms: int
) -> None:
    nvml, clock = started(*faults)
    heard: list[tuple[str, int]] = []
    while clock() < 60:
        try:
            event = nvml.nvmlEventSetWait_v2(listening(nvml, 0, 1), timeout_ms)
            heard.append((event.device.uuid, event.eventData))
        except SimulatedNvmlError as error:
            if error.value != 10:
                clock.sleep(0.7)
                _begin_anew(nvml, clock)
    _begin_anew(nvml, clock)
    assert [recovery_action(nvml, index) for index in (0, 1)] == [0, 0]
    xids = [fault for fault in sorted(faults, key=lambda fault: fault.at_seconds) if isinstance(fault, XidFault)]
    for uuid in (FIRST, SECOND):
        assert [xid for of, xid in heard if of == uuid] == [fault.xid for fault in xids if fault.gpu_uuid == uuid]


def _begin_anew(nvml: NvmlHealth, clock: Clock) -> None:
    nvml.nvmlShutdown()
    while error_of(nvml.nvmlInit) == 9:
        clock.sleep(0.7)
