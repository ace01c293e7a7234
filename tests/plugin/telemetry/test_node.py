"""From the files of a node's parts to one document, whatever of them is missing, old or hostile."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from plugin.gpus.discovery import not_shared
from plugin.gpus.gpu import MigInstance
from plugin.gpus.reading import NotShareableError
from plugin.health.state import ApplicationFault, Fault, NotRegistered, Waiting, write_node_health
from plugin.mps.state import MpsGpu, MpsState, write_state
from plugin.pod_resources.occupancy import write_occupancy
from plugin.shares.strategy import check_of
from plugin.simulated.gpus import simulated_gpus
from plugin.telemetry.node import Facts, node_state, read_facts
from plugin.telemetry.samples import mps_samples, plugin_samples
from plugin.usage.record import GpuUse, NodeUse, write_use
from policies.node_state import NodeState, Use, read, write
from tests.plugin.health.published import healthy, node, occupancy, occupant, occupied, taken, use

MOMENT = "2026-01-01T00:00:00+00:00"
MIG = MigInstance(profile="1g.10gb", parent_uuid="GPU-a", gpu_instance=7, compute_instance=0)
GPU = healthy(0, since=MOMENT, memory_mib=1000)
LOST = Fault(source="lost", why="the GPU is lost", since=MOMENT, comes_back="once it answers")
HEALTH = node(GPU, boot_id="one", heartbeat_seconds=99)
A, B = (occupant(pod, 3, memory_limit_mib=300, thread_percentage=30) for pod in ("a", "b"))
OCCUPANCY = occupancy(occupied(A, B, advertised=9, hidden=1, free=3, largest_free=3), boot_id="one", looked_seconds=98)
READY = MpsState(boot_id="one", gpus={GPU.uuid: MpsGpu(state="ready", since=MOMENT, checked_seconds=97)})
OF_A = taken(A, processes=2, sm_ratio=0.5)
USE = use(GpuUse(containers=(OF_A,), complete=True), boot_id="one", measured_seconds=96)
FACTS = Facts(boot_id="one", now_seconds=100, health=HEALTH, occupancy=OCCUPANCY, mps=READY, use=USE)


def told(**changed: Any) -> NodeState:
    """Put the facts together, some of them changed, and read what is published."""
    return read(write(node_state(replace(FACTS, **changed), part="plugin", node="worker-1")))


def names(state: NodeState) -> set[str]:
    return {sample.metric.name for sample in (*plugin_samples(state), *mps_samples(state))}


def test_what_each_part_has_written_is_one_document_with_the_age_of_each() -> None:
    state = told()
    (gpu,) = state.gpus
    assert (state.ages.health, state.ages.tenants, state.ages.mps, state.ages.use) == (1, 2, 3, 4)
    assert gpu.advertised == 9
    assert (gpu.granted, gpu.hidden, gpu.free, gpu.largest_free, gpu.limits_enforced_by) == (6, 1, 3, 3, "mps")
    assert gpu.mps_daemon is not None
    assert (gpu.mps_daemon.state, gpu.mps_daemon.why) == ("ready", "")
    first, second = gpu.tenants
    assert (first.memory_limit_bytes, first.thread_limit_ratio) == (300 * 2**20, 0.3)
    assert first.use == Use(memory_bytes=2**20, sm_ratio=0.5, processes=2)
    assert second.use == Use(memory_bytes=0, processes=0)


def test_a_container_of_which_no_process_is_known_takes_nothing_only_if_all_processes_are_known() -> None:
    partly = msgspec.structs.replace(USE, gpus={GPU.uuid: GpuUse(containers=(OF_A,), complete=False)})
    assert told(use=partly).gpus[0].tenants[1].use is None


@pytest.mark.parametrize("old", [None, msgspec.structs.replace(USE, measured_seconds=50)])
def test_what_was_measured_too_long_ago_is_left_out(old: NodeUse | None) -> None:
    state = told(use=old)
    assert [one.use for one in state.gpus[0].tenants] == [None, None]
    assert "gpu_share_memory_used_bytes" not in names(state)
    assert "gpu_share_granted_ratio" in names(state)


def test_nothing_fits_on_an_unhealthy_gpu_and_what_is_granted_stays() -> None:
    unhealthy = msgspec.structs.replace(HEALTH, gpus=(msgspec.structs.replace(GPU, faults=(LOST,)),))
    (gpu,) = told(health=unhealthy).gpus
    assert (gpu.healthy, gpu.granted, gpu.free, gpu.largest_free) == (False, 6, 0, 0)
    assert (gpu.faults[0].source, gpu.faults[0].why) == ("lost", "the GPU is lost")


def test_a_node_of_which_nothing_is_known_says_so() -> None:
    state = told(health=None, occupancy=None, mps=None, use=None)
    assert (state.gpus, state.ages.health) == ((), None)
    assert "has not said yet" in state.tenants_unknown
    assert "gpu_share_gpu_healthy" not in names(state)


def test_gpus_of_which_nobody_says_who_is_on_them_are_told_without_figures() -> None:
    (gpu,) = told(occupancy=None).gpus
    assert (gpu.healthy, gpu.granted, gpu.free, gpu.tenants) == (True, None, None, ())


def test_health_of_a_plugin_that_hangs_is_no_metric_and_has_its_age() -> None:
    state = told(now_seconds=130)
    assert state.ages.health == 31
    assert "gpu_share_gpu_healthy" not in names(state)
    assert "gpu_share_facts_age_seconds" in names(state)


def test_tenants_of_a_kubelet_that_has_not_answered_for_a_while_are_not_known() -> None:
    assert told(now_seconds=140).tenants_unknown == "the kubelet has not said for a while who has which share"


def test_gpus_that_an_earlier_plugin_knew_are_not_told_while_the_next_one_waits() -> None:
    waiting = msgspec.structs.replace(HEALTH, waiting=Waiting(why="NVML: Driver Not Loaded", since=MOMENT))
    state = told(health=waiting)
    assert (state.waiting, state.gpus) == ("NVML: Driver Not Loaded", ())


def test_how_many_gpus_are_left_to_others_is_told_where_it_is_known() -> None:
    assert told().left_to_others is None
    assert told(health=msgspec.structs.replace(HEALTH, left_to_others=2)).left_to_others == 2


def test_what_a_driver_or_a_file_says_cannot_make_the_document_unreadable() -> None:
    fault = Fault(source="nvml", why="\x1b[2J\u202e" + "x" * 5000, since=MOMENT, comes_back="\n")
    last = ApplicationFault(xid=31, at=MOMENT, tenants=("team-a/\x00/main",))
    gpu = msgspec.structs.replace(GPU, model="H200\r", faults=(fault,), application_fault=last)
    health = msgspec.structs.replace(HEALTH, gpus=(gpu,), driver="\x9b", skipped=("\x07",), handover="\u2066")
    state = told(health=health)
    assert state.gpus[0].model == "H200?"
    assert len(state.gpus[0].faults[0].why) == 2048


def test_a_daemon_that_is_not_ready_says_why() -> None:
    failed = MpsState(
        boot_id="one", gpus={GPU.uuid: MpsGpu(state="failed", since=MOMENT, checked_seconds=99, why="it hangs")}
    )
    daemon = told(mps=failed).gpus[0].mps_daemon
    assert daemon is not None
    assert (daemon.state, daemon.why) == ("failed", "MPS daemon failed: it hangs")


def test_one_sample_for_each_container_and_gpu() -> None:
    state = told()
    for samples in ([*plugin_samples(state)], [*mps_samples(state)]):
        keys = [(one.metric.name, one.labels) for one in samples]
        assert len(keys) == len(set(keys))
        assert all(len(one.labels) == len(one.metric.labels) for one in samples)


def test_why_slices_are_not_published_is_told_in_words_that_can_be_read() -> None:
    assert told().slices_not_published == ""
    health = msgspec.structs.replace(HEALTH, slices_not_published="\x1b is forbidden")
    assert told(health=health).slices_not_published == "? is forbidden"


@pytest.mark.parametrize(
    ("allocation", "why", "values"),
    [("dra", "", [1]), ("dra", "forbidden", [0]), ("device-plugin", "", []), ("device-plugin", "forbidden", [0])],
)
def test_whether_slices_are_published_is_a_metric_where_there_are_some(
    allocation: str, why: str, values: list[int]
) -> None:
    (gpu,) = OCCUPANCY.gpus.values()
    allocated = msgspec.structs.replace(gpu, allocation=allocation)
    state = told(
        health=msgspec.structs.replace(HEALTH, slices_not_published=why),
        occupancy=msgspec.structs.replace(OCCUPANCY, gpus={GPU.uuid: allocated}),
    )
    found = [one.value for one in plugin_samples(state) if one.metric.name == "gpu_share_slices_published"]
    assert found == values


def test_a_resource_that_the_kubelet_does_not_know_is_told_in_words_that_can_be_read() -> None:
    assert told().not_registered == ()
    one = NotRegistered(resource="gpu-share.dev/vgpu", why="\x1b is away")
    (known,) = told(health=msgspec.structs.replace(HEALTH, not_registered=(one,))).not_registered
    assert (known.resource, known.why) == ("gpu-share.dev/vgpu", "? is away")


@pytest.mark.parametrize(
    ("allocation", "whys", "values"),
    [
        ("device-plugin", [], [1]),
        ("device-plugin", ["away"], [0]),
        ("device-plugin", ["away", "rejected"], [0]),
        ("dra", [], []),
        ("dra", ["away"], [0]),
    ],
)
def test_whether_the_kubelet_knows_all_resources_is_a_metric_where_there_are_some(
    allocation: str, whys: list[str], values: list[int]
) -> None:
    (gpu,) = OCCUPANCY.gpus.values()
    allocated = msgspec.structs.replace(gpu, allocation=allocation)
    unknown = tuple(NotRegistered(resource=f"r/{index}", why=why) for index, why in enumerate(whys))
    state = told(
        health=msgspec.structs.replace(HEALTH, not_registered=unknown),
        occupancy=msgspec.structs.replace(OCCUPANCY, gpus={GPU.uuid: allocated}),
    )
    found = [one.value for one in plugin_samples(state) if one.metric.name == "gpu_share_resources_registered"]
    assert found == values


def test_a_gpu_whose_instances_are_meant_for_others_is_not_left_out() -> None:
    gpu = replace(simulated_gpus("1xH200")[0], instance=MIG)
    with pytest.raises(NotShareableError) as meant:
        check_of(lambda _: None, lambda _gpu, _strategy: 1)(gpu)
    skipped = (not_shared(0, 2, meant.value), "GPU 1 of 2 cannot be shared: it is too old")
    samples = plugin_samples(told(health=msgspec.structs.replace(HEALTH, skipped=skipped)))
    assert [one.value for one in samples if one.metric.name == "gpu_share_gpus_left_out"] == [1]


def test_what_is_in_the_files_is_read_and_of_another_boot_nothing(tmp_path: Path) -> None:
    write_node_health(tmp_path, HEALTH)
    write_occupancy(tmp_path, OCCUPANCY)
    write_state(tmp_path, READY)
    write_use(tmp_path, USE)
    facts = read_facts(tmp_path, boot_id="one")
    assert (facts.health, facts.occupancy, facts.mps, facts.use) == (HEALTH, OCCUPANCY, READY, USE)
    facts = read_facts(tmp_path, boot_id="two")
    assert (facts.health, facts.occupancy, facts.mps, facts.use) == (None, None, None, None)
