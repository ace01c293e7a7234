"""What users notice while webhooks end, are replaced, or are not there."""

import time
from collections.abc import Iterator

import pytest

from tests.cluster.cluster import Cluster, eventually
from tests.cluster.installation import Installation
from tests.cluster.load import load
from tests.cluster.node import Node
from tests.cluster.pods import Place, pod

SCALE = "kubectl -n gpu-share scale deployment/gpu-share-webhook --replicas="
STATUS = "kubectl -n gpu-share rollout status deployment/gpu-share-webhook --timeout=90s"


@pytest.fixture
def no_webhook(cluster: Cluster) -> Iterator[None]:
    cluster.run(f"{SCALE}0")
    slices = "/apis/discovery.k8s.io/v1/namespaces/gpu-share/endpointslices"
    eventually(
        lambda: (
            not any(
                one["conditions"].get("serving")
                for each in cluster.api.get(slices)["items"]
                for one in each["endpoints"] or ()
            )
        ),
        what="no webhook serves",
    )
    yield
    cluster.run(f"{SCALE}2")
    cluster.run(STATUS)


@pytest.mark.usefixtures("no_webhook")
def test_without_a_webhook_pods_with_a_share_are_denied_within_a_second_and_others_go_on(place: Place) -> None:
    place.create(pod("0.2"), dry_run=True)  # which may still go to the address of a pod that has just ended
    begin = time.monotonic()
    denied = place.create(pod("0.2"))
    assert time.monotonic() - begin < 1
    assert (denied.status, denied.ok) == (500, False)
    assert 'failed calling webhook "pods.gpu-share.dev"' in denied.message
    place.started(pod(None, name="other"))


def test_no_creation_fails_while_webhooks_are_replaced(installed: Installation, place: Place) -> None:
    with load(place) as creations:
        installed.run("kubectl -n gpu-share rollout restart deployment/gpu-share-webhook")
        installed.run(STATUS)
        creations.go_on(100)
    assert creations.failures == []


def test_no_creation_fails_when_a_webhook_is_killed(installed: Installation, place: Place, node: Node) -> None:
    def restarts() -> int:
        return sum(one["status"]["containerStatuses"][0]["restartCount"] for one in installed.pods("webhook"))

    before = restarts()
    with load(place) as creations:
        creations.go_on(20)
        node.kill("gpu-share webhook")
        eventually(lambda: restarts() > before, what="the webhook was started again")
        creations.go_on(100)
    installed.run(STATUS)
    assert creations.failures == []
