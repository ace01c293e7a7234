from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plugin.gpus.numbers import GpuNumbers
from plugin.health.gpu_state import Moment
from plugin.health.inventory import GpuInventory
from plugin.health.reports import SILENT_SECONDS, Event, Look, NvmlFailure, Probe
from plugin.health.state import ApplicationFault, NodeHealth
from plugin.shares.division import Division
from plugin.simulated.gpus import simulated_gpus
from policies.cluster import Cluster
from policies.contract import MPS, TIME_SLICING, SharingStrategy

GPUS = simulated_gpus("3xH200")
RESOURCE_OF = Division(Cluster(), node_name="node", number_of=GpuNumbers(None, ()).of).resource_of
FIRST, SECOND, THIRD = (gpu.uuid for gpu in GPUS)
APPLICATION_XIDS = frozenset({13, 31, 43, 45, 68, 109})
GOOD = Look(recovery_action=0)


def inventory(*, strategies: tuple[SharingStrategy | None, ...] = (MPS, MPS, None), **options: Any) -> GpuInventory:
    arguments = {"application_xids": APPLICATION_XIDS, "before": None, **options}
    return GpuInventory(strategy_of=lambda gpu: strategies[gpu.index], **arguments)


def at(seconds: float) -> Moment:
    return Moment(seconds, f"at {seconds:g}")


def probe(seconds: float, **looks: Look) -> Probe:
    named = {f"g{gpu.index}": gpu.uuid for gpu in GPUS}
    found = dict.fromkeys(named.values(), GOOD) | {named[name]: look for name, look in looks.items()}
    return Probe(seconds=seconds, generation=1, looks=found, gpus=GPUS, skipped=("one",), driver="580")


def xid(seconds: float, uuid: str, number: int) -> Event:
    return Event(seconds=seconds, gpu_uuid=uuid, what=f"XID {number}", xid=number)


def unhealthy(known: GpuInventory) -> list[str]:
    return [entry.gpu.uuid for entry in known.entries if entry.why]


def written_by(known: GpuInventory) -> NodeHealth:
    gpus = known.health(RESOURCE_OF)
    return NodeHealth(boot_id="", heartbeat_seconds=0, pid=1, driver="", gpus=gpus, absent=known.absent)


def test_gpus_that_are_shared_are_known_and_no_others() -> None:
    known = inventory()
    known.take(probe(1), at(1))
    assert [(entry.gpu, entry.strategy) for entry in known.entries] == [(GPUS[0], MPS), (GPUS[1], MPS)]
    assert (known.skipped, known.driver, unhealthy(known)) == (("one",), "580", [])
    assert known.left_to_others == {GPUS[2].uuid}


def test_of_what_is_left_to_others_those_count_that_nvml_has_now_and_that_are_not_in_mig_mode() -> None:
    known = inventory()
    gone = replace(probe(2), gpus=GPUS[:2], looks={FIRST: GOOD, SECOND: GOOD})
    for seconds, seen, left in (
        (1, probe(1), {THIRD}),
        (2, gone, set()),
        (3, probe(3, g2=Look(problem="it is lost")), {THIRD}),
        (4, probe(4, g2=Look(in_mig_mode=True)), set()),
        (5, probe(5), {THIRD}),
    ):
        known.take(seen, at(seconds))
        assert known.left_to_others == left
        assert [entry.gpu.uuid for entry in known.entries] == [FIRST, SECOND]


def test_the_strategy_of_a_gpu_stays_when_its_number_changes() -> None:
    known = inventory(strategies=(MPS, TIME_SLICING, None))
    known.take(probe(1), at(1))
    numbers = (1, 2, 0)
    moved = [replace(gpu, index=index, minor=index) for gpu, index in zip(GPUS, numbers, strict=True)]
    known.take(replace(probe(2), gpus=tuple(moved)), at(2))
    assert [(entry.gpu, entry.strategy) for entry in known.entries] == [(moved[0], MPS), (moved[1], TIME_SLICING)]


@given(st.lists(st.tuples(st.sampled_from([FIRST, SECOND, THIRD, "GPU-unknown"]), st.integers(1, 150)), max_size=30))
def test_only_xids_that_are_no_programs_change_a_gpu_and_each_one_does(events: list[tuple[str, int]]) -> None:
    known = inventory()
    known.take(probe(1), at(1))
    for seconds, (uuid, number) in enumerate(events, start=2):
        known.take(xid(seconds, uuid, number), at(seconds))
    critical = {uuid for uuid, number in events if number not in APPLICATION_XIDS}
    assert unhealthy(known) == [uuid for uuid in (FIRST, SECOND) if uuid in critical]
    programs = [(uuid, number) for uuid, number in events if number in APPLICATION_XIDS and uuid in (FIRST, SECOND)]
    counted = known.application_faults()
    assert set(counted) == set(programs)
    assert sum(counted.values()) == len(programs)
    assert known.application_faults() == {}


def test_an_administrator_can_say_which_xids_are_a_programs() -> None:
    known = inventory(application_xids=frozenset({79}))
    known.take(probe(1), at(1))
    known.take(xid(2, FIRST, 79), at(2))
    known.take(xid(2, SECOND, 31), at(2))
    assert unhealthy(known) == [SECOND]


def test_what_is_no_xid_is_never_a_programs() -> None:
    known = inventory(application_xids=frozenset({0, 13}))
    known.take(probe(1), at(1))
    known.take(Event(seconds=2, gpu_uuid=FIRST, what="a double-bit ECC error", xid=None), at(2))
    assert unhealthy(known) == [FIRST]


def test_a_driver_that_is_silent_for_too_long_hides_every_gpu_until_it_has_answered_for_a_while() -> None:
    known = inventory()
    known.expect_nvml(at(1000))
    known.take(probe(1), at(1))
    known.expect_nvml(at(1 + SILENT_SECONDS))
    assert unhealthy(known) == []
    known.expect_nvml(at(2 + SILENT_SECONDS))
    assert unhealthy(known) == [FIRST, SECOND]
    for seconds in (100, 105, 110):
        known.take(probe(seconds), at(seconds))
    assert unhealthy(known) == [FIRST, SECOND]
    known.take(probe(115), at(115))
    assert unhealthy(known) == []


def test_a_failure_is_an_answer_too() -> None:
    known = inventory()
    known.take(probe(1), at(1))
    for seconds in range(2, 200, 10):
        known.take(NvmlFailure(seconds=seconds, why="no driver"), at(seconds))
        known.expect_nvml(at(seconds + 9))
    assert [entry.why for entry in known.entries] == ["no driver", "no driver"]


def test_mps_concerns_only_gpus_that_are_shared_by_it() -> None:
    known = inventory(strategies=(MPS, TIME_SLICING, None))
    known.take(probe(1), at(1))
    known.set_mps_faults({FIRST: "dead", SECOND: "dead", THIRD: "dead"}, at(2))
    assert unhealthy(known) == [FIRST]
    known.set_mps_faults({}, at(3))
    assert unhealthy(known) == []


def test_where_it_cannot_be_kept_who_holds_what_the_gpus_that_it_is_about_are_unhealthy_until_it_can() -> None:
    known = inventory()
    known.take(probe(1), at(1))
    known.set_reported_faults("held", lambda one: "full" if one.gpu.uuid == FIRST else "", at(2))
    known.take(probe(40), at(40))
    assert unhealthy(known) == [FIRST]
    known.set_reported_faults("held", lambda _: "", at(41))
    assert unhealthy(known) == []


def test_it_is_written_down_since_when_a_gpu_is_as_it_is() -> None:
    known = inventory()
    known.take(probe(1), at(1))
    known.take(xid(7, FIRST, 79), at(7))
    known.take(xid(9, FIRST, 48), at(9))
    first, second = known.health(RESOURCE_OF)
    assert (first.since, second.since) == ("at 7", "at 1")
    assert [(fault.source, fault.xid) for fault in first.faults] == [("xid", 48)]
    assert (first.resource, first.index, first.model, second.faults) == ("gpu-share.dev/vgpu", 0, "H200", ())


def test_a_new_plugin_goes_on_with_what_the_last_one_has_written() -> None:
    known = inventory()
    known.take(probe(1), at(1))
    known.take(xid(7, FIRST, 79), at(7))
    fault = ApplicationFault(xid=31, at="then", tenants=("a/b/c",))
    known.remember(SECOND, fault)
    following = inventory(before=written_by(known))
    following.take(probe(50, g0=Look(), g1=Look()), at(50))
    first, second = following.health(RESOURCE_OF)
    assert (first.since, [one.xid for one in first.faults]) == ("at 7", [79])
    assert (second.since, second.application_fault) == ("at 1", fault)


@pytest.mark.parametrize("why", ["not found", "left to others"])
def test_a_fault_outlives_plugins_that_do_not_share_its_gpu(why: str) -> None:
    known = inventory()
    known.take(probe(1), at(1))
    known.take(xid(7, FIRST, 63), at(7))
    for _ in range(2):
        known = inventory(before=written_by(known), strategies=(None if why == "left to others" else MPS, MPS, None))
        found = probe(20, g0=Look(), g1=Look())
        known.take(replace(found, gpus=GPUS[1:]) if why == "not found" else found, at(20))
        assert [one.uuid for one in known.health(RESOURCE_OF)] == [SECOND]
    following = inventory(before=written_by(known))
    following.take(probe(50, g0=Look(), g1=Look()), at(50))
    first, _ = following.health(RESOURCE_OF)
    assert (first.since, [one.xid for one in first.faults], following.absent) == ("at 7", [63], ())


def test_a_driver_that_tells_what_a_gpu_needs_knows_better_than_the_last_plugin() -> None:
    known = inventory()
    known.take(probe(1), at(1))
    known.take(xid(7, FIRST, 79), at(7))
    following = inventory(before=written_by(known))
    following.take(probe(50, g0=Look(recovery_action=0), g1=Look(recovery_action=1)), at(50))
    assert unhealthy(following) == [SECOND]
    assert following.health(RESOURCE_OF)[0].since == "at 50"


@pytest.mark.parametrize("source_look", [Look(problem="lost", away=True), replace(GOOD, in_mig_mode=True)])
def test_what_is_seen_of_one_gpu_says_nothing_of_another(source_look: Look) -> None:
    known = inventory()
    known.take(probe(1), at(1))
    known.take(probe(2, g1=source_look), at(2))
    assert unhealthy(known) == [SECOND]


def test_a_gpu_that_is_gone_keeps_nothing_from_the_others() -> None:
    known = inventory()
    for listed in ((FIRST, SECOND), (FIRST,)):
        known.take(probe_of(dict.fromkeys(listed, GOOD)), at(0))
        assert [one.gpu.uuid for one in known.present] == [*listed]
    assert len(known.entries) == 2


def probe_of(looks: dict[str, Look]) -> Probe:
    gpus = tuple(gpu for gpu in GPUS if gpu.uuid in looks)
    return Probe(seconds=0, generation=1, looks=looks, gpus=gpus, skipped=(), driver="1")
