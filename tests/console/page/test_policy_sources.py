"""The page shows the policies that the webhook reads, from whatever ConfigMaps, and previews by them."""

from collections.abc import Callable
from pathlib import Path

from console.kubeconfig import connect
from console.page.desk import Desk
from tests.console.objects import part, read_by
from tests.console.page.clusters import GRANTED, lively
from tests.console.page.conftest import Visited
from tests.console.page.visitor import words
from tests.console.stand_in import StandIn, status_of
from webhook.preview.pasted import explained

_OURS = "/api/v1/namespaces/gpu-share"


def with_third() -> StandIn:
    """A cluster whose webhook reads a third ConfigMap, which disables shares in team-vision."""
    known = lively()
    webhook = part("gpu-a", "webhook")
    webhook["spec"]["volumes"] = [read_by("gpu-share-policies", "gpu-share-cluster", "team-policies")]
    known.lists[f"{_OURS}/pods"].append(webhook)
    files = {"team-vision.yaml": "# by another team\nenabled: false\n"}
    known.lists[f"{_OURS}/configmaps"].append({"metadata": {"name": "team-policies"}, "data": files})
    return known


def test_all_config_maps_of_the_webhook_are_shown_and_judge_a_preview(visited: Visited) -> None:
    visitor = visited(with_third())
    assert "enabled false team-vision.yaml:2" in words(visitor.text("/policies", "?namespace=team-vision"))
    text = words(visitor.post("/preview", {"pod": GRANTED}).data.decode())
    assert "ConfigMap gpu-share/gpu-share-policies, gpu-share-cluster and team-policies of here" in text
    assert "denied, SharingDisabled" in text


def test_nothing_is_shown_where_nobody_sees_which_they_are(visited: Visited) -> None:
    known = with_third()
    known.raw[f"{_OURS}/pods"] = status_of(403, 'pods is forbidden: User "viewer" cannot list resource "pods"')
    visitor = visited(known)
    right = "the right to list pods in namespace gpu-share is missing"
    assert right in words(visitor.text("/policies", "?namespace=team-vision"))
    assert right in words(visitor.post("/preview", {"pod": GRANTED}).data.decode())


def test_before_the_first_look_the_pods_of_gpu_share_alone_are_asked(served: Callable[[StandIn], Path]) -> None:
    known = with_third()
    desk = Desk(connect(kubeconfig=served(known)), namespace="", preview=explained)  # whose watch never starts
    assert any("SharingDisabled" in line for line in desk.previewed(GRANTED, "").lines)
    assert known.asked == [f"{_OURS}/pods", f"{_OURS}/configmaps"]
