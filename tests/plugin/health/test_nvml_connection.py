"""One GPU's trouble against everybody's, in calls that no script reaches."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from plugin.health.nvml_connection import KnownGpus, NvmlConnection
from plugin.health.nvml_events import Told
from plugin.health.reports import Event
from plugin.simulated.gpus import SimulatedNode, simulated_gpus
from plugin.simulated.nvml import SimulatedNvml
from plugin.simulated.nvml_errors import SimulatedNvmlError

GPUS = simulated_gpus("2xH200")
FIRST, SECOND = (gpu.uuid for gpu in GPUS)


def error(value: int) -> SimulatedNvmlError:
    made = SimulatedNvmlError(1)
    made.value = value
    return made


def session(**replaced: Callable[..., Any]) -> NvmlConnection:
    nvml = SimulatedNvml(SimulatedNode(gpus=GPUS), clock=lambda: 0.0, sleep=lambda _: None)
    nvml.nvmlInit()
    vars(nvml).update(replaced)
    return NvmlConnection(nvml, KnownGpus(), generation=3, clock=lambda: 7.0, sysfs=Path("/nowhere"))


def heard_from(known: NvmlConnection) -> Event | str | None:
    found = known.events.wait(1)
    return known.events.event(found) if isinstance(found, Told) else found


def break_call(known: NvmlConnection, call: str, value: int, *, of: str = FIRST) -> NvmlConnection:
    """Let a call fail for one of the GPUs."""
    whole = getattr(known._nvml, call)

    def fail(handle: Any, *more: Any) -> Any:
        if handle.uuid == of:
            raise error(value)
        return whole(handle, *more)

    setattr(known._nvml, call, fail)
    return known


def test_a_probe_tells_when_and_in_which_run_of_nvml_it_was() -> None:
    probe = session().probe()
    assert (probe.seconds, probe.generation, probe.driver) == (7.0, 3, "simulated")
    assert [gpu.uuid for gpu in probe.gpus] == list(probe.looks) == [FIRST, SECOND]


OPTIONAL = ["nvmlDeviceGetMigMode", "nvmlDeviceGetFieldValues", "nvmlDeviceGetTotalEnergyConsumption"]


@pytest.mark.parametrize("call", OPTIONAL)
@pytest.mark.parametrize("value", [15, 16])
def test_a_gpu_that_is_lost_between_two_calls_is_lost(call: str, value: int) -> None:
    known = session()
    known.probe()
    looks = break_call(known, call, value).probe().looks
    assert (looks[FIRST].away, bool(looks[FIRST].problem)) == (True, True)
    assert not looks[SECOND].problem
    assert known.reached == {SECOND}


@pytest.mark.parametrize("call", OPTIONAL)
@pytest.mark.parametrize("value", [2, 3, 13, 999])
def test_what_a_driver_does_not_tell_is_no_problem(call: str, value: int) -> None:
    looks = break_call(session(), call, value).probe().looks
    assert [look.problem for look in looks.values()] == ["", ""]


@pytest.mark.parametrize("trouble", [error(2), error(999), UnicodeDecodeError("utf-8", b"\xff", 0, 1, "odd")])
def test_a_driver_that_does_not_say_its_version_is_used(trouble: Exception) -> None:
    def fail() -> str:
        raise trouble

    probe = session(nvmlSystemGetDriverVersion=fail).probe()
    assert (probe.driver, len(probe.gpus)) == ("", 2)


@pytest.mark.parametrize("call", ["nvmlDeviceGetMinorNumber", "nvmlDeviceGetPciInfo", "nvmlDeviceGetNumaNodeId"])
@pytest.mark.parametrize("value", [2, 4, 999])
def test_what_a_gpu_can_be_shared_without_keeps_none_from_being_shared(call: str, value: int) -> None:
    assert len(break_call(session(), call, value).probe().gpus) == 2


def test_what_changes_of_a_gpu_is_read_anew_and_kept_while_it_is_not_told() -> None:
    known = session(nvmlDeviceGetMinorNumber=lambda handle: handle.index)
    nvml = known._nvml
    assert [gpu.minor for gpu in known.probe().gpus] == [0, 1]
    vars(nvml).update(
        nvmlDeviceGetMinorNumber=lambda handle: 1 - handle.index,
        nvmlDeviceGetHandleByIndex=lambda index: GPUS[1 - index],
    )
    for value in (0, 3, 15):
        if value:
            break_call(known, "nvmlDeviceGetMinorNumber", value)
        gpus = {gpu.uuid: gpu for gpu in known.probe().gpus}
        assert [(gpus[uuid].minor, gpus[uuid].index) for uuid in (FIRST, SECOND)] == [(1, 1), (0, 0)]


@pytest.mark.parametrize("call", ["nvmlDeviceGetMemoryInfo", "nvmlDeviceGetUUID", *OPTIONAL])
@pytest.mark.parametrize("value", [1, 9, 18])
def test_what_fails_for_all_is_no_gpus_own_problem(call: str, value: int) -> None:
    with pytest.raises(SimulatedNvmlError) as raised:
        break_call(session(), call, value).probe()
    assert raised.value.value == value


def test_a_field_that_says_that_the_gpu_is_lost_is_believed() -> None:
    answer = SimpleNamespace(nvmlReturn=15, valueType=1, value=SimpleNamespace(uiVal=0))
    looks = session(nvmlDeviceGetFieldValues=lambda *_: [answer]).probe().looks
    assert all(look.away for look in looks.values())


def test_a_gpu_whose_uuid_cannot_be_part_of_an_id_or_is_no_text_is_skipped() -> None:
    for uuid in ("", b"\xff"):
        known = session(nvmlDeviceGetUUID=lambda handle, uuid=uuid: SECOND if handle.uuid == SECOND else uuid)
        probe = known.probe()
        assert list(probe.looks) == [SECOND]
        assert probe.skipped[0].startswith("GPU 0 of 2 cannot be shared: ")


@pytest.mark.parametrize(
    ("told", "heard"), [((8, 79), ("XID 79", 79)), ((2, 1), ("a double-bit ECC error", None)), ((0x8000, 1), "look")]
)
def test_an_event_is_told_with_its_gpu_or_a_reason_to_look(told: tuple[int, int], heard: object) -> None:
    event = SimpleNamespace(device=GPUS[1], eventType=told[0], eventData=told[1])
    known = session(nvmlEventSetWait_v2=lambda *_: event)
    known.probe()
    assert known.listen() == frozenset()
    assert known.events.listens
    found = heard_from(known)
    if isinstance(found, str) or found is None:
        assert found == heard
    else:
        assert ((found.what, found.xid), found.gpu_uuid, found.seconds) == (heard, SECOND, 7.0)


@pytest.mark.parametrize("value", [3, 15, 1])
def test_an_event_says_what_the_gpu_has_counted_by_then_and_is_not_lost_where_it_does_not(value: int) -> None:
    event = SimpleNamespace(device=GPUS[1], eventType=8, eventData=79)
    known = session(nvmlEventSetWait_v2=lambda *_: event)
    known.probe()
    known.listen()
    found = heard_from(known)
    assert isinstance(found, Event)
    assert found.energy_mj == known._nvml.nvmlDeviceGetTotalEnergyConsumption(GPUS[1])
    break_call(known, "nvmlDeviceGetTotalEnergyConsumption", value, of=SECOND)
    found = heard_from(known)
    assert isinstance(found, Event)
    assert (found.what, found.energy_mj) == ("XID 79", None)


def test_an_event_of_a_gpu_that_cannot_say_who_it_is_is_a_reason_to_look() -> None:
    event = SimpleNamespace(device=GPUS[1], eventType=8, eventData=79)
    known = session(nvmlEventSetWait_v2=lambda *_: event)
    known.probe()
    known.listen()
    break_call(known, "nvmlDeviceGetUUID", 15, of=SECOND)
    assert known.events.wait(1) == "look"


def test_gpus_are_named_that_nothing_is_told_of() -> None:
    known = break_call(session(), "nvmlDeviceGetSupportedEventTypes", 3)
    known.probe()
    assert known.listen() == {FIRST}
    assert known.events.listens
    assert known.listen() == frozenset()  # once


def test_a_driver_without_events_is_no_failure() -> None:
    def no_events() -> None:
        raise error(3)

    known = session(nvmlEventSetCreate=no_events)
    known.probe()
    assert known.listen() == {FIRST, SECOND}
    assert not known.events.listens


@pytest.mark.parametrize("call", ["nvmlEventSetCreate", "nvmlDeviceRegisterEvents"])
def test_a_driver_that_told_of_nothing_is_asked_again(call: str) -> None:
    known = session()
    whole = getattr(known._nvml, call)
    known.probe()

    def fail(*_: object) -> Any:
        raise error(999)

    setattr(known._nvml, call, fail)
    assert known.listen() == {FIRST, SECOND}
    setattr(known._nvml, call, whole)
    assert known.listen() == frozenset()
    assert known.events.listens


def test_the_end_of_a_run_that_has_failed_is_quiet() -> None:
    known = session()
    known.probe()
    known.listen()
    known.close()
    known.close()
