"""The simulated NVML: what a script says, in the shape in which a driver would say it."""

from dataclasses import replace

import pytest

from plugin.gpus.discovery import discover
from plugin.simulated.faults import LostFault, ScriptedFault, XidFault
from plugin.simulated.gpus import SimulatedNode, simulated_gpus
from plugin.simulated.nvml import SimulatedNvml
from tests.plugin.simulated_driver import (
    FIRST,
    GPUS,
    RECOVERY_ACTION,
    SECOND,
    XID_EVENT,
    energy_mj,
    error_of,
    listening,
    recovery_action,
    started,
)


@pytest.mark.parametrize("specification", ["1xL4", "2xH200", "8xB200"])
def test_the_inventory_is_that_of_the_simulated_gpus(specification: str) -> None:
    gpus = simulated_gpus(specification)
    inventory = discover(SimulatedNvml(SimulatedNode(gpus=gpus), clock=lambda: 0))
    assert inventory.gpus == gpus
    assert inventory.skipped == ()
    assert inventory.driver == "simulated"


def test_a_gpu_without_a_numa_node_has_none_in_the_inventory() -> None:
    gpus = tuple(replace(gpu, numa_node=None) for gpu in GPUS)
    assert discover(SimulatedNvml(SimulatedNode(gpus=gpus), clock=lambda: 0)).gpus == gpus


def test_nothing_answers_before_the_first_initialisation_and_after_the_last_shutdown() -> None:
    nvml, _ = started()
    nvml.nvmlInit()
    nvml.nvmlShutdown()
    assert nvml.nvmlDeviceGetCount() == 2
    nvml.nvmlShutdown()
    assert error_of(nvml.nvmlDeviceGetCount) == 1
    assert error_of(nvml.nvmlShutdown) == 1


def test_an_xid_is_an_event_of_its_gpu_and_comes_once() -> None:
    nvml, clock = started(XidFault(at_seconds=10, recovers_seconds=40, gpu_uuid=SECOND, xid=79))
    event_set = listening(nvml, 0, 1)
    assert error_of(lambda: nvml.nvmlEventSetWait_v2(event_set, 1000)) == 10
    assert clock() == 1
    event = nvml.nvmlEventSetWait_v2(event_set, 60_000)
    assert (clock(), event.eventType, event.eventData) == (10, XID_EVENT, 79)
    assert nvml.nvmlDeviceGetUUID(event.device) == SECOND
    assert error_of(lambda: nvml.nvmlEventSetWait_v2(event_set, 60_000)) == 10


def test_two_equal_xids_are_two_events() -> None:
    twice = XidFault(at_seconds=1, gpu_uuid=FIRST, xid=31)
    nvml, _ = started(twice, twice)
    event_set = listening(nvml, 0)
    assert [nvml.nvmlEventSetWait_v2(event_set, 5000).eventData for _ in "12"] == [31, 31]
    assert error_of(lambda: nvml.nvmlEventSetWait_v2(event_set, 5000)) == 10


def test_an_event_waits_for_somebody_who_listens_to_its_gpu_and_type() -> None:
    nvml, clock = started(XidFault(at_seconds=1, gpu_uuid=SECOND, xid=31))
    without_events = listening(nvml, 0)
    nvml.nvmlDeviceRegisterEvents(nvml.nvmlDeviceGetHandleByIndex(1), 0x2, without_events)
    assert error_of(lambda: nvml.nvmlEventSetWait_v2(without_events, 5000)) == 10
    assert nvml.nvmlEventSetWait_v2(listening(nvml, 1), 0).eventData == 31
    assert clock() == 5


def test_an_event_type_that_no_gpu_has_is_rejected() -> None:
    nvml, _ = started()
    handle = nvml.nvmlDeviceGetHandleByIndex(0)
    assert nvml.nvmlDeviceGetSupportedEventTypes(handle) & XID_EVENT
    with pytest.raises(nvml.NVMLError_NotSupported):
        nvml.nvmlDeviceRegisterEvents(handle, 0x1000 | XID_EVENT, {})


@pytest.mark.parametrize(
    ("xid", "recovers_seconds", "actions"),
    [
        (79, 40, [0, 1, 1, 0]),
        (79, float("inf"), [0, 1, 1, 1]),
        (31, float("inf"), [0, 0, 0, 0]),  # a program's: the driver asks for nothing
        (31, 40, [0, 1, 1, 0]),
    ],
)
def test_the_driver_asks_for_a_reset_until_the_script_recovers(
    xid: int, recovers_seconds: float, actions: list[int]
) -> None:
    nvml, clock = started(XidFault(at_seconds=10, recovers_seconds=recovers_seconds, gpu_uuid=FIRST, xid=xid))
    seen = []
    for clock.seconds in (9.9, 10, 39.9, 40):
        seen.append(recovery_action(nvml, 0))
        assert recovery_action(nvml, 1) == 0
    assert seen == actions


def test_a_field_that_is_not_simulated_is_not_supported() -> None:
    nvml, _ = started()
    first, second = nvml.nvmlDeviceGetFieldValues(nvml.nvmlDeviceGetHandleByIndex(0), [1, RECOVERY_ACTION])
    assert (first.nvmlReturn, second.nvmlReturn) == (3, 0)


@pytest.mark.parametrize(
    "fault",
    [
        XidFault(at_seconds=10, recovers_seconds=40, gpu_uuid=FIRST, xid=79),
        LostFault(at_seconds=10, recovers_seconds=40, gpu_uuid=FIRST),
    ],
)
def test_energy_rises_and_begins_again_with_a_reset(fault: ScriptedFault) -> None:
    nvml, clock = started(fault)
    before = energy_mj(nvml, 0)
    clock.seconds = 9
    assert energy_mj(nvml, 0) > before
    clock.seconds = 41
    nvml.nvmlShutdown()
    nvml.nvmlInit()
    assert 0 < energy_mj(nvml, 0) < before
    assert energy_mj(nvml, 1) > before


def test_energy_goes_on_after_a_programs_fault() -> None:
    nvml, clock = started(XidFault(at_seconds=10, gpu_uuid=FIRST, xid=31))
    before = energy_mj(nvml, 0)
    clock.seconds = 100
    assert energy_mj(nvml, 0) > before
