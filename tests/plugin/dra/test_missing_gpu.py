"""A GPU that fails while no plugin runs, and of which claims hold something."""

import signal
from pathlib import Path

import pytest

from policies.contract import DRIVER
from tests.plugin.dra.node import DEVICES, DraNode, attributes, gpu_of, health, share
from tests.plugin.nvml_library import Script, build
from tests.plugin.waiting import wait_until

pytestmark = pytest.mark.exhaustive

FIRST, SECOND = (f"GPU-00000000-0000-0000-0000-00000000000{index}" for index in (0, 1))
SHARE = f"{share(600)}-timesliced"


@pytest.mark.parametrize("line", ["count 1", "lost 1"])
def test_its_devices_are_tainted_and_it_is_shown_until_nothing_of_it_is_held(
    node: DraNode, tmp_path: Path, line: str
) -> None:
    script = Script(tmp_path)
    variables = {"LD_LIBRARY_PATH": str(build(tmp_path).parent), **script.environment}
    node.policies = "nodes: [{offer: time-slicing}]\n"
    plugin = node.start_unregistered("", **variables)
    node.register()
    wait_until(lambda: len(node.devices()) >= DEVICES, timeout_seconds=30)
    held = node.schedule("b", SHARE), node.schedule("a", SHARE)
    on = {gpu_of(node.run(claim)): claim for claim in held}
    assert on.keys() == {FIRST, SECOND}
    assert plugin.ends(by=signal.SIGTERM)[0] == 0
    script.say(line)
    node.start_unregistered("", **variables)
    node.kubelet.find(DRIVER)
    wait_until(lambda: tainted(node) == {SECOND}, timeout_seconds=30)
    wait_until(lambda: [one.healthy for one in health(node).gpus] == [True, False])
    node.end(on[SECOND])
    if line == "count 1":
        wait_until(lambda: [one.uuid for one in health(node).gpus] == [FIRST], timeout_seconds=30)
        wait_until(lambda: not tainted(node))


def tainted(node: DraNode) -> set[str]:
    """Name the GPUs of which devices are tainted as unhealthy."""
    named = [one for one in node.devices().values() if f"{DRIVER}/unhealthy" in str(one.get("taints"))]
    return {uuid for one in named if (uuid := attributes(one).get("uuid"))}
