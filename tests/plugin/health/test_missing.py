"""GPUs that an earlier plugin shared, and that NVML does not reach when the next one starts."""

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from plugin.gpus.gpu import Gpu, MigInstance
from plugin.gpus.numbers import GpuNumbers
from plugin.health.gpu_state import Moment
from plugin.health.inventory import GpuInventory
from plugin.health.recovery_request import RecoveryRequest
from plugin.health.reports import Event, Look, Probe
from plugin.health.state import FaultName, NodeHealth, read_node_health, write_node_health
from plugin.health.waiting import WaitingNode
from plugin.shares.division import Division
from plugin.simulated.gpus import simulated_gpus
from policies.cluster import Cluster
from policies.contract import TIME_SLICING

GPUS = simulated_gpus("2xH200")
FIRST, SECOND = (gpu.uuid for gpu in GPUS)
PARTED = MigInstance(profile="1g.10gb", parent_uuid="GPU-cut", gpu_instance=3, compute_instance=0)
INSTANCE = replace(GPUS[1], uuid="MIG-1", instance=PARTED)
RESOURCE_OF = Division(Cluster(), node_name="node", number_of=GpuNumbers(None, ()).of).resource_of
LOST = Look(problem="GPU is lost", away=True)


def inventory(before: NodeHealth | None = None, *, held: Collection[str] = (), **options: Any) -> GpuInventory:
    arguments = {"strategy_of": lambda _: TIME_SLICING, "application_xids": (), **options}
    return GpuInventory(before=before, held=lambda _: held, **arguments)


def at(seconds: float) -> Moment:
    return Moment(seconds, f"at {seconds:g}")


def look(known: GpuInventory, seconds: float, looks: dict[str, Look], *gpus: Gpu, generation: int = 1) -> None:
    probe = Probe(seconds=seconds, generation=generation, looks=looks, gpus=gpus, skipped=(), driver="")
    known.take(probe, at(seconds))


def one_listed(known: GpuInventory, seconds: float, **options: Any) -> None:
    look(known, seconds, {FIRST: Look()}, GPUS[0], **options)


def written_by(known: GpuInventory) -> NodeHealth:
    gpus, absent, reached = known.health(RESOURCE_OF), known.absent, known.reached
    return NodeHealth(boot_id="", heartbeat_seconds=0, pid=1, driver="", gpus=gpus, absent=absent, reached=reached)


def of_before(second: Gpu = GPUS[1], *looks: Look | None, xid: int | None = None) -> NodeHealth:
    """What a plugin writes that found GPU 0 and *second*, and has seen that one so afterwards."""
    known = inventory()
    look(known, 1, {FIRST: Look(), second.uuid: Look()}, GPUS[0], second)
    if xid:
        known.take(Event(seconds=2, gpu_uuid=second.uuid, what=f"XID {xid}", xid=xid), at(2))
    for seconds, seen in enumerate(looks, start=3):
        look(known, seconds, {FIRST: Look()} | ({second.uuid: seen} if seen else {}), GPUS[0])
    return written_by(known)


def shown(known: GpuInventory) -> dict[str, list[str]]:
    """Say of each GPU that is missing what its faults are."""
    return {one.uuid: [fault.source for fault in one.faults] for one in known.health(RESOURCE_OF) if one.uuid != FIRST}


def test_a_gpu_that_failed_stays_though_nobody_holds_it_as_it_was_and_since_when() -> None:
    known = inventory(of_before(GPUS[1], LOST, None))
    one_listed(known, 50)
    second = known.health(RESOURCE_OF)[1]
    assert (second.index, second.model, second.resource) == (1, "H200", "gpu-share.dev/vgpu-timesliced")
    assert [(one.source, one.since) for one in second.faults] == [("lost", "at 3"), ("gone", "at 4")]
    assert second.since == "at 3"
    assert known.entries[1].gpu == replace(GPUS[1], links=())
    one_listed(inventory(written_by(known)), 60)
    assert shown(known) == {SECOND: ["lost", "gone"]}


@pytest.mark.parametrize(("seen", "fault"), [(None, "gone"), (LOST, "lost"), (Look(in_mig_mode=True), "mig")])
def test_one_that_was_healthy_stays_as_long_as_containers_hold_something_of_it(seen: Look | None, fault: str) -> None:
    held = {SECOND}
    known = inventory(of_before(), held=held)
    looks = {FIRST: Look()} | ({SECOND: seen} if seen else {})
    look(known, 50, looks, GPUS[0])
    assert shown(known) == {SECOND: [fault]}
    held.clear()
    look(known, 55, looks, GPUS[0])
    assert shown(known) == ({SECOND: [fault]} if fault == "lost" else {})


def test_one_that_was_taken_out_in_good_health_is_forgotten() -> None:
    known = inventory(of_before(GPUS[1], None))
    one_listed(known, 50)
    assert shown(known) == {}


def test_a_mig_instance_stays_while_it_is_held_and_no_longer_whatever_its_faults() -> None:
    before, held = of_before(INSTANCE, None, xid=79), {"MIG-1"}
    known = inventory(before, held=held)
    one_listed(known, 50)
    assert shown(known) == {"MIG-1": ["xid", "gone"]}
    assert known.health(RESOURCE_OF)[1].resource == "gpu-share.dev/vgpu-timesliced-mig-1g.10gb"
    held.clear()
    one_listed(known, 55)
    assert shown(known) == {}
    look(known, 60, {FIRST: Look(), "MIG-1": Look()}, GPUS[0], INSTANCE)  # made anew, and the GPU was not reset
    assert shown(known) == {"MIG-1": ["xid"]}


def test_one_that_failed_and_is_in_mig_mode_by_now_is_not_shown_and_its_fault_is_there_again_once_that_is_off() -> None:
    known = inventory(of_before(GPUS[1], xid=79))
    in_mig_mode = {FIRST: Look(), SECOND: Look(in_mig_mode=True), "MIG-1": Look()}
    look(known, 50, in_mig_mode, GPUS[0], INSTANCE)
    assert shown(known) == {"MIG-1": []}
    following = inventory(written_by(known))
    look(following, 60, in_mig_mode, GPUS[0], INSTANCE)
    assert shown(following) == {"MIG-1": []}
    look(following, 70, {FIRST: Look(), SECOND: Look()}, *GPUS)
    assert shown(following) == {"MIG-1": ["gone"], SECOND: ["xid"]}


def test_one_that_was_shown_is_not_any_more_once_it_is_in_mig_mode_and_nobody_holds_it() -> None:
    known = inventory(of_before(GPUS[1], None, xid=79), held=(held := {SECOND}))
    one_listed(known, 50)
    assert shown(known) == {SECOND: ["xid", "gone"]}
    in_mig_mode = {FIRST: Look(), SECOND: Look(in_mig_mode=True)}
    look(known, 55, in_mig_mode, GPUS[0])
    assert shown(known) == {SECOND: ["xid", "gone", "mig"]}
    held.clear()
    look(known, 60, in_mig_mode, GPUS[0])
    assert shown(known) == {}
    one_listed(known, 65)
    assert "xid" in shown(known)[SECOND]


def test_one_that_is_left_to_others_by_now_is_not_shown() -> None:
    known = inventory(of_before(GPUS[1], LOST), strategy_of=lambda gpu: None if gpu.index else TIME_SLICING)
    one_listed(known, 50)
    assert shown(known) == {}
    assert [one.uuid for one in known.absent] == [SECOND]


def test_one_that_nvml_reaches_and_that_is_not_shared_any_more_is_not_missing() -> None:
    known = inventory(of_before(), held={SECOND})
    look(known, 50, {FIRST: Look(), SECOND: Look()}, GPUS[0])
    assert shown(known) == {}
    assert known.faults([FIRST, SECOND]) == {}


def test_one_that_is_found_again_is_healthy_on_the_evidence_that_a_plugin_without_a_restart_would_take() -> None:
    known = inventory(of_before(GPUS[1], LOST, None), steady_seconds=0)
    one_listed(known, 50)
    look(known, 60, {FIRST: Look(), SECOND: Look()}, *GPUS, generation=2)
    assert shown(known) == {SECOND: []}
    one_listed(known, 65, generation=2)  # whoever found it keeps it until the plugin ends, as ever
    assert shown(known) == {SECOND: ["gone"]}


def cleared(known: GpuInventory) -> tuple[str, ...]:
    """Say which faults of GPU 1 an administrator's word ends, if any."""
    faults = tuple(FaultName.of(fault) for fault in known.entries[1].state.faults)
    recovery = known.recover(
        RecoveryRequest(id="1", boot_id="", asked_seconds=51, gpu_uuid=SECOND, faults=faults, reason="out", by="root"),
        at(51),
    )
    assert recovery is not None
    return recovery.cleared


def test_an_administrator_who_took_it_out_ends_what_is_remembered_of_it() -> None:
    known = inventory(of_before(GPUS[1], None, xid=79))
    one_listed(known, 50)
    assert cleared(known) == ("the driver reported XID 79",)
    assert shown(known) == {SECOND: ["gone"]}
    one_listed(known, 55)
    assert shown(known) == {}
    one_listed(following := inventory(written_by(known)), 60)
    assert shown(following) == {}


def test_an_administrators_word_ends_what_is_remembered_of_one_in_mig_mode_that_is_held() -> None:
    known = inventory(of_before(GPUS[1], xid=79), held={SECOND})
    look(known, 50, {FIRST: Look(), SECOND: Look(in_mig_mode=True)}, GPUS[0])
    assert shown(known) == {SECOND: ["xid", "mig"]}
    assert cleared(known) == ("the driver reported XID 79",)
    assert shown(known) == {SECOND: ["mig"]}


@pytest.mark.parametrize("looks", [{SECOND: LOST}, {}])
def test_nobodys_word_ends_what_is_seen_of_a_gpu_that_this_plugin_has_found_or_nvml_knows(
    looks: dict[str, Look],
) -> None:
    known = inventory(of_before(GPUS[1], LOST))
    if not looks:
        look(known, 50, {FIRST: Look(), SECOND: Look()}, *GPUS)
    look(known, 55, {FIRST: Look(), **looks}, GPUS[0])
    assert cleared(known) == ()


def test_what_is_unhealthy_is_said_of_gpus_that_are_not_shared_too() -> None:
    known = inventory()
    look(known, 50, {FIRST: LOST, "GPU-here": Look(), "GPU-lost": LOST}, GPUS[0])
    assert known.faults([FIRST, "GPU-here", "GPU-lost", "GPU-gone"]) == {
        FIRST: "NVML does not reach it: GPU is lost",
        "GPU-lost": "NVML does not reach it: GPU is lost",
        "GPU-gone": "NVML does not list it",
    }


def test_a_file_of_an_older_plugin_says_enough_of_a_gpu_and_too_little_of_a_mig_instance() -> None:
    older = [msgspec.structs.replace(of_before(one, None), reached={}) for one in (GPUS[1], INSTANCE)]
    of_gpu, of_instance = (inventory(one, held={SECOND, "MIG-1"}) for one in older)
    for known in (of_gpu, of_instance):
        one_listed(known, 50)
    assert (shown(of_gpu), shown(of_instance)) == ({SECOND: ["gone"]}, {})
    gpu = of_gpu.entries[1].gpu
    assert (gpu.memory_bytes >> 20, gpu.model, gpu.minor) == (GPUS[1].memory_bytes >> 20, "H200", None)


def test_what_gpus_were_is_read_as_it_was_written_and_outlives_a_plugin_that_waits(tmp_path: Path) -> None:
    before = of_before(INSTANCE, None)
    WaitingNode(tmp_path, boot_id="", before=before).tell("no driver")
    found = read_node_health(tmp_path)
    assert found is not None
    assert found.reached == before.reached == {FIRST: replace(GPUS[0], links=()), "MIG-1": replace(INSTANCE, links=())}
    write_node_health(tmp_path, before)
    assert read_node_health(tmp_path) == before
