"""Shares that fit on no GPU, on a scheduler that sees sums: they wait; and what fails where it hears too late."""

import logging
import time
from collections.abc import Iterator

import pytest

from tests.cluster.api import Object
from tests.cluster.cluster import Cluster, eventually
from tests.cluster.installation import VGPU, Installation
from tests.cluster.node import Kubelet, Node
from tests.cluster.pods import Place, pod

log = logging.getLogger(__name__)

PERIOD_SECONDS = 10.4  # of the node's status: 10, and up to 4 % more
MOST_FAILED = 50


@pytest.fixture
def kubelet(installed: Installation) -> Iterator[Kubelet]:
    found = Kubelet.here()
    if found is None:
        pytest.skip("the kubelet of this cluster cannot be stopped from here: its processes are not this machine's")
    yield found
    found.run()
    installed.wait_until_ready()


def deployment(share: str, *, replicas: int = 1) -> Object:
    labels = {"app": "model"}
    template = {"metadata": {"labels": labels, "annotations": {"gpu-share": share}}, "spec": pod(None)["spec"]}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "model"}, "spec": spec}


def start(place: Place, **shares: str) -> None:
    for name, share in shares.items():
        place.started(pod(share, name=name))


def failed(place: Place) -> int:
    return sum(one["status"]["phase"] == "Failed" for one in place.all("app=model"))


def phases(place: Place) -> set[str]:
    return {one["status"]["phase"] for one in place.all("app=model")}


def remove(place: Place, *names: str) -> None:
    place.cluster.run(f"kubectl -n {place.name} delete pod {' '.join(names)} --grace-period=1 --wait=true")


def allocatable(cluster: Cluster) -> int:
    (node,) = cluster.api.get("/api/v1/nodes")["items"]
    return int(node["status"]["allocatable"][VGPU])


def shows(cluster: Cluster, vgpus: int) -> None:
    eventually(lambda: allocatable(cluster) == vgpus, seconds=30, what=f"{vgpus} vGPUs held or shown")


def fails_within(place: Place, seconds: float) -> tuple[int, float]:
    """Count the pods that fail from now on, and the seconds until the last of them did."""
    begin, before, last = time.monotonic(), failed(place), 0.0
    now = before
    while time.monotonic() - begin < seconds:
        if (found := failed(place)) > now:
            now, last = found, time.monotonic() - begin
        time.sleep(0.2)
    return now - before, last


def test_a_share_that_fits_on_no_gpu_waits_and_no_pod_fails(place: Place, cluster: Cluster) -> None:
    start(place, seven="0.7", nine="0.9")
    shows(cluster, 19)
    place.apply(deployment("0.4"))
    assert fails_within(place, 60) == (0, 0.0)
    assert phases(place) == {"Pending"}
    remove(place, "seven")
    place.one_running("app=model")
    assert failed(place) == 0


def test_where_the_scheduler_hears_too_late_few_pods_fail_and_none_after_the_next_status(
    place: Place, cluster: Cluster
) -> None:
    start(place, whole="1")
    shows(cluster, 20)
    start(place, **{f"small-{number}": "0.1" for number in range(10)})
    remove(place, "whole")
    start(place, six="0.6")
    shows(cluster, 20)  # 4 are free on one GPU, and nothing on the other
    place.apply(deployment("0.5"))
    time.sleep(PERIOD_SECONDS)
    seen = []
    for number in range(4):  # each leaves 5 free in all, and 4 at most on one
        remove(place, f"small-{number}")
        seen.append(fails_within(place, 2.5 * PERIOD_SECONDS))
        assert phases(place) <= {"Pending", "Failed"}
    log.info("pods that failed, and seconds until the last one: %s", seen)
    assert max(count for count, _ in seen) <= MOST_FAILED
    assert max(seconds for _, seconds in seen) <= PERIOD_SECONDS + 2
    remove(place, "small-4")
    eventually(lambda: "Running" in phases(place), what="the share runs once it fits")


def test_a_whole_gpu_has_room_beside_two_smaller_shares(place: Place) -> None:
    start(place, small="0.2", half="0.5")
    seen = {place.report(name).environment["NVIDIA_VISIBLE_DEVICES"] for name in ("small", "half")}
    assert len(seen) == 1
    begin = time.monotonic()
    place.apply(deployment("1"))
    place.one_running("app=model")
    log.info("a whole GPU runs %.1f s after it was asked for", time.monotonic() - begin)
    assert failed(place) == 0


def test_what_fits_runs_a_period_later_at_most_and_nothing_fails(place: Place) -> None:
    begin = time.monotonic()
    place.apply(deployment("0.1", replicas=20))
    eventually(lambda: [one["status"]["phase"] for one in place.all("app=model")] == ["Running"] * 20, seconds=90)
    log.info("20 pods of 0.1 on two GPUs run after %.1f s", time.monotonic() - begin)
    assert time.monotonic() - begin < 30 + PERIOD_SECONDS


def test_restarts_of_plugin_and_kubelet_send_no_pod_where_it_does_not_fit(
    place: Place, cluster: Cluster, node: Node, kubelet: Kubelet, installed: Installation
) -> None:
    start(place, seven="0.7", nine="0.9")
    shows(cluster, 19)
    place.apply(deployment("0.4"))
    node.kill("gpu-share plugin")
    assert fails_within(place, 2 * PERIOD_SECONDS) == (0, 0.0)
    installed.wait_until_ready()
    kubelet.stop()
    kubelet.run()
    assert fails_within(place, 3 * PERIOD_SECONDS) == (0, 0.0)
    installed.wait_until_ready()
    shows(cluster, 19)
    said = cluster.run(f"kubectl -n gpu-share exec {_plugin(installed)} -- gpu-share plugin status")
    assert f"fit guard: 1 of 4 free {VGPU} hidden: " in said
    remove(place, "nine")
    place.one_running("app=model")


def _plugin(installed: Installation) -> str:
    return str(installed.pods("plugin")[0]["metadata"]["name"])
