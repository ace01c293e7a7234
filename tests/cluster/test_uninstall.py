"""What is left when the commands of docs/operations.md have taken gpu-share away."""

from tests.cluster.cluster import Cluster
from tests.cluster.installation import Installation, objects_of_ours
from tests.cluster.pages import command
from tests.cluster.pods import Place, container, pod
from tests.cluster.test_node_restarts import DEPLOYMENT

KINDS = (
    "namespaces",
    "clusterroles",
    "clusterrolebindings",
    "mutatingwebhookconfigurations",
    "validatingadmissionpolicies",
    "validatingadmissionpolicybindings",
)


def test_the_drain_of_the_page_takes_pods_without_a_controller_too(installed: Installation, place: Place) -> None:
    place.started(pod("0.2"))
    installed.run(command("operations.md", "Uninstall", "kubectl drain") + " --dry-run=server")


def test_uninstalling_leaves_nothing_that_hurts(installed: Installation, cluster: Cluster) -> None:
    place = Place.make(cluster, "leftover")
    place.apply(DEPLOYMENT)
    place.one_running("app=model")
    installed.uninstall()
    assert objects_of_ours(cluster, KINDS) == []
    assert "gpu-share" not in cluster.run("kubectl get namespaces -o name")
    for one in cluster.api.get("/api/v1/nodes")["items"]:
        assert "gpu-share.dev/node" not in one["metadata"]["labels"]
        assert not one["spec"].get("unschedulable")
    place.started(pod(None, name="other"))
    place.started(pod("0.2", name="asks"))
    assert place.report("asks").environment["NVIDIA_VISIBLE_DEVICES"] == "all"
    limited = pod(None, container(resources={"limits": {"gpu-share.dev/vgpu": "2"}}), name="waits")
    assert place.create(limited).ok
    place.remove()
