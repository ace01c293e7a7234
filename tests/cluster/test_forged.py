"""What a user writes by every way that leads to a pod: mirror pods, sub-resources, more than any pod has."""

from collections.abc import Iterator

import pytest

from policies.size import MOST_OTHERS
from tests.bypass.attempt import forged
from tests.cluster.cluster import Cluster, eventually
from tests.cluster.installation import SIMULATED, Installation
from tests.cluster.pods import Place, container, pod

CHANGES = "ValidatingAdmissionPolicy 'gpu-share-changes'"
MIRROR = {"kubernetes.io/config.mirror": "0123", "kubernetes.io/config.source": "file"}
CDI = {"cdi.k8s.io/gpu": "nvidia.com/gpu=all"}


def test_policies_have_no_type_warnings(place: Place, cluster: Cluster) -> None:
    path = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
    ours = [one for one in cluster.api.get(path)["items"] if one["metadata"]["name"].startswith("gpu-share")]
    assert len(ours) >= 2
    for one in ours:
        assert _checked(cluster, f"{path}/{one['metadata']['name']}") == {}, (place.name, one)


def _checked(cluster: Cluster, path: str) -> object:
    status = eventually(lambda: cluster.api.get(path).get("status"), what="type checking")
    return status["typeChecking"]


def test_a_mirror_pod_that_no_kubelet_made_gets_no_share_and_starts_nothing(place: Place, cluster: Cluster) -> None:
    (node,) = [one["metadata"]["name"] for one in cluster.api.get("/api/v1/nodes")["items"]]
    asking = place.create(pod("0.2", annotations=MIRROR, nodeName=node))
    assert "ValidatingAdmissionPolicy 'gpu-share'" in asking.message
    plain = place.create(pod(None, annotations=MIRROR, nodeName=node, name="mirror"))
    assert plain.ok, plain.message
    # Its kubelet knows no static pod of that name, so it deletes the mirror without having started it.
    gone = eventually(lambda: place.cluster.api.ask("GET", f"{place.path}/mirror").status == 404, what="it is gone")
    assert gone
    assert place.events("Started", "Pod") == []


@pytest.fixture(scope="module")
def running(first: Installation) -> Iterator[Place]:
    """Give a place with a pod with a share, `model`, and one without, `plain`. Nothing that is tried changes them."""
    first.use(SIMULATED)
    place = Place.make(first.cluster)
    place.started(pod("0.2"))
    place.started(pod(None, name="plain"))
    yield place
    place.remove()


@pytest.mark.parametrize("resource", ["", "/status", "/resize", "/ephemeralcontainers"])
@pytest.mark.parametrize(
    "metadata",
    [
        {"annotations": {"gpu-share.dev/grant": "{}"}},
        {"labels": {"gpu-share.dev/shared": "false"}},
        {"annotations": CDI},
        {"annotations": {"gpu-share": "0.9"}},
    ],
)
def test_no_sub_resource_changes_grant_label_or_devices(
    running: Place, resource: str, metadata: dict[str, dict[str, str]]
) -> None:
    before = running.get("model")["metadata"]
    answer = running.cluster.api.ask("PATCH", f"{running.path}/model{resource}", {"metadata": metadata})
    # Two of the sub-resources leave metadata as it is, whatever is sent.
    assert CHANGES in answer.message or resource in ("/resize", "/ephemeralcontainers")
    after = running.get("model")["metadata"]
    for field in ("annotations", "labels"):
        assert after[field] == before[field]


@pytest.mark.parametrize("resource", ["", "/status"])
def test_no_sub_resource_gives_a_share_to_a_pod_that_has_none(running: Place, resource: str) -> None:
    for metadata in ({"annotations": {"gpu-share.dev/grant": "{}"}}, {"labels": {"gpu-share.dev/shared": "true"}}):
        answer = running.cluster.api.ask("PATCH", f"{running.path}/plain{resource}", {"metadata": metadata})
        assert CHANGES in answer.message


def test_resources_of_the_pod_as_a_whole_are_never_gpus(place: Place) -> None:
    resources = {"limits": {"gpu-share.dev/vgpu": "5", "cpu": "1"}}
    answer = place.create(pod("0.2", container(), resources=resources), dry_run=True)
    assert answer.status == 422
    assert "gpu-share.dev/vgpu" in answer.message


def test_the_largest_pod_that_the_webhook_takes_costs_the_policies_no_more_than_they_may(place: Place) -> None:
    many = {f"a{number}.example.com/{'x' * 60}": "y" for number in range(MOST_OTHERS - 8)}
    granted = place.create(pod("0.2", annotations=many), dry_run=True)
    assert granted.ok, granted.message
    too_many = {f"{number:05x}": "" for number in range(40_000)}
    on = forged()
    on["metadata"]["annotations"] |= too_many | CDI
    denied = place.create(on, dry_run=True)
    assert not denied.ok
