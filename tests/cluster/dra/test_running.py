"""Shares by DRA on a real scheduler and kubelet: nothing fails for want of room, and nothing is lost or given twice."""

import pytest

from tests.cluster.api import Answer
from tests.cluster.cluster import Cluster, eventually
from tests.cluster.dra.shares import (
    PREPARED_AGAIN_SECONDS,
    STUBBORN,
    gpu_of,
    grant_of,
    is_pending,
    most_of_one_gpu,
    most_until_running,
    resource_of,
    running,
    started,
)
from tests.cluster.installation import DRA, MOVING, VGPU, Installation
from tests.cluster.node import Kubelet, Node
from tests.cluster.pods import Place, container, pod
from tests.cluster.test_kinds import has_a_share
from tests.cluster.view import shown


def test_a_share_that_fits_on_no_gpu_waits_and_no_pod_fails(here: Place) -> None:
    for share in ("0.3", "0.7", "0.9"):
        started(here, share, f"p{share[-1]}")
    assert gpu_of(here, "p3") == gpu_of(here, "p7") != gpu_of(here, "p9")
    assert here.create(pod("0.8", name="p8")).ok
    eventually(lambda: is_pending(here, "p8"), what="0.8 waits")
    assert {one["status"]["phase"] for one in here.all()} == {"Running", "Pending"}
    freed = gpu_of(here, "p9")
    here.cluster.run(f"kubectl -n {here.name} delete pod p9 --grace-period=1 --wait=false")
    running(here, "p8")
    assert gpu_of(here, "p8") == freed


def test_a_container_has_its_share_whichever_way_it_was_allocated(here: Place) -> None:
    started(here, "0.2", "model")
    report = here.report("model")
    has_a_share(report, percent=20, mib=int(report.environment["GPU_SHARE_MEMORY_MIB"]))
    assert report.environment["GPU_SHARE_FRACTION"] == "0.2"


def test_init_and_app_containers_and_sidecars_have_a_device_each(here: Place) -> None:
    shares = {"container.gpu-share.dev/init": "0.1", "container.gpu-share.dev/side": "0.3"}
    init = [container("init", args=["--once"]), container("side", restartPolicy="Always")]
    made = here.create(pod("0.2", container(), container("bare"), annotations=shares, initContainers=init))
    assert made.ok, made.message
    running(here, "model")
    found = {name: here.report("model", name).environment for name in ("init", "side", "main", "bare")}
    assert {name: one.get("GPU_SHARE_FRACTION") for name, one in found.items()} == {
        "init": "0.1",
        "side": "0.3",
        "main": "0.2",
        "bare": None,
    }
    assert found["bare"]["NVIDIA_VISIBLE_DEVICES"] == "void"
    gpu = gpu_of(here, "model")

    def parts() -> dict[str, int]:
        of_gpu = [one for node in shown("top")["nodes"] for one in node["gpus"] if one["uuid"] == gpu]
        seen = {one["container"]: one["parts"] for one in of_gpu[0]["tenants"] if one["namespace"] == here.name}
        return {**seen, "of all": of_gpu[0]["granted"]} if seen else {}

    # The kubelet names no init container, so what it had is counted as the first other one's.
    eventually(lambda: parts() == {"side": 400, "main": 200, "of all": 600}, what="top shows the parts of each")


def test_a_quota_counts_a_size(here: Place) -> None:
    hard = {"requests.gpu-share.dev/share-200m": "1"}
    here.apply({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": {"hard": hard}})
    started(here, "0.2", "first")
    denied = eventually(lambda: _denied(here.create(pod("0.2", name="second"))), what="the quota is counted")
    assert "exceeded quota" in denied


@pytest.mark.kubelet_retry
def test_running_pods_outlive_kubelet_and_plugin_and_new_ones_start(
    by_dra: Installation, here: Place, kubelet: Kubelet, node: Node
) -> None:
    before = started(here, "0.2", "before")
    kubelet.stop()
    kubelet.run()
    started(here, "0.2", "after-kubelet")
    node.kill("gpu-share plugin")
    started(here, "0.2", "after-kill")
    by_dra.run("kubectl -n gpu-share rollout restart daemonset/gpu-share-plugin")  # as an upgrade does
    by_dra.use_dra(DRA)
    started(here, "0.2", "after-upgrade")
    assert gpu_of(here, "after-upgrade") == gpu_of(here, "before")
    after = here.get("before")["status"]["containerStatuses"]
    assert [one["containerID"] for one in after] == [
        one["containerID"] for one in before["status"]["containerStatuses"]
    ]


def test_slices_that_are_deleted_are_published_again(by_dra: Installation, here: Place) -> None:
    by_dra.run("kubectl delete resourceslices --all")
    by_dra.use_dra(DRA)
    started(here, "0.2", "model")


@pytest.mark.kubelet_retry
def test_a_container_that_starts_again_after_the_plugin_was_killed_has_its_gpu(here: Place, node: Node) -> None:
    started(here, "0.2", "model", restartPolicy="Always")
    node.run("rm -f /host/run/cdi/gpu-share-claim_*.json")
    node.kill("gpu-share plugin")
    eventually(lambda: node.run("ls /host/run/cdi").count("gpu-share-claim_"), what="the specification is back")
    here.cluster.run(f"kubectl -n {here.name} exec model -- sh -c 'kill 1'")

    def has_restarted() -> bool:
        (status,) = here.get("model")["status"]["containerStatuses"]
        return bool(status["restartCount"] == 1 and status.get("started"))

    eventually(has_restarted, what="the container runs again")
    assert here.report("model").environment["GPU_SHARE_FRACTION"] == "0.2"


@pytest.mark.kubelet_retry
def test_a_forced_delete_frees_no_gpu_whose_container_still_runs(here: Place, node: Node) -> None:
    grace = {"terminationGracePeriodSeconds": 10}
    for name in ("a", "b"):
        started(here, "0.9", name, STUBBORN, **grace)
    here.cluster.run(f"kubectl -n {here.name} delete pod a --force --grace-period=0")
    assert here.create(pod("0.9", STUBBORN, name="next", **grace)).ok
    assert most_until_running(["next"], here, node) == 0.9


@pytest.mark.kubelet_retry
def test_forced_deletes_under_load_give_no_gpu_away_beyond_its_whole(here: Place, node: Node) -> None:
    grace = {"terminationGracePeriodSeconds": 10}
    first, second = ([f"{name}-{number}" for number in range(10)] for name in ("first", "second"))
    for name in first:
        assert here.create(pod("0.2", STUBBORN, name=name, **grace)).ok
    assert most_until_running(first, here, node) == 1
    here.cluster.run(f"kubectl -n {here.name} delete pod --all --force --grace-period=0")
    for name in second:
        assert here.create(pod("0.2", STUBBORN, name=name, **grace)).ok
    assert most_until_running(second, here, node) == 1


@pytest.mark.kubelet_retry
def test_a_plugin_that_is_killed_while_a_claim_waits_prepares_it_afterwards(here: Place, node: Node) -> None:
    for name in ("a", "b"):
        started(here, "0.9", name, STUBBORN, terminationGracePeriodSeconds=15)
    here.cluster.run(f"kubectl -n {here.name} delete pod a --force --grace-period=0")
    assert here.create(pod("0.9", name="next")).ok
    eventually(lambda: here.get("next")["spec"].get("nodeName"), what="the next pod is bound")
    node.kill("gpu-share plugin")
    running(here, "next")
    assert most_of_one_gpu(node) == 0.9


@pytest.mark.kubelet_retry
def test_a_claim_that_is_deleted_while_its_pod_starts_harms_no_other_pod(here: Place) -> None:
    for number in range(3):
        assert here.create(pod("0.1", name=f"p{number}")).ok
    here.cluster.attempt(f"kubectl -n {here.name} delete resourceclaims --all --wait=false")
    here.cluster.run(f"kubectl -n {here.name} delete pod --all --grace-period=1 --wait=false")
    eventually(lambda: not here.all(), seconds=PREPARED_AGAIN_SECONDS, what="the pods are gone")
    started(here, "1", "all-of-one")
    started(here, "1", "all-of-the-other")


def test_the_plugin_has_no_more_memory_than_the_page_says(here: Place, node: Node) -> None:
    started(here, "0.2", "model")
    pss = node.run(
        "for p in /proc/[0-9]*; do tr '\\0' ' ' <$p/cmdline 2>/dev/null | grep -q 'gpu-share plugin' "
        "&& grep ^Pss: $p/smaps_rollup; done; true"
    )
    assert max(int(line.split()[1]) for line in pss.splitlines()) < 60 * 1024


def test_a_node_that_moves_over_serves_both_ways(first: Installation, cluster: Cluster, by_dra: Installation) -> None:
    first.write_policies(**{"goes-by-dra": "allocation: dra"})
    first.use_dra(MOVING, devices=27)
    eventually(lambda: resource_of("0.2", cluster) == VGPU, seconds=120, what="the old policy is back")
    moved, stayed = Place.make(cluster, "goes-by-dra"), Place.make(cluster, "stays")
    try:
        eventually(lambda: "share-" in grant_of(moved), seconds=120, what="the namespace goes by DRA")
        for place in (moved, stayed):
            started(place, "0.6", "model")
        assert gpu_of(moved, "model") != gpu_of(stayed, "model")
        assert moved.create(pod("0.6", name="second")).ok
        eventually(lambda: is_pending(moved, "second"), what="the GPU of DRA is full")
    finally:
        moved.remove()
        stayed.remove()
        first.write_policies(**{"goes-by-dra": None})
        by_dra.use_dra(DRA)


def _denied(answer: Answer) -> str:
    return "" if answer.ok else answer.message
