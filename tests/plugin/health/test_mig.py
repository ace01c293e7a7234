"""MIG instances that are shared, appear, vanish and fail while the node runs, through the real bindings."""

import pytest

from plugin.gpus.nvml import Nvml
from policies.nodes import NodeRule
from tests.plugin.health.conftest import StartNode
from tests.plugin.health.watched_node import WatchedNode, looks_often
from tests.plugin.nvml_library import Script
from tests.plugin.waiting import wait_until

SHARED = (NodeRule(mig="shared"),)
VGPU = "gpu-share.dev/vgpu"
CLIENTS = {"1g.18gb": 6, "2g.35gb": 10, "3g.71gb": 10}


@pytest.fixture
def node(start: StartNode, nvml: Nvml, script: Script) -> WatchedNode:
    """Give a node with a GPU that is time-sliced, and one with two MIG instances of a slice and one of three."""
    script.say("mig 1 1", "instance 1 1 1", "instance 1 2 1", "instance 1 5 3")
    return start(nvml=nvml, rules=SHARED, vgpus_per_instance=CLIENTS)


def healthy(node: WatchedNode) -> dict[str, list[int]]:
    return {name.removeprefix("gpu-share.dev/"): counts for name, counts in node.allocatable().items()}


ALL = {"vgpu-timesliced": [10], "vgpu-mig-1g.18gb": [6, 6], "vgpu-mig-3g.71gb": [10]}
NONE = {"vgpu-timesliced": [10], "vgpu-mig-1g.18gb": [0, 0], "vgpu-mig-3g.71gb": [0]}


def test_each_profile_is_a_resource_and_each_instance_a_gpu_of_it(node: WatchedNode) -> None:
    assert healthy(node) == ALL
    (small,) = (one for one in node.resources if one.name == f"{VGPU}-mig-1g.18gb")
    first, second = small.devices.pool.gpus
    assert first.uuid == "MIG-00000000-0000-0000-0001-000000000001"
    assert (first.instance and second.instance) is not None
    assert (first.physical_uuid, first.index, first.minor) == ("GPU-00000000-0000-0000-0000-000000000001", 1, 1)
    assert first.model == "NVIDIA H200"
    assert (first.memory_bytes, first.mps_clients) == ((143771 << 20) // 8, 60 // 7)
    assert {one.resource for one in node.health.gpus} == {one.name for one in node.resources}


def test_a_critical_error_of_the_gpu_is_one_of_all_its_instances(node: WatchedNode, script: Script) -> None:
    script.say("tells_nothing", "energy 1 5000", "xid 1 79")
    wait_until(lambda: healthy(node) == NONE)
    script.say("energy 1 5")  # it was reset
    wait_until(lambda: healthy(node) == ALL)


def test_an_instance_that_is_made_again_after_an_error_is_not_repaired_by_that(
    node: WatchedNode, script: Script
) -> None:
    script.say("tells_nothing", "xid_on 1 95 2")
    failed = ALL | {"vgpu-mig-1g.18gb": [6, 0]}
    wait_until(lambda: healthy(node) == failed)
    script.take_back("instance 1 2 1", "xid_on 1 95 2")
    wait_until(lambda: {fault.source for gpu in node.health.gpus for fault in gpu.faults} == {"xid", "gone"})
    script.say("lost 0")  # so NVML is started anew, again and again
    starts = script.calls["init"]
    wait_until(lambda: script.calls["init"] > starts + 2)
    script.say("instance 1 2 1")
    script.take_back("lost 0")
    wait_until(lambda: {fault.source for gpu in node.health.gpus for fault in gpu.faults} == {"xid"})
    looks_often(script)
    assert healthy(node) == failed


def test_what_the_driver_asks_for_with_the_gpu_concerns_all_its_instances(node: WatchedNode, script: Script) -> None:
    script.say("recovery 1 1")
    wait_until(lambda: healthy(node) == NONE)
    script.take_back("recovery 1 1")
    wait_until(lambda: healthy(node) == ALL)


def test_a_critical_error_of_one_instance_leaves_the_others_healthy(node: WatchedNode, script: Script) -> None:
    script.say("tells_nothing", "xid_on 1 95 2")
    wait_until(lambda: healthy(node) == ALL | {"vgpu-mig-1g.18gb": [6, 0]})
    looks_often(script)
    assert healthy(node) == ALL | {"vgpu-mig-1g.18gb": [6, 0]}


def test_a_programs_error_on_one_instance_is_told_of_that_one(node: WatchedNode, script: Script) -> None:
    script.say("xid_on 1 31 5")
    wait_until(lambda: any(gpu.application_fault for gpu in node.health.gpus))
    assert [gpu.resource for gpu in node.health.gpus if gpu.application_fault] == [f"{VGPU}-mig-3g.71gb"]
    assert healthy(node) == ALL


@pytest.mark.parametrize("line", ["lost 1", "needs_reset 1", "nameless 1"])
def test_a_gpu_that_is_lost_takes_its_instances_with_it_and_back(node: WatchedNode, script: Script, line: str) -> None:
    script.say(line)
    wait_until(lambda: healthy(node) == NONE)
    assert {fault.source for gpu in node.health.gpus for fault in gpu.faults} <= {"lost", "recovery"}
    script.take_back(line)
    wait_until(lambda: healthy(node) == ALL)


def test_an_instance_that_vanishes_is_unhealthy_with_a_cause_and_keeps_its_ids(
    node: WatchedNode, script: Script
) -> None:
    script.take_back("instance 1 2 1")
    wait_until(lambda: healthy(node) == ALL | {"vgpu-mig-1g.18gb": [6, 0]})
    wait_until(lambda: any(gpu.faults for gpu in node.health.gpus))
    (gone,) = (gpu for gpu in node.health.gpus if gpu.faults)
    assert [(fault.source, fault.why) for fault in gone.faults] == [("gone", "NVML no longer lists it")]
    looks_often(script)
    assert script.calls["init"] == 1  # to start NVML anew would not help
    script.say("instance 1 2 1")
    wait_until(lambda: healthy(node) == ALL)


def test_an_instance_that_appears_is_shared_and_a_new_profile_is_a_new_resource(
    node: WatchedNode, script: Script
) -> None:
    script.say("instance 1 3 1", "instance 1 4 2")
    wait_until(lambda: healthy(node) == ALL | {"vgpu-mig-1g.18gb": [6, 6, 6], "vgpu-mig-2g.35gb": [10]})


def test_an_instance_made_anew_with_another_profile_is_no_part_of_the_old_one(
    node: WatchedNode, script: Script
) -> None:
    script.take_back("instance 1 2 1")
    script.say("instance 1 2 2")
    wait_until(lambda: any(fault.source == "mig" for gpu in node.health.gpus for fault in gpu.faults))
    assert healthy(node) == ALL | {"vgpu-mig-1g.18gb": [6, 0]}
    (wrong,) = (gpu for gpu in node.health.gpus if gpu.faults)
    assert "a MIG instance of the profile 2g.35gb has its UUID now" in wrong.faults[0].why
    script.take_back("instance 1 2 2")
    script.say("instance 1 2 1")
    wait_until(lambda: healthy(node) == ALL)


def test_mig_mode_that_is_switched_off_takes_the_instances_and_brings_the_gpu(
    node: WatchedNode, script: Script
) -> None:
    script.take_back("mig 1 1")
    wait_until(lambda: healthy(node)["vgpu-timesliced"] == [10, 10])
    wait_until(lambda: healthy(node)["vgpu-mig-1g.18gb"] == [0, 0])
    wait_until(lambda: {fault.source for gpu in node.health.gpus for fault in gpu.faults} == {"gone"})


def test_instances_are_shared_by_who_may_not_monitor_mig(start: StartNode, nvml: Nvml, script: Script) -> None:
    script.say("mig 1 1", "instance 1 1 1", "instance 1 2 1", "instance 1 5 3", "unprivileged")
    node = start(nvml=nvml, rules=SHARED, vgpus_per_instance=CLIENTS)
    assert healthy(node) == ALL
    script.say("instance 1 3 1")
    wait_until(lambda: healthy(node) == ALL | {"vgpu-mig-1g.18gb": [6, 6, 6]})
    script.say("lost 1")
    wait_until(lambda: not any(sum(counts) for name, counts in healthy(node).items() if "mig" in name))


def test_a_gpu_that_goes_into_mig_mode_says_so_to_who_may_not_monitor_mig(
    start: StartNode, nvml: Nvml, script: Script
) -> None:
    node = start(nvml=nvml)
    script.say("unprivileged", "mig 1 1")
    wait_until(lambda: healthy(node) == {"vgpu-timesliced": [10, 0]})
    wait_until(lambda: [fault.source for gpu in node.health.gpus for fault in gpu.faults] == ["mig"])


def test_by_default_instances_are_left_to_others(start: StartNode, nvml: Nvml, script: Script) -> None:
    script.say("mig 1 1", "instance 1 1 1")
    node = start(nvml=nvml)
    looks_often(script)
    assert healthy(node) == {"vgpu-timesliced": [10]}
    assert len(node.health.skipped) == 1
    assert "is in MIG mode, and its instances are left to NVIDIA's own plugin" in node.health.skipped[0]


def test_whole_instances_are_one_device_each(start: StartNode, nvml: Nvml, script: Script) -> None:
    script.say("mig 0 1", "mig 1 1", "instance 0 1 7", "instance 1 1 3", "instance 1 2 3")
    node = start(nvml=nvml, rules=(NodeRule(mig="whole"),))
    assert healthy(node) == {"gpu-mig-7g.141gb": [1], "gpu-mig-3g.71gb": [1, 1]}


def test_more_vgpus_than_an_instance_has_clients_are_not_shared_and_the_cause_says_how_many(
    start: StartNode, nvml: Nvml, script: Script
) -> None:
    script.say("mig 1 1", "instance 1 1 1", "instance 1 2 2")
    node = start(nvml=nvml, rules=SHARED)
    assert healthy(node) == {"vgpu-timesliced": [10], "vgpu-mig-2g.35gb": [10]}
    assert "vgpusPerInstance: {1g.18gb: 8}" in node.health.skipped[0]


@pytest.mark.parametrize("call", range(1, 9))
@pytest.mark.parametrize("error", [2, 3, 6, 13, 999])
def test_a_driver_that_does_not_know_a_call_of_mig_costs_no_more_than_the_instances(
    start: StartNode, nvml: Nvml, script: Script, call: int, error: int
) -> None:
    script.say("mig 1 1", "instance 1 1 1", f"mig_error {call} {error}")
    node = start(nvml=nvml, rules=SHARED, vgpus_per_instance=CLIENTS)
    looks_often(script)
    only_told = call in (5, 6)  # either of the two says the profile
    shared = {"vgpu-mig-1g.18gb": [6]} if only_told else {}
    assert healthy(node) == {"vgpu-timesliced": [10]} | shared
    assert bool(node.health.skipped) is not only_told
    script.take_back(f"mig_error {call} {error}")
    wait_until(lambda: healthy(node) == {"vgpu-timesliced": [10], "vgpu-mig-1g.18gb": [6]})
