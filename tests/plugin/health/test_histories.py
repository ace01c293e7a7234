"""Whatever goes wrong on a node and is repaired, in simulated time: what the watcher sees and the rules make of it."""

import math
from collections.abc import Callable, Iterable

from hypothesis import given, settings
from hypothesis import strategies as st

from plugin.health.gpu_state import Moment
from plugin.health.inventory import GpuInventory
from plugin.health.reports import Probe
from plugin.simulated.faults import LostFault, NvmlFault, ScriptedFault, XidFault
from policies.contract import MPS
from tests.plugin.health.simulated_time import FIRST, GPUS, SECOND, watched

BACK_WITHIN_SECONDS = 30.0
SEEN_WITHIN_SECONDS = 5.5  # a probe, and the pause of a wait that failed
LAST_REPAIR_SECONDS = 200.0

times = st.tuples(st.floats(1, 150), st.floats(0.5, 50)).map(lambda both: (both[0], both[0] + both[1]))
uuids = st.sampled_from([FIRST, SECOND])
faults = st.one_of(
    st.builds(lambda when, uuid: LostFault(at_seconds=when[0], recovers_seconds=when[1], gpu_uuid=uuid), times, uuids),
    st.builds(
        lambda when, uuid, xid: XidFault(at_seconds=when[0], recovers_seconds=when[1], gpu_uuid=uuid, xid=xid),
        times,
        uuids,
        st.sampled_from([48, 79, 95]),
    ),
    st.builds(lambda when: NvmlFault(at_seconds=when[0], recovers_seconds=when[1]), times),
)


def history(scripted: Iterable[ScriptedFault], each: Callable[[float, set[str]], None]) -> None:
    """Live through it; *each* hears of the time and the unhealthy GPUs after each report."""
    inventory = GpuInventory(strategy_of=lambda _: MPS, application_xids=frozenset({31}), before=None)
    _, reports = watched(*sorted(scripted, key=lambda fault: fault.at_seconds), seconds=LAST_REPAIR_SECONDS + 100)
    for report in reports:
        inventory.take(report, Moment(report.seconds, "then"))
        each(report.seconds, {entry.gpu.uuid for entry in inventory.entries if entry.why})


def of(fault: ScriptedFault) -> set[str]:
    match fault:
        case XidFault(gpu_uuid=uuid) | LostFault(gpu_uuid=uuid):
            return {uuid}
        case _:
            return {gpu.uuid for gpu in GPUS}


@settings(max_examples=60, deadline=None)
@given(st.lists(faults, max_size=6))
def test_a_gpu_is_unhealthy_while_something_is_wrong_with_it_and_back_in_time(scripted: list[ScriptedFault]) -> None:
    last_repair = {gpu.uuid: 0.0 for gpu in GPUS}
    for fault in scripted:
        for uuid in of(fault):
            last_repair[uuid] = max(last_repair[uuid], fault.recovers_seconds)

    def check(seconds: float, unhealthy: set[str]) -> None:
        for fault in scripted:
            if fault.at_seconds + SEEN_WITHIN_SECONDS <= seconds < fault.recovers_seconds:
                assert of(fault) <= unhealthy
        for uuid, repaired_seconds in last_repair.items():
            if seconds > repaired_seconds + BACK_WITHIN_SECONDS:
                assert uuid not in unhealthy

    history(scripted, check)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.builds(lambda at, uuid: XidFault(at_seconds=at, gpu_uuid=uuid, xid=79, recovers_seconds=math.inf),
                          st.floats(1, 150), uuids), min_size=1, max_size=3))  # fmt: skip
def test_a_gpu_that_is_never_repaired_never_comes_back(scripted: list[ScriptedFault]) -> None:
    known_ill: set[str] = set()

    def check(_: float, unhealthy: set[str]) -> None:
        assert known_ill <= unhealthy
        known_ill.update(unhealthy)

    history(scripted, check)
    assert known_ill == {uuid for fault in scripted for uuid in of(fault)}


def test_histories_have_something_to_say() -> None:
    _, reports = watched(NvmlFault(at_seconds=10, recovers_seconds=20), seconds=60)
    assert [type(report) is Probe for report in reports].count(False) >= 2
