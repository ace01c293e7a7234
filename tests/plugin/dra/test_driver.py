"""The real command on a node that allocates by DRA, from a claim to the end of a container."""

import json
import threading

import pytest

from plugin.dra.devices import devices_of
from plugin.shares.allocation import Allocation
from plugin.shares.limits import limits
from plugin.shares.strategy import Mps
from plugin.simulated.api_server import Object
from plugin.simulated.dra_kubelet import PrepareError
from plugin.simulated.gpus import simulated_gpus
from tests.plugin.dra.gpus import Shared, divided
from tests.plugin.dra.node import DraNode, attributes, gpu_of, share
from tests.plugin.mps.tenants import Claimed, kubelet
from tests.plugin.waiting import wait_until


def checkpoint(node: DraNode) -> dict[str, Object]:
    claims: dict[str, Object] = json.loads((node.directory / "p/gpu-share.dev/checkpoint.json").read_text())["claims"]
    return claims


def test_shares_fill_one_gpu_and_wait_until_another_has_room(node: DraNode) -> None:
    node.start()
    three, seven, nine = (node.schedule(f"p{milli}", share(milli)) for milli in (300, 700, 900))
    first, second = gpu_of(node.run(three)), gpu_of(node.run(nine))
    assert gpu_of(node.run(seven)) == first != second
    assert node.scheduler.schedule("eight", {"c": share(800)}) is None
    node.end(nine)
    assert gpu_of(node.run(node.schedule("eight", share(800)))) == second


def test_a_container_receives_what_the_device_plugin_would_give_it(node: DraNode) -> None:
    node.start()
    received = node.run(node.schedule("p", share(200)))
    uuid = gpu_of(received)
    (gpu,) = (one for one in simulated_gpus("2xH200") if one.uuid == uuid)
    allocation = Allocation(gpus=(gpu,), vgpus=2, vgpus_per_gpu=10)
    assert received.environment == limits(allocation, Mps("/tmp/nvidia-mps")).environment
    assert received.environment["GPU_SHARE_FRACTION"] == "0.2"
    assert [mount.container_path for mount in received.mounts] == [f"/tmp/nvidia-mps/{uuid}", "/dev/shm"]


def test_two_containers_of_a_pod_have_a_device_each(node: DraNode) -> None:
    node.start()
    given = node.kubelet.prepare(node.schedule("p", share(200), share(300)))
    fractions = [node.kubelet.start_container(one).environment["GPU_SHARE_FRACTION"] for one in given.values()]
    assert fractions == ["0.2", "0.3"]


def test_a_claim_that_was_freed_too_early_waits_for_the_container_that_still_runs(node: DraNode) -> None:
    node.start()
    old = node.schedule("old", share(900))
    node.run(old)
    node.scheduler.release(old)  # kubectl delete --force: the container runs on
    new = node.schedule("new", share(900))
    elsewhere = node.schedule("elsewhere", share(900))
    results: list[str] = []
    waiting = threading.Thread(target=lambda: results.append(gpu_of(node.run(new))))
    waiting.start()
    node.run(elsewhere)  # nobody else waits
    assert results == []
    assert len(checkpoint(node)) == 2
    node.kubelet.unprepare(old)
    assert results == []  # the kubelet has said so before the container has ended
    waiting.join(timeout=35)
    assert len(results) == 1


def test_a_plugin_that_was_killed_knows_who_holds_what(node: DraNode) -> None:
    plugin = node.start()
    held = node.schedule("held", share(700))
    given = node.kubelet.prepare(held)
    plugin.process.kill()
    plugin.process.wait()
    for path in node.cdi_dir.iterdir():
        path.unlink()
    node.start()
    ((_, devices),) = given.items()
    assert node.kubelet.start_container(devices).environment["GPU_SHARE_FRACTION"] == "0.7"
    assert node.kubelet.prepare(held) == given
    node.end(held)
    assert checkpoint(node) == {}
    assert list(node.cdi_dir.iterdir()) == []


def test_a_claims_specification_that_somebody_removed_is_written_again(node: DraNode) -> None:
    node.start()
    claim = node.schedule("p", share(200))
    ((_, devices),) = node.kubelet.prepare(claim).items()
    (path,) = node.cdi_dir.iterdir()
    path.unlink()
    wait_until(path.exists)
    assert node.kubelet.start_container(devices).environment["GPU_SHARE_FRACTION"] == "0.2"


def test_what_was_prepared_half_is_prepared_whole_or_taken_back(node: DraNode) -> None:
    node.start()
    claim = node.schedule("p", share(200))
    uid = claim["metadata"]["uid"]
    node.kubelet.prepare(claim)
    (node.cdi_dir / f"gpu-share-claim_{uid}.json").unlink()  # killed after the checkpoint, before the specification
    assert node.run(claim).environment["GPU_SHARE_FRACTION"] == "0.2"
    node.end(claim)
    node.kubelet.unprepare(claim)  # once more, and of a claim that nobody knows
    assert checkpoint(node) == {}


def test_a_claim_that_is_deleted_while_its_pod_starts_is_an_error_of_that_pod(node: DraNode) -> None:
    node.start()
    claim = node.schedule("p", share(200))
    node.scheduler.release(claim)
    with pytest.raises(PrepareError, match="the claim is gone"):
        node.kubelet.prepare(claim)
    again = node.schedule("p", share(200))
    with pytest.raises(PrepareError, match="the claim is gone"):
        node.kubelet.prepare(claim)
    node.run(again)


def test_an_api_server_that_cannot_answer_now_is_asked_again_within_the_call(node: DraNode) -> None:
    node.start()
    claim = node.schedule("p", share(200))
    node.store.fails = 3
    assert node.run(claim).environment["GPU_SHARE_FRACTION"] == "0.2"
    assert node.store.fails == 0


def test_a_gpu_that_fails_is_tainted_and_comes_back(node: DraNode) -> None:
    script = node.directory / "failing.yaml"
    script.write_text("gpus: [{model: H200}, {model: H200}]\nfaults: [{at: 4, gpu: 0, xid: 79, recovers: 9}]\n")
    node.start(str(script))
    first = node.run(node.schedule("early", share(200)))

    def tainted() -> set[str]:
        return {str(attributes(one)["uuid"]) for one in node.devices().values() if one.get("taints")}

    wait_until(lambda: tainted() == {gpu_of(first)}, timeout_seconds=20)
    assert gpu_of(node.run(node.schedule("late", share(200)))) != gpu_of(first)
    wait_until(lambda: any(any(message.values()) for message in node.kubelet.health))
    wait_until(lambda: tainted() == set(), timeout_seconds=40)
    wait_until(lambda: not any(node.kubelet.health[-1].values()))


def test_who_has_several_whole_gpus_is_named_with_the_fault_of_each(node: DraNode) -> None:
    both = [Shared(gpu, "whole") for gpu in simulated_gpus("2xH200")]
    (name,) = (one.name for one in devices_of(both, division=divided(), kept={}) if len(one.gpus) == 2)
    script = node.directory / "failing.yaml"
    faults = "{at: 1, gpu: 0, xid: 31}, {at: 1, gpu: 1, xid: 31}"
    script.write_text(f"gpus: [{{model: H200}}, {{model: H200}}]\nfaults: [{faults}]\n")
    socket = node.directory / "kubelet" / "pod-resources.sock"
    socket.parent.mkdir()
    with kubelet(socket, Claimed("team/large", name), Claimed("team/other", "gpu-0ther-100m-0")):
        plugin = node.start_unregistered(str(script), GPU_SHARE_STRATEGY="whole")
        told = [plugin.logged("application fault on a GPU") for _ in both]
    assert {one["gpu"] for one in told} == {one.gpu.uuid for one in both}
    assert [one["tenants"] for one in told] == [["team/large/main"]] * 2


@pytest.mark.parametrize(
    ("variables", "cluster", "words"),
    [
        ({"KUBERNETES_SERVICE_HOST": ""}, "", "needs the API server"),
        ({"GPU_SHARE_ALLOCATION": "dra"}, "vgpusPerGpu: 60", "at most 34 fits"),
    ],
)
def test_a_node_that_cannot_allocate_by_dra_says_why(
    node: DraNode, variables: dict[str, str], cluster: str, words: str
) -> None:
    node.policies = cluster
    code, written = node.start_unregistered(**variables).ends()
    assert code == 1
    assert words in written


@pytest.mark.parametrize(
    ("option", "socket"),
    [
        ("--kubelet-plugins-dir", "gpu-share.dev/.dra.sock"),
        ("--kubelet-registrar-dir", ".gpu-share.dev-reg.sock"),
    ],
)
def test_a_directory_whose_sockets_would_have_too_long_paths_is_told_of_at_the_start(
    node: DraNode, option: str, socket: str
) -> None:
    name = "d" * (107 - len(f"{node.directory}//{socket}"))  # in which they just fit
    node.mounts = {option: f"{name}d"}
    code, written = node.start_unregistered().ends()
    assert code == 1
    assert "a socket's path has at most 107 bytes, this has 108: choose a directory with a shorter path" in written
    node.mounts = {option: name}
    node.start_unregistered()
    wait_until((node.directory / name / socket.replace("/.", "/").removeprefix(".")).is_socket)
