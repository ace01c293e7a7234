"""What the real command publishes of its GPUs."""

import json
import signal
from pathlib import Path

import pytest

from plugin.simulated.api_server import SLICES
from plugin.simulated.dra_kubelet import PrepareError
from policies.contract import DRIVER
from policies.quantity import whole
from tests.plugin.dra.node import NODE, DraNode, attributes, dra_node, share, sizes
from tests.plugin.waiting import wait_until

pytestmark = pytest.mark.exhaustive


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


def consumed(node: DraNode, size: str) -> set[int]:
    """Say what devices of a size take of their GPU, in parts of its counter."""
    of_size = [one for one in node.devices().values() if attributes(one)["size"] == size]
    return {whole(value["value"]) or 0 for one in of_size for value in one["consumesCounters"][0]["counters"].values()}


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
