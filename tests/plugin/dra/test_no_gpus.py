"""A plugin that finds no GPU at its start takes back what claims held of those there were."""

import signal
from pathlib import Path

import pytest

from plugin.dra.checkpoint import claimed_gpus
from plugin.health.state import read_node_health
from plugin.simulated.gpus import simulated_gpus
from plugin.state_files import boot_id
from policies.contract import DRIVER
from tests.plugin.dra.node import DraNode, share
from tests.plugin.dra.prepared import unseen
from tests.plugin.waiting import wait_until

OF_TENTHS = 27  # devices
LOST = "{at: 0, gpu: 0, lost: true}"
NO_NVML_FOR_SECONDS = 4


def without(directory: Path, fault: str) -> str:
    """Write a node whose only GPU has a fault from the start."""
    (gpu,) = simulated_gpus("1xH200")
    script = directory / "failing.yaml"
    script.write_text(f"gpus: [{{model: H200, uuid: {gpu.uuid}}}]\nfaults: [{fault}]\n")
    return str(script)


@pytest.mark.parametrize("is_by_dra", [True, False])
def test_where_all_gpus_are_lost_claims_are_taken_back(node: DraNode, *, is_by_dra: bool) -> None:
    plugin = node.start("1xH200", devices=OF_TENTHS)
    held, waiting = node.schedule("held", share(300)), node.schedule("waiting", share(300))
    node.run(held)
    assert plugin.ends(by=signal.SIGTERM)[0] == 0
    node.allocation = "dra" if is_by_dra else "device-plugin"
    plugin = node.start_unregistered(without(node.directory, LOST))
    node.register()
    call = node.kubelet.begin_to_prepare(waiting)
    assert "GPU is lost" in plugin.logged("waiting for GPUs")["reason"]
    node.end(held)
    assert not claimed_gpus(node.directory / "p" / DRIVER, boot_id=boot_id(), has_processes=unseen)
    assert not node.devices()
    health = read_node_health(node.directory / "state")
    assert health is not None
    assert health.waiting is not None
    assert plugin.ends(by=signal.SIGTERM)[0] == 0
    (answer,) = call.result().claims.values()
    assert "no GPU of this node has been found yet: no GPU to share: GPU 0 of 1 cannot be shared" in answer.error


def test_who_asks_before_there_is_a_gpu_gets_it_once_it_is_there(node: DraNode) -> None:
    plugin = node.start("1xH200", devices=OF_TENTHS)
    held, waiting = node.schedule("held", share(300)), node.schedule("waiting", share(300))
    received = node.run(held)
    assert plugin.ends(by=signal.SIGTERM)[0] == 0
    node.start_unregistered(without(node.directory, f"{{at: 0, nvml: fails, recovers: {NO_NVML_FOR_SECONDS}}}"))
    node.register()
    assert node.run(held).environment == received.environment
    assert node.run(waiting).environment["GPU_SHARE_FRACTION"] == "0.3"
    wait_until(lambda: len(node.devices()) == OF_TENTHS)


def test_where_nothing_is_claimed_a_plugin_without_gpus_ends(node: DraNode) -> None:
    code, written = node.start_unregistered(without(node.directory, LOST)).ends()
    assert code == 1
    assert "no GPU to share" in written
