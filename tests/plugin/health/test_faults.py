"""What happens to GPUs, from the driver's library through the real bindings to what the kubelet sees."""

from pathlib import Path

import pytest

from plugin.gpus.gpu import VGpuId
from plugin.gpus.nvml import Nvml
from plugin.pod_resources.tenants import Tenant
from tests.plugin.health.conftest import StartNode
from tests.plugin.health.watched_node import WatchedNode, logged, looks_often
from tests.plugin.nvml_library import Script
from tests.plugin.waiting import wait_until

FIRST = "GPU-00000000-0000-0000-0000-000000000000"


@pytest.mark.parametrize("event", ["xid 0 79", "event 0 2 1", "event 0 0x4000 0"])
def test_a_critical_event_marks_every_vgpu_of_its_gpu_and_of_no_other(
    start: StartNode, nvml: Nvml, script: Script, event: str
) -> None:
    node = start(nvml=nvml)
    assert node.healthy() == [10, 10]
    script.say("recovery 0 1", event)
    node.becomes(0, 10)
    wait_until(lambda: set(node.sources(0)) == {"xid", "recovery"})


def test_it_comes_back_when_the_driver_asks_for_nothing_and_not_before(
    start: StartNode, nvml: Nvml, script: Script, caplog: pytest.LogCaptureFixture
) -> None:
    node = start(nvml=nvml)
    script.say("recovery 0 1", "xid 0 79")
    node.becomes(0, 10)
    looks_often(script)
    assert node.healthy() == [0, 10]
    script.take_back("recovery 0 1")
    node.becomes(10, 10)
    wait_until(lambda: bool(logged(caplog, "GPU healthy again")))
    assert [line["gpu"] for line in logged(caplog, "GPU healthy again")] == [FIRST]
    whys = [line["why"] for line in logged(caplog, "GPU unhealthy")]
    assert len(whys) <= 2  # the XID, and what the driver asks for
    assert "XID 79" in whys[-1]


@pytest.mark.parametrize("old_driver", ["old_nvml", "nvml"])
def test_an_old_drivers_gpu_comes_back_once_its_counter_has_begun_anew_and_not_before(
    start: StartNode, script: Script, request: pytest.FixtureRequest, old_driver: str
) -> None:
    script.say("tells_nothing")
    node = start(nvml=request.getfixturevalue(old_driver))
    script.say("xid 1 48")
    node.becomes(10, 0)
    looks_often(script)
    assert node.healthy() == [10, 0]
    script.say("energy 1 77")
    node.becomes(10, 10)


@pytest.mark.parametrize("number_type", [1, 2, 3, 4, 5, 6])
def test_what_the_driver_asks_for_is_read_whatever_the_type_of_its_number(
    start: StartNode, nvml: Nvml, script: Script, number_type: int
) -> None:
    script.say(f"recovery_type {number_type}", "recovery 1 2")
    node = start(nvml=nvml)
    assert node.healthy() == [10, 0]
    assert "reboot of the node" in node.health.gpus[1].faults[0].why


def test_an_answer_of_an_unknown_type_is_none(start: StartNode, nvml: Nvml, script: Script) -> None:
    script.say("recovery_type 42", "recovery 1 2")
    assert start(nvml=nvml).healthy() == [10, 10]


@pytest.mark.parametrize("xid", [13, 31, 43, 45, 68, 109])
def test_a_programs_xid_leaves_the_gpu_healthy_and_names_whom_it_may_have_hit(
    start: StartNode, nvml: Nvml, script: Script, caplog: pytest.LogCaptureFixture, xid: int
) -> None:
    here, elsewhere = (
        Tenant(namespace="team", pod=pod, container="main", vgpus=(VGpuId(uuid, 3),))
        for pod, uuid in (("here", FIRST), ("elsewhere", "GPU-1"))
    )
    node = start(nvml=nvml, tenants=lambda: (here, elsewhere))
    script.say(f"xid 0 {xid}")
    wait_until(lambda: node.health.gpus[0].application_fault is not None)
    assert node.healthy() == [10, 10]
    (line,) = logged(caplog, "application fault on a GPU")
    assert (line["gpu"], line["xid"], line["tenants"]) == (FIRST, xid, ("team/here/main",))
    assert node.health.gpus[0].application_fault.tenants == ("team/here/main",)  # type: ignore[union-attr]


@pytest.mark.parametrize("line", ["lost 0", "nameless 0", "needs_reset 0", "unreadable 0"])
def test_one_lost_gpu_leaves_the_others_allocatable_and_comes_back(
    start: StartNode, nvml: Nvml, script: Script, line: str
) -> None:
    node = start(nvml=nvml)
    script.say(line)
    node.becomes(0, 10)
    looks_often(script)
    assert (node.healthy(), node.sources(0), node.sources(1)) == ([0, 10], ["lost"], [])
    script.say("xid 1 79", "recovery 1 1")  # and the other is still listened to
    node.becomes(0, 0)
    script.take_back(line, "recovery 1 1")
    node.becomes(10, 10)


def test_on_an_old_driver_a_lost_gpu_comes_back_when_nvml_finds_it_again(
    start: StartNode, old_nvml: Nvml, script: Script
) -> None:
    node = start(nvml=old_nvml)
    script.say("xid 0 79", "lost 0")
    node.becomes(0, 10)
    wait_until(lambda: set(node.sources(0)) == {"xid", "lost"})
    script.take_back("lost 0")
    node.becomes(10, 10)


@pytest.mark.parametrize("line", ["needs_reset 1", "count 1"])
def test_on_an_old_driver_a_gpu_that_is_back_without_a_new_start_of_nvml_gets_one_and_is_well(
    start: StartNode, old_nvml: Nvml, script: Script, line: str
) -> None:
    node = start(nvml=old_nvml)
    script.say("xid 1 79")
    node.becomes(10, 0)
    script.say(line)
    wait_until(lambda: len(node.sources(1)) == 2)
    script.take_back(line)
    node.becomes(10, 10)


def test_nvml_that_fails_as_a_whole_marks_all_and_they_are_back_when_it_is(
    start: StartNode, nvml: Nvml, script: Script
) -> None:
    node = start(nvml=nvml)
    script.say("fail 999")
    node.becomes(0, 0)
    wait_until(lambda: all("nvml" in node.sources(index) for index in (0, 1)))  # and "lost" where a probe was under way
    assert all("Unknown Error" in fault.why for fault in node.health.gpus[0].faults)
    starts = script.calls["init"]
    wait_until(lambda: script.calls["init"] >= starts + 3)
    assert node.healthy() == [0, 0]
    script.take_back("fail 999")
    node.becomes(10, 10)


def test_a_failure_of_nvml_ends_no_gpus_own_fault(start: StartNode, old_nvml: Nvml, script: Script) -> None:
    node = start(nvml=old_nvml)
    script.say("xid 0 79")
    node.becomes(0, 10)
    script.say("fail 9")
    node.becomes(0, 0)
    script.take_back("fail 9")
    node.becomes(0, 10)
    looks_often(script)
    assert (node.healthy(), node.sources(0)) == ([0, 10], ["xid"])


def test_faults_survive_a_restart_of_the_plugin_on_an_old_driver(nvml: Nvml, script: Script, tmp_path: Path) -> None:
    script.say("tells_nothing")
    with WatchedNode(nvml=nvml, state_dir=tmp_path).running() as node:
        script.say("xid 0 79")
        node.becomes(0, 10)
        wait_until(lambda: node.sources(0) == ["xid"])
        known = node.health.gpus[0]
    with WatchedNode(nvml=nvml, state_dir=tmp_path).running() as node:
        assert node.healthy() == [0, 10]
        looks_often(script)
        assert node.healthy() == [0, 10]
        assert (node.health.gpus[0].since, node.health.gpus[0].faults[0].xid) == (known.since, 79)
        script.say("energy 0 1")
        node.becomes(10, 10)


def test_a_reboot_ends_what_an_earlier_plugin_knew(nvml: Nvml, script: Script, tmp_path: Path) -> None:
    script.say("tells_nothing")
    with WatchedNode(nvml=nvml, state_dir=tmp_path).running() as node:
        script.say("xid 0 79")
        node.becomes(0, 10)
        wait_until(lambda: node.sources(0) == ["xid"])
    with WatchedNode(nvml=nvml, state_dir=tmp_path, boot_id="the next start").running() as node:
        assert node.healthy() == [10, 10]


def test_a_driver_that_hangs_holds_up_no_news_and_is_noticed(start: StartNode, nvml: Nvml, script: Script) -> None:
    seconds = [1000.0]
    mps: dict[str, str] = {}
    node = start(nvml=nvml, strategy="mps", mps_faults=lambda _: dict(mps), clock=lambda: seconds[0])
    script.say("hang")
    mps[FIRST] = "its daemon is dead"
    node.becomes(0, 10)
    seconds[0] += 31
    node.becomes(0, 0)
    wait_until(lambda: node.sources(1) == ["nvml"])
    script.take_back("hang")
    mps.clear()
    node.becomes(10, 10)
