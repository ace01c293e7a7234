"""Plugins, kubelets and nodes that start again under running pods."""

from collections.abc import Iterator

import pytest

from tests.cluster.api import Object
from tests.cluster.cluster import eventually
from tests.cluster.installation import SHOWN, VGPU, Installation
from tests.cluster.node import Kubelet, Node
from tests.cluster.pods import Place, pod
from tests.cluster.test_kinds import has_a_share

LABELS = {"app": "model"}
DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "model"},
    "spec": {
        "selector": {"matchLabels": LABELS},
        "template": {
            "metadata": {"labels": LABELS, "annotations": {"gpu-share": "0.2"}},
            "spec": pod(None)["spec"],
        },
    },
}


@pytest.fixture
def kubelet(installed: Installation) -> Iterator[Kubelet]:
    """Give a kubelet that can be stopped; it runs afterwards, and the node is as it was."""
    found = Kubelet.here()
    if found is None:
        pytest.skip("the kubelet of this cluster cannot be stopped from here: its processes are not this machine's")
    yield found
    found.run()
    installed.wait_until_ready()


@pytest.fixture
def tenant(place: Place) -> Object:
    """Give a running pod of a Deployment that has a share."""
    place.apply(DEPLOYMENT)
    return place.one_running("app=model")


def new_pods_get_shares(place: Place) -> None:
    """See that a Deployment's new pod runs; its first one may meet a node whose status is from before."""
    names = {one["metadata"]["name"] for one in place.all("app=model")}
    place.cluster.run(f"kubectl -n {place.name} delete pod -l app=model --wait=false")

    def new() -> Object | None:
        running = [one for one in place.all("app=model") if one["status"]["phase"] == "Running"]
        return next((one for one in running if one["metadata"]["name"] not in names), None)

    made = eventually(new, seconds=90, what="a new pod with a share runs")
    has_a_share(place.report(made["metadata"]["name"]), percent=20, mib=28728)


def is_unharmed(place: Place, tenant: Object) -> bool:
    now = place.get(tenant["metadata"]["name"])
    (before,), after = tenant["status"]["containerStatuses"], now["status"].get("containerStatuses", [])
    return [one["containerID"] for one in after if "running" in one["state"]] == [before["containerID"]]


def test_a_plugin_that_is_replaced_harms_no_pod_and_serves_new_ones(
    installed: Installation, place: Place, tenant: Object
) -> None:
    installed.run("kubectl -n gpu-share rollout restart daemonset/gpu-share-plugin")
    installed.wait_until_ready()
    assert is_unharmed(place, tenant)
    new_pods_get_shares(place)


def test_a_plugin_that_is_killed_starts_again_and_serves_new_pods(
    installed: Installation, place: Place, tenant: Object, node: Node
) -> None:
    before = _restarts(installed)
    node.kill("gpu-share plugin")
    eventually(lambda: _restarts(installed) > before, what="the plugin was started again")
    installed.wait_until_ready()
    assert is_unharmed(place, tenant)
    new_pods_get_shares(place)


def test_a_plugin_that_finds_its_file_lost_reads_in_the_kubelets_checkpoint_what_is_held(
    installed: Installation, place: Place, tenant: Object, node: Node
) -> None:
    node.run("rm /host/run/gpu-share/vgpus.json")
    before = _restarts(installed)
    node.kill("gpu-share plugin")
    eventually(lambda: _restarts(installed) > before, what="the plugin was started again")
    eventually(lambda: "vgpus.json" in node.run("ls /host/run/gpu-share"), what="what is held is written again")
    installed.wait_until_ready(seconds=90)  # nothing would be free if it did not know on which GPU the pod is
    assert is_unharmed(place, tenant)
    new_pods_get_shares(place)


def test_a_plugin_registers_again_after_the_kubelet_restarted(
    installed: Installation, kubelet: Kubelet, place: Place, tenant: Object
) -> None:
    kubelet.stop()
    kubelet.run()
    installed.wait_until_ready()
    assert is_unharmed(place, tenant)
    new_pods_get_shares(place)


def test_a_plugin_serves_again_after_the_kubelets_directory_was_removed(
    installed: Installation, kubelet: Kubelet, place: Place, tenant: Object, node: Node
) -> None:
    before = _restarts(installed)
    node.run("rm -rf /host/var/lib/kubelet/device-plugins")
    kubelet.stop()
    kubelet.run()
    eventually(lambda: _restarts(installed) > before, what="the plugin was started again")
    eventually(
        lambda: "gpu-share.dev_vgpu.sock" in node.run("ls /host/var/lib/kubelet/device-plugins"),
        what="the plugin serves in the kubelet's new directory",
    )
    installed.wait_until_ready(seconds=90)
    assert is_unharmed(place, tenant)
    new_pods_get_shares(place)


def test_a_deployment_has_its_share_again_after_the_node_was_rebooted(
    installed: Installation, kubelet: Kubelet, place: Place, tenant: Object, node: Node
) -> None:
    node.run("rm -rf /host/run/gpu-share/*")  # as a machine does that starts
    kubelet.stop()
    kubelet.kill_containers()
    kubelet.run()
    eventually(lambda: not is_unharmed(place, tenant), what="the kubelet has seen that the containers ended")
    installed.wait_until_ready()
    (name,) = installed.nodes()
    assert int(installed.allocatable(name)[VGPU]) >= SHOWN
    new_pods_get_shares(place)


def _restarts(installed: Installation) -> int:
    """Count how often containers of plugins were started again."""
    states = (one for pod in installed.pods("plugin") for one in pod["status"].get("containerStatuses", []))
    return sum(one["restartCount"] for one in states)
