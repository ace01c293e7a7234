"""When the real command publishes its slices, and what is told where it cannot."""

import signal
from pathlib import Path

from plugin.dra.registration_v1 import api_pb2, api_pb2_grpc
from plugin.rpc import channel
from plugin.simulated.api_server import SLICES, Object
from policies.contract import DRIVER
from tests.plugin.dra.node import DraNode, dra_node, health, share, sizes
from tests.plugin.health.published import status
from tests.plugin.waiting import wait_until


def test_slices_are_there_while_a_kubelet_knows_the_driver(node: DraNode) -> None:
    plugin = node.start_unregistered()
    plugin.logged("starting")
    assert node.store.below(SLICES) == []
    node.register()
    plugin.logged("slices published")
    assert node.kubelet.info is not None
    assert list(node.kubelet.info.supported_versions)[:2] == ["v1.DRAPlugin", "v1beta1.DRAPlugin"]
    assert plugin.ends(by=signal.SIGTERM)[0] == 0
    assert node.store.below(SLICES) == []


def test_slices_that_somebody_removes_are_published_again(node: DraNode) -> None:
    node.start()
    for one in node.store.below(SLICES):
        node.store.remove(f"{SLICES}/{one['metadata']['name']}")
    wait_until(lambda: len(node.devices()) == 54)
    node.register()  # as a kubelet that restarts does
    node.run(node.schedule("p", share(100)))


def test_what_the_api_server_writes_in_other_words_is_not_written_again(node: DraNode) -> None:
    node.start()
    written = [one for one in node.store.requests if one[0] in ("POST", "PUT")]
    asked = len(node.store.requests)
    node.register()
    wait_until(lambda: ("GET", SLICES) in node.store.requests[asked:])
    assert [one for one in node.store.requests if one[0] in ("POST", "PUT")] == written


def test_an_api_server_that_leaves_out_the_counters_is_told_of_loudly(directory: Path) -> None:
    def without_counters(spec: Object) -> Object:
        return {name: value for name, value in spec.items() if name != "sharedCounters"}

    with dra_node(directory, keeps=without_counters) as node:
        plugin = node.start_unregistered()
        node.register()
        said = plugin.logged("slices not published, trying again")
        assert "does not keep sharedCounters" in said["reason"]
        assert "DRAPartitionableDevices" in said["reason"]
        health = node.directory / "state" / "plugin.json"
        wait_until(lambda: "slices not published: the API server does not keep" in health.read_text())
        wait_until(lambda: node.store.below(SLICES) == [])


def test_why_a_change_cannot_be_published_is_told_beside_the_slices_of_before_until_it_is(node: DraNode) -> None:
    node.start()
    wait_until(lambda: health(node).slices_not_published == "")
    before = sizes(node)
    node.store.forbids = "resourceslices is forbidden: the plugin cannot update them"
    (node.directory / "policies" / "_cluster.yaml").write_text("vgpusPerGpu: 5\n")
    wait_until(lambda: node.store.forbids in health(node).slices_not_published)
    assert f"slices not published: {health(node).slices_not_published}" in status(node.directory / "state").stdout
    assert sizes(node) == before
    node.store.forbids = ""
    wait_until(lambda: health(node).slices_not_published == "", timeout_seconds=20)
    assert sizes(node) == {"200m", "400m", "600m", "800m", "1000m"}


def test_that_the_kubelet_does_not_know_the_driver_yet_is_why_nothing_is_published(node: DraNode) -> None:
    plugin = node.start_unregistered()
    plugin.logged("starting")
    wait_until(lambda: health(node).slices_not_published == "waiting for the kubelet")
    node.register()
    wait_until(lambda: health(node).slices_not_published == "")


def test_a_kubelet_that_refuses_the_driver_is_told_with_its_reason_and_finds_no_slices(node: DraNode) -> None:
    node.start()
    wait_until(lambda: health(node).slices_not_published == "")
    with channel(node.directory / "r" / f"{DRIVER}-reg.sock") as registrar:
        refusal = api_pb2.RegistrationStatus(plugin_registered=False, error="no handler for DRAPlugin")
        api_pb2_grpc.RegistrationStub(registrar).NotifyRegistrationStatus(refusal)
    wait_until(lambda: node.store.below(SLICES) == [])
    why = "the kubelet does not register the driver: no handler for DRAPlugin"
    wait_until(lambda: health(node).slices_not_published == why)
    told = status(node.directory / "state")
    assert (told.returncode, told.stdout.count(f"\nslices not published: {why}\n")) == (1, 1)
    assert "gpu-share.dev/vgpu" not in told.stdout
    node.register()
    wait_until(lambda: health(node).slices_not_published == "")
    assert node.store.below(SLICES)
    assert status(node.directory / "state").returncode == 0
