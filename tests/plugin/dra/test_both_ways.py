"""A GPU that goes from the device plugin to DRA, or back, while containers hold something of it."""

from collections.abc import Iterator
from pathlib import Path
from signal import SIGTERM
from time import monotonic

import pytest

from plugin.simulated.device_manager import Request, UnexpectedAdmissionError
from plugin.simulated.kubelet import SimulatedKubelet
from policies.contract import DRIVER
from tests.plugin.dra.node import DraNode, dra_node, share
from tests.plugin.plugin_process import Plugin
from tests.plugin.waiting import wait_until

pytestmark = pytest.mark.exhaustive

NAME = "gpu-share.dev/vgpu"
BY_DRA = "nodes: [{offer: mps, allocation: dra}]\n"
OF_TENTHS = 27  # devices by DRA


@pytest.fixture
def node(directory: Path) -> Iterator[DraNode]:
    with dra_node(directory) as node:
        node.allocation = "device-plugin"
        (directory / "kubelet").mkdir()
        yield node


@pytest.fixture
def kubelet(node: DraNode) -> Iterator[SimulatedKubelet]:
    directory = node.directory / "kubelet"
    with SimulatedKubelet(directory, pod_resources=directory / "pod-resources.sock") as kubelet:
        yield kubelet


def changed(node: DraNode, plugin: Plugin, policies: str, *, simulate: str = "1xH200", **variables: str) -> Plugin:
    """Change `_cluster.yaml`, and start the plugin again once it has ended for that."""
    node.policies = policies
    (node.directory / "policies" / "_cluster.yaml").write_text(policies)
    assert plugin.process.wait(30) == 0
    return node.start_unregistered(simulate, **variables)


def asking(pod: str, count: int) -> Request:
    return Request(pod=f"team/{pod}", container="main", resource=NAME, count=count)


def goes_to_dra_when_its_pod_has_ended(node: DraNode, kubelet: SimulatedKubelet, plugin: Plugin) -> None:
    """See that the only GPU for DRA stays with the kubelet until nobody holds anything of it, or may."""
    assert plugin.logged("a GPU stays with who has allocated it")["level"] == "warning"
    node.register()
    kubelet.wait_for(NAME)
    assert not node.devices()
    kubelet.free("team/stays")
    wait_until(lambda: len(node.devices()) == OF_TENTHS, timeout_seconds=60)


def test_the_last_gpu_of_a_resource_that_goes_to_dra_is_the_kubelets_no_more(
    node: DraNode, kubelet: SimulatedKubelet
) -> None:
    plugin = node.start_unregistered("1xH200")
    kubelet.wait_for(NAME)
    kubelet.allocate(asking("stays", 2))
    plugin = changed(node, plugin, BY_DRA)
    goes_to_dra_when_its_pod_has_ended(node, kubelet, plugin)
    assert kubelet.allocatable(NAME) == 0
    with pytest.raises(UnexpectedAdmissionError, match="Available: 0"):
        kubelet.allocate(asking("next", 1))
    assert node.run(node.schedule("by-dra", share(1000))).environment["GPU_SHARE_FRACTION"] == "1"


def test_while_nobody_knows_on_which_gpu_a_container_is_none_goes_to_dra(
    node: DraNode, kubelet: SimulatedKubelet
) -> None:
    plugin = node.start_unregistered("2xH200")
    kubelet.wait_for(NAME)
    kubelet.allocate(asking("stays", 2))  # by IDs that name the first
    plugin.process.kill()
    for lost in ("state/vgpus.json", "kubelet/kubelet_internal_checkpoint"):
        (node.directory / lost).write_text("{")
    node.policies = "nodes: [{node: '*', indexes: [1], offer: mps, allocation: dra}]\n"
    plugin = node.start_unregistered("2xH200")
    goes_to_dra_when_its_pod_has_ended(node, kubelet, plugin)


def test_a_gpu_of_which_claims_hold_something_stays_with_dra_though_nothing_is_allocated_by_it_now(
    node: DraNode, kubelet: SimulatedKubelet
) -> None:
    node.policies = BY_DRA
    plugin = node.start("1xH200", devices=OF_TENTHS)
    claim = node.schedule("stays", share(300))
    received = node.run(claim)
    plugin = changed(node, plugin, "")
    assert "by dra" in plugin.logged("a GPU stays with who has allocated it")["reason"]
    node.register()
    assert node.run(claim).environment == received.environment
    assert kubelet.allocatable(NAME) == 0
    node.end(claim)
    kubelet.wait_until(lambda: kubelet.allocatable(NAME) == 10, timeout_seconds=30)
    wait_until(lambda: not node.devices())


def test_a_node_that_is_back_can_be_divided_more_finely_than_by_dra(node: DraNode, kubelet: SimulatedKubelet) -> None:
    node.policies = BY_DRA
    plugin = node.start("1xH200", devices=OF_TENTHS)
    claim = node.schedule("stays", share(300))
    received = node.run(claim)
    plugin = changed(node, plugin, "")
    node.register()
    node.policies = "vgpusPerGpu: 40\n"
    (node.directory / "policies" / "_cluster.yaml").write_text(node.policies)
    for _ in ("while it runs", "when it starts"):
        wait_until(lambda: all("taints" in one for one in node.devices().values()))  # nobody gets anything new by DRA
        assert plugin.ends(by=SIGTERM)[0] == 0
        plugin = node.start_unregistered("1xH200")
        node.register()
    assert node.run(claim).environment == received.environment
    node.end(claim)
    kubelet.wait_until(lambda: kubelet.allocatable(NAME) == 40, timeout_seconds=30)


def test_a_claim_that_waits_for_a_gpu_that_leaves_dra_is_told_to_go(node: DraNode, kubelet: SimulatedKubelet) -> None:
    node.policies = BY_DRA
    plugin = node.start("1xH200", devices=OF_TENTHS)
    runs, waits = (node.schedule(name, share(300)) for name in ("runs", "waits"))
    node.run(runs)
    uuid = plugin.logged("starting")["gpus"][0]["uuid"]
    script = node.directory / "gpus.yaml"
    script.write_text(
        f"gpus: [{{model: H200, uuid: {uuid}}}]\nfaults: [{{at: 0, gpu: 0, mps: no daemon, recovers: 600}}]\n"
    )
    plugin = changed(node, plugin, "", simulate=str(script))
    plugin.logged("GPU unhealthy")
    node.register()
    waiting = node.kubelet.begin_to_prepare(waits)
    node.end(runs)
    error = waiting.result().claims[waits["metadata"]["uid"]].error
    assert "delete the pod, it is scheduled again" in error
    kubelet.wait_until(lambda: kubelet.capacity(NAME), timeout_seconds=30)
    assert kubelet.allocatable(NAME) == 0


def test_where_no_driver_can_take_claims_back_nobody_gets_their_gpu_until_their_file_is_removed(
    node: DraNode, kubelet: SimulatedKubelet
) -> None:
    node.policies = BY_DRA
    plugin = node.start("1xH200", devices=OF_TENTHS)
    node.run(node.schedule("stays", share(300)))
    plugin = changed(node, plugin, "", KUBERNETES_SERVICE_HOST="")
    told = plugin.logged("GPUs of which claims hold something are shared by nobody")
    checkpoint = node.directory / "p" / DRIVER / "checkpoint.json"
    assert told["reason"].endswith(f"remove {checkpoint}")
    plugin.logged("a GPU stays with who has allocated it")
    failed = plugin.logged("GPU unhealthy")
    assert "no driver of DRA runs here to take them back" in failed["why"]
    (gpu,) = plugin.logged("starting")["gpus"]
    assert gpu["uuid"] == failed["gpu"]
    assert kubelet.allocatable(NAME) == 0
    checkpoint.unlink()
    kubelet.wait_until(lambda: kubelet.allocatable(NAME) == 10, timeout_seconds=30)
    plugin.logged("GPU healthy again")


def test_of_a_gpu_that_a_claim_was_deleted_from_by_force_the_kubelet_hears_once_its_containers_have_ended(
    node: DraNode, kubelet: SimulatedKubelet
) -> None:
    node.policies = BY_DRA
    plugin = node.start("1xH200", devices=OF_TENTHS)
    claim = node.schedule("forced", share(300))
    node.run(claim)
    plugin = changed(node, plugin, "")
    plugin.logged("a GPU stays with who has allocated it")
    node.register()
    node.scheduler.release(claim)  # the claim is gone, and its containers are about to be
    before_seconds = monotonic()
    node.kubelet.unprepare(claim)
    hold_seconds = plugin.logged("claim unprepared")["hold_seconds"]
    kubelet.wait_until(lambda: kubelet.allocatable(NAME) == 10, timeout_seconds=30)
    assert hold_seconds - 1 < monotonic() - before_seconds
