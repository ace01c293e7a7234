"""GPUs that appear, vanish or change hands while the node runs, through the real bindings."""

import pytest

from plugin.gpus.nvml import Nvml
from policies.nodes import NodeRule
from tests.plugin.health.conftest import StartNode
from tests.plugin.health.watched_node import logged, looks_often
from tests.plugin.nvml_library import Script
from tests.plugin.waiting import wait_until


@pytest.mark.parametrize("line", ["lost 0", "nameless 0"])
def test_a_gpu_that_is_lost_from_the_start_is_shared_once_it_is_found(
    start: StartNode, nvml: Nvml, script: Script, line: str
) -> None:
    script.say(line)
    node = start(nvml=nvml)
    assert node.healthy() == [10]
    assert "GPU is lost" in node.health.skipped[0]
    script.take_back(line)
    node.becomes(10, 10)


def test_a_gpu_that_appears_is_shared(start: StartNode, nvml: Nvml, script: Script) -> None:
    script.say("tells_nothing")  # so that its events must be heard
    node = start(nvml=nvml)
    script.say("count 3")
    node.becomes(10, 10, 10)
    script.say("xid 2 79")
    node.becomes(10, 10, 0)


def test_a_gpu_that_is_ill_when_it_appears_is_never_healthy_before(
    start: StartNode, nvml: Nvml, script: Script
) -> None:
    node = start(nvml=nvml)
    watch = node.resources[0].devices.watch()
    script.say("recovery 2 1", "count 3")
    states = iter(watch)
    assert all(device.healthy for device in next(states))
    assert [device.healthy for device in next(states)] == [True] * 20 + [False] * 10


def test_a_resource_appears_with_its_first_gpu(start: StartNode, nvml: Nvml, script: Script) -> None:
    node = start(nvml=nvml, rules=(NodeRule(indexes=(2,), strategy="whole"), NodeRule(indexes=(3,), strategy="none")))
    assert [resource.name for resource in node.resources] == ["gpu-share.dev/vgpu-timesliced"]
    script.say("count 4")
    wait_until(lambda: node.allocatable().get("gpu-share.dev/gpu") == [1])
    assert node.allocatable()["gpu-share.dev/vgpu-timesliced"] == [10, 10]


def test_a_gpu_that_vanishes_keeps_its_ids_and_comes_back(start: StartNode, nvml: Nvml, script: Script) -> None:
    node = start(nvml=nvml)
    ids = [device.id for device in next(iter(node.resources[0].devices.watch()))]
    script.say("count 1")
    node.becomes(10, 0)
    wait_until(lambda: node.sources(1) == ["gone"])
    assert [device.id for device in next(iter(node.resources[0].devices.watch()))] == ids
    script.take_back("count 1")
    node.becomes(10, 10)


def test_a_gpu_that_is_put_into_mig_mode_is_marked(start: StartNode, nvml: Nvml, script: Script) -> None:
    node = start(nvml=nvml)
    script.say("mig 1 1")
    node.becomes(10, 0)
    wait_until(lambda: node.sources(1) == ["mig"])
    script.take_back("mig 1 1")
    node.becomes(10, 10)


def test_a_gpu_in_mig_mode_from_the_start_is_shared_once_it_is_off(
    start: StartNode, nvml: Nvml, script: Script, caplog: pytest.LogCaptureFixture
) -> None:
    script.say("mig 0 1")
    node = start(nvml=nvml)
    looks_often(script)
    assert [gpu.uuid[-1] for gpu in node.resources[0].devices.pool.gpus] == ["1"]
    (line,) = logged(caplog, "GPU skipped")
    assert "MIG mode" in line["reason"]
    assert "MIG mode" in node.health.skipped[0]
    assert script.calls["init"] == 1  # which would not help
    script.take_back("mig 0 1")
    node.becomes(10, 10)
    wait_until(lambda: node.health.skipped == ())
