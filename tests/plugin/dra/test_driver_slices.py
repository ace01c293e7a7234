"""What the real command publishes of its GPUs, and when it does so again."""

import json
import signal
from pathlib import Path

import pytest

from plugin.dra.registration_v1 import api_pb2, api_pb2_grpc
from plugin.health.state import NodeHealth, read_node_health
from plugin.rpc import channel
from plugin.simulated.api_server import SLICES, Object
from plugin.simulated.dra_kubelet import PrepareError
from policies.contract import DRIVER
from policies.quantity import whole
from tests.plugin.dra.node import NODE, DraNode, attributes, dra_node, share
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
    wait_until(lambda: known(node).slices_not_published == "")
    before = sizes(node)
    node.store.forbids = "resourceslices is forbidden: the plugin cannot update them"
    (node.directory / "policies" / "_cluster.yaml").write_text("vgpusPerGpu: 5\n")
    wait_until(lambda: node.store.forbids in known(node).slices_not_published)
    assert f"slices not published: {known(node).slices_not_published}" in status(node.directory / "state").stdout
    assert sizes(node) == before
    node.store.forbids = ""
    wait_until(lambda: known(node).slices_not_published == "", timeout_seconds=20)
    assert sizes(node) == {"200m", "400m", "600m", "800m", "1000m"}


def test_that_the_kubelet_does_not_know_the_driver_yet_is_why_nothing_is_published(node: DraNode) -> None:
    plugin = node.start_unregistered()
    plugin.logged("starting")
    wait_until(lambda: known(node).slices_not_published == "waiting for the kubelet")
    node.register()
    wait_until(lambda: known(node).slices_not_published == "")


def test_a_kubelet_that_refuses_the_driver_is_told_with_its_reason_and_finds_no_slices(node: DraNode) -> None:
    node.start()
    wait_until(lambda: known(node).slices_not_published == "")
    with channel(node.directory / "r" / f"{DRIVER}-reg.sock") as registrar:
        refusal = api_pb2.RegistrationStatus(plugin_registered=False, error="no handler for DRAPlugin")
        api_pb2_grpc.RegistrationStub(registrar).NotifyRegistrationStatus(refusal)
    wait_until(lambda: node.store.below(SLICES) == [])
    why = "the kubelet does not register the driver: no handler for DRAPlugin"
    wait_until(lambda: known(node).slices_not_published == why)
    node.register()
    wait_until(lambda: known(node).slices_not_published == "")
    assert node.store.below(SLICES)


def test_a_size_with_tenants_stays_when_the_grid_changes(node: DraNode) -> None:
    plugin = node.start()
    held = node.schedule("held", share(300))
    node.run(held)
    assert plugin.ends(by=signal.SIGTERM)[0] == 0
    node.policies = "vgpusPerGpu: 4"
    node.start(devices=17)
    assert sizes(node) == {"250m", "500m", "750m", "1000m"}
    assert "300m" in {attributes(one)["size"] for one in node.devices().values()}
    assert node.scheduler.schedule("too much", {"c": share(750)}) is not None  # on the other GPU
    assert node.scheduler.schedule("too much", {"c": share(750)}) is None
    node.end(held)


def test_the_node_says_what_its_gpus_are(node: DraNode) -> None:
    node.start()
    found = attributes(next(iter(node.devices().values())))
    assert found | {"uuid": "", "numaNode": 0} == {
        "uuid": "",
        "model": "H200",
        "driverVersion": "simulated",
        "numaNode": 0,
        "strategy": "mps",
        "enforcement": "mps",
        "size": "100m",
        "gpus": 1,
    }
    assert all(one["spec"]["nodeName"] == NODE for one in node.store.below(SLICES))


def test_a_node_with_both_ways_gives_each_gpu_to_one(node: DraNode) -> None:
    node.policies = "nodes: [{offer: mps, indexes: [0], allocation: device-plugin}]"
    node.start(devices=27)
    assert len({attributes(one)["uuid"] for one in node.devices().values()}) == 1


def test_another_number_of_vgpus_is_published_while_sizes_with_tenants_stay(node: DraNode) -> None:
    node.policies = "vgpusPerGpu: 10\n"
    node.start("1xH200", devices=27)
    held, allocated = node.schedule("held", share(300)), node.schedule("allocated", share(100))
    before = node.run(held)
    (node.directory / "policies" / "_cluster.yaml").write_text("vgpusPerGpu: 5\n")
    wait_until(lambda: sizes(node) == {"200m", "400m", "600m", "800m", "1000m"})
    assert node.run(allocated).environment["GPU_SHARE_FRACTION"] == "0.1"  # the scheduler chose it before
    assert node.scheduler.schedule("too much", {"c": share(800)}) is None
    assert node.run(node.schedule("new", share(600))).environment["GPU_SHARE_FRACTION"] == "0.6"
    assert node.run(held).environment == before.environment
    node.end(held)
    node.end(allocated)
    assert node.run(node.schedule("after", share(400))).environment["GPU_SHARE_FRACTION"] == "0.4"


def test_what_is_held_of_an_earlier_number_counts_by_its_exact_part(node: DraNode) -> None:
    node.policies = "vgpusPerGpu: 3\n"
    node.start("1xH200", devices=5)
    (third,), (all_of_it,) = consumed(node, "333m"), consumed(node, "1000m")
    assert 3 * third == all_of_it
    node.run(node.schedule("held", share(333)))
    (node.directory / "policies" / "_cluster.yaml").write_text("vgpusPerGpu: 5\n")
    wait_until(lambda: "200m" in sizes(node))
    assert consumed(node, "333m") == {third}
    assert {5 * one for one in consumed(node, "200m")} == {all_of_it}


@pytest.mark.parametrize("nodes", ["{indexes: [0], device: big}", "{indexes: [0], device: big, vgpusPerGpu: 20}"])
def test_a_claim_stays_what_it_is_when_its_gpu_gets_a_name_of_its_own(node: DraNode, nodes: str) -> None:
    plugin = node.start()
    held, waiting = node.schedule("held", share(300)), node.schedule("waiting", share(100))
    before = node.run(held)
    assert plugin.ends(by=signal.SIGTERM)[0] == 0
    node.policies = f"nodes: [{nodes}]"
    node.start(devices=54)
    assert node.run(held).environment == before.environment
    found = node.devices()[held["status"]["allocation"]["devices"]["results"][0]["device"]]
    assert attributes(found)["size"] == "300m"
    assert [one["effect"] for one in found["taints"]] == ["NoSchedule"]  # nobody else gets it
    assert node.scheduler.schedule("whole", {"c": "gpu-share.dev/share-1000m-model-big"}) is None
    with pytest.raises(PrepareError, match=r"is another device in _cluster\.yaml by now: delete the pod"):
        node.run(waiting)
    node.end(held)
    node.end(waiting)
    wait_until(lambda: "taints" not in node.devices().get(found["name"], {"taints": ()}))
    assert node.scheduler.schedule("whole", {"c": "gpu-share.dev/share-1000m-model-big"}) is not None


def test_a_gpu_that_loses_its_name_again_keeps_the_room_of_who_was_allocated_it_before(node: DraNode) -> None:
    plugin = node.start("1xH200", devices=27)
    waiting = node.schedule("waiting", share(400))
    for policies, of_this in (("nodes: [{indexes: [0], device: big, vgpusPerGpu: 3}]", "model-big"), ("", "900m")):
        assert plugin.ends(by=signal.SIGTERM)[0] == 0
        node.policies = policies
        plugin = node.start("1xH200", devices=27)
        wait_until(lambda: any(size.endswith(of_this) for size in sizes(node)))  # noqa: B023 - called here
        if policies:
            with pytest.raises(PrepareError, match=r"in _cluster\.yaml by now: delete the pod"):
                node.run(waiting)
            assert node.scheduler.schedule("late", {"c": "gpu-share.dev/share-666m-model-big"}) is None
    assert node.scheduler.schedule("late", {"c": share(700)}) is None
    assert node.run(waiting).environment["GPU_SHARE_FRACTION"] == "0.4"
    assert node.scheduler.schedule("beside", {"c": share(600)}) is not None


def test_a_claim_is_prepared_on_a_gpu_with_a_new_name_after_the_machine_has_started_again(node: DraNode) -> None:
    plugin = node.start()
    held = node.schedule("held", share(300))
    node.run(held)
    assert plugin.ends(by=signal.SIGTERM)[0] == 0
    checkpoint = node.directory / "p" / DRIVER / "checkpoint.json"
    written = json.loads(checkpoint.read_text())
    for claim in written["claims"].values():
        claim["boot_id"] = "earlier"
    checkpoint.write_text(json.dumps(written))
    node.policies = "nodes: [{indexes: [0], device: big}]"
    node.start()
    assert node.run(held).environment["GPU_SHARE_FRACTION"] == "0.3"


def known(node: DraNode) -> NodeHealth:
    found = read_node_health(node.directory / "state")
    assert found is not None
    return found


def consumed(node: DraNode, size: str) -> set[int]:
    """Say what devices of a size take of their GPU, in parts of its counter."""
    of_size = [one for one in node.devices().values() if attributes(one)["size"] == size]
    return {whole(value["value"]) or 0 for one in of_size for value in one["consumesCounters"][0]["counters"].values()}


def sizes(node: DraNode) -> set[str]:
    """Say which sizes pods can get; those of an earlier number are published, and tainted."""
    return {attributes(one)["size"] for one in node.devices().values() if "taints" not in one}


def test_a_gpu_full_of_an_earlier_number_keeps_no_other_gpu_from_pods(directory: Path) -> None:
    with dra_node(directory) as node:
        node.policies = "vgpusPerGpu: 3\n"
        node.start("2xH200", devices=10)
        claims = [node.schedule(f"third-{number}", share(333)) for number in range(3)]
        for claim in claims:
            node.run(claim)
        (directory / "policies" / "_cluster.yaml").write_text("vgpusPerGpu: 5\n")
        wait_until(lambda: "200m" in {attributes(one)["size"] for one in node.devices().values()})
        assert node.scheduler.schedule("fifth", {"c": share(200)}) is not None
        assert node.scheduler.schedule("whole", {"c": share(1000)}) is None


def test_a_number_for_instances_that_the_scheduler_cannot_look_through_costs_these_alone(node: DraNode) -> None:
    gpus = node.directory / "gpus.yaml"
    gpus.write_text("gpus:\n- {model: H200}\n- {model: H100, mig: [3g.40gb]}\n")
    node.policies = "nodes: [{offer: mps, mig: shared}]\nvgpusPerInstance: {3g.40gb: 40}\n"
    plugin = node.start(str(gpus), devices=27)
    assert "vgpusPerInstance: 3g.40gb: 40 needs 158 devices" in plugin.logged("GPU skipped")["reason"]
    assert len(node.devices()) == 27
