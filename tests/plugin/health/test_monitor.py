"""How often NVML is asked, in simulated time: never a loop that does nothing else, and often enough."""

from collections.abc import Callable
from itertools import cycle, pairwise, repeat
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from plugin.gpus.gpu import Gpu
from plugin.health.reports import Event, NvmlFailure, Probe
from plugin.simulated.faults import LostFault, NvmlFault, XidFault
from plugin.simulated.nvml_errors import SimulatedNvmlError
from tests.plugin.health.simulated_time import FIRST, GPUS, HOUR, SECOND, CountedNvml, pci_device, watched


def test_gpus_that_are_well_are_looked_at_every_five_seconds_by_one_start_of_nvml() -> None:
    calls, reports = watched()
    assert calls["init"] == 1
    assert HOUR / 5 <= calls["probe"] <= HOUR / 5 + 1
    assert calls["wait"] <= 2 * HOUR + 1
    assert all(isinstance(report, Probe) for report in reports)


def test_a_lost_gpu_costs_a_start_in_ten_seconds_and_not_more_looks() -> None:
    calls, _ = watched(LostFault(at_seconds=10, gpu_uuid=FIRST))
    assert calls["create"] == calls["free"] > 1
    assert calls["init"] <= HOUR / 10 + 1
    assert calls["probe"] <= HOUR / 5 + HOUR / 10 + 3
    assert calls["wait"] <= 2 * HOUR + 5


def test_a_node_without_gpus_is_looked_at_anew_now_and_then() -> None:
    calls, _ = watched(gpus=())
    assert HOUR / 20 <= calls["init"] <= HOUR / 10 + 1


def test_a_gpu_that_is_found_again_is_reported_within_ten_seconds() -> None:
    _, reports = watched(LostFault(at_seconds=100, recovers_seconds=1234.5, gpu_uuid=FIRST))
    well = [
        report.seconds
        for report in reports
        if isinstance(report, Probe) and report.seconds > 110 and not report.looks[FIRST].problem
    ]
    assert 0 <= well[0] - 1234.5 <= 10


def test_nvml_that_fails_is_started_anew_ever_slower_and_found_within_ten_seconds() -> None:
    calls, reports = watched(NvmlFault(at_seconds=100, recovers_seconds=1234.5))
    failures = [report.seconds for report in reports if isinstance(report, NvmlFailure)]
    pauses = [round(late - early) for early, late in pairwise(failures)]
    assert pauses[:5] == [1, 2, 4, 8, 10]
    assert set(pauses[4:]) == {10}
    back = next(report.seconds for report in reports if isinstance(report, Probe) and report.seconds > 110)
    assert 0 <= back - 1234.5 <= 10
    assert calls["init"] == len(failures) + 1


def fails(value: int) -> Callable[[], Any]:
    def wait() -> Any:
        raise SimulatedNvmlError(value)

    return wait


@pytest.mark.parametrize("value", [1, 15, 999])
def test_waiting_that_fails_at_once_each_time_is_no_busy_loop(value: int) -> None:
    calls, reports = watched(wait=fails(value))
    assert calls["wait"] <= HOUR / 2
    assert calls["probe"] <= HOUR / 2 + HOUR / 5
    assert HOUR / 50 <= calls["init"] <= HOUR / 10 + 1  # which may help
    assert not any(isinstance(report, NvmlFailure) for report in reports)  # all GPUs answer


def test_listening_that_cannot_begin_is_tried_again_ever_slower(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CountedNvml, "nvmlEventSetCreate", lambda _: fails(1)())
    calls, reports = watched()
    assert HOUR / 12 <= calls["init"] <= HOUR / 10 + 5
    assert isinstance(reports[-1], NvmlFailure)


def test_waiting_that_fails_now_and_then_is_no_reason_to_start_nvml_anew() -> None:
    outcomes = cycle([15, 10])

    def wait() -> Any:
        raise SimulatedNvmlError(next(outcomes))

    calls, _ = watched(wait=wait)
    assert calls["init"] == 1


def test_waiting_that_returns_at_once_each_time_is_no_busy_loop() -> None:
    calls, _ = watched(wait=fails(10))  # a timeout without the time
    assert calls["wait"] <= 2 * HOUR + 1


WAIT_SECONDS = 1e-5  # that a call takes which finds an event there


@pytest.mark.parametrize("event_type", [8, 0x8000, 0])
def test_a_flood_of_events_that_does_not_end_takes_half_a_core(event_type: int) -> None:
    class Flood:
        device, eventType, eventData = GPUS[0], event_type, 79  # noqa: N815

    calls, reports = watched(wait=Flood, wait_costs_seconds=5 * WAIT_SECONDS, seconds=10)
    assert calls["wait"] <= 100_000 + 0.5 * 5 / (5 * WAIT_SECONDS) + 5000
    assert calls["probe"] <= 10 / 0.2 + 1
    assert len(reports) <= 3 * 10 / 0.2 + 1


def flood(*events: Any, seconds: float = 60) -> list[Event]:
    """Watch a node whose driver has all of *events* to tell at once."""
    left = iter(events)

    def wait() -> Any:
        if (told := next(left, None)) is None:
            raise SimulatedNvmlError(10)
        return told

    _, reports = watched(wait=wait, wait_costs_seconds=WAIT_SECONDS, seconds=seconds)
    return [report for report in reports if isinstance(report, Event)]


def event(gpu: Gpu, event_type: int, xid: int) -> Any:
    return SimpleNamespace(device=gpu, eventType=event_type, eventData=xid)


@pytest.mark.parametrize("storm", [8, 0x8000, 0])
def test_an_xid_behind_fifty_thousand_other_events_is_reported_within_moments(storm: int) -> None:
    reports = flood(*repeat(event(GPUS[0], storm, 31), 50_000), event(GPUS[1], 8, 79))
    assert next(one.seconds for one in reports if one.xid == 79) <= 1.1 * 50_000 * WAIT_SECONDS


def test_events_alike_are_told_with_their_number_and_none_is_left_out() -> None:
    mixed = [event(GPUS[number % 2], 8, 31 if number % 3 else 43) for number in range(6000)]
    reports = flood(*mixed)
    assert len(reports) < 20
    for gpu, xid, times in ((0, 31, 2000), (0, 43, 1000), (1, 31, 2000), (1, 43, 1000)):
        alike = [one for one in reports if (one.gpu_uuid, one.xid) == (GPUS[gpu].uuid, xid)]
        assert alike[0].times == 1
        assert sum(one.times for one in alike) == times


def test_an_error_that_comes_once_more_is_told_once_more() -> None:
    faults = [XidFault(at_seconds=seconds, gpu_uuid=FIRST, xid=79) for seconds in (10, 10.05, 20)]
    _, reports = watched(*faults, seconds=60)
    told = [report for report in reports if isinstance(report, Event)]
    assert [report.times for report in told] == [1, 1, 1]
    assert [report.seconds for report in told] == pytest.approx([10, 10, 20], abs=1)


def test_where_the_kernel_lists_no_gpus_new_ones_are_looked_for_each_minute(tmp_path: Path) -> None:
    calls, _ = watched(sysfs=tmp_path)
    assert HOUR / 70 <= calls["init"] <= HOUR / 60 + 1


def test_where_the_kernel_lists_the_gpus_that_are_well_nvml_is_left_alone(tmp_path: Path) -> None:
    pci_device(tmp_path, "0000:01:00.0")
    calls, _ = watched(sysfs=tmp_path)
    assert calls["init"] == 1


def test_an_xid_is_reported_at_once_and_by_its_gpu() -> None:
    faults = (XidFault(at_seconds=11.3, gpu_uuid=SECOND, xid=79), XidFault(at_seconds=11.4, gpu_uuid=FIRST, xid=31))
    _, reports = watched(*faults, seconds=60)
    events = [report for report in reports if isinstance(report, Event)]
    assert [(event.gpu_uuid, event.xid) for event in events] == [(SECOND, 79), (FIRST, 31)]
    assert [event.seconds for event in events] == pytest.approx([11.3, 11.4], abs=0.05)


def test_a_gpu_that_comes_onto_the_bus_starts_nvml_anew_for_a_while(tmp_path: Path) -> None:
    pci_device(tmp_path, "0000:01:00.0")

    def at(seconds: float) -> None:
        if seconds >= 100 and not (tmp_path / "bus/pci/devices/0000:02:00.0").exists():
            pci_device(tmp_path, "0000:02:00.0")

    calls, reports = watched(sysfs=tmp_path, at=at)
    assert 6 <= calls["init"] <= 8
    renewed = next(report for report in reports if isinstance(report, Probe) and report.generation == 2)
    assert renewed.seconds <= 106


def test_a_lost_gpu_that_the_bus_cannot_reach_is_left_alone_until_it_can(tmp_path: Path) -> None:
    device = pci_device(tmp_path, "0000:01:00.0")
    (device / "config").write_bytes(b"\xff\xff")  # fallen off the bus

    def at(seconds: float) -> None:
        if seconds >= 1800:
            (device / "config").write_bytes(b"\xde\x10")

    lost = LostFault(at_seconds=10, recovers_seconds=1800, gpu_uuid=FIRST)
    calls, reports = watched(lost, sysfs=tmp_path, at=at)
    assert calls["init"] == 2
    assert isinstance(reports[-1], Probe)
    assert not reports[-1].looks[FIRST].problem
