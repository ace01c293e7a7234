"""Pods that are deleted by force, with a container that goes on: its vGPUs go to nobody until it has ended."""

import pytest

from tests.cluster.cluster import eventually
from tests.cluster.dra.shares import STUBBORN, most_until_running
from tests.cluster.installation import VGPU, Installation
from tests.cluster.node import Node
from tests.cluster.pods import Place, pod, stubborn
from tests.cluster.view import tenants_in


def allocatable(installed: Installation) -> int:
    (node,) = installed.cluster.api.get("/api/v1/nodes")["items"]
    return int(node["status"]["allocatable"].get(VGPU, 0))


@pytest.mark.kubelet_retry
def test_a_pod_that_was_being_deleted_before_keeps_its_vgpus_until_its_container_ends(
    installed: Installation, place: Place, node: Node
) -> None:
    place.started(pod("0.9", STUBBORN, name="b"))
    place.started(pod("0.9", stubborn("0.3"), name="a", terminationGracePeriodSeconds=600))
    eventually(lambda: tenants_in(place.name) == {"a", "b"}, what="the kubelet has named both")
    before = allocatable(installed)
    place.delete_twice("a")
    try:
        eventually(lambda: allocatable(installed) == before - 9, seconds=30, what="the scheduler is told of it")
        assert place.create(pod("0.9", STUBBORN, name="next")).ok
        eventually(lambda: place.events("FailedScheduling", "Pod"), what="the next one waits")
        assert tenants_in(place.name) == {"a", "b"}
    finally:
        node.kill("sleep 0[.]3")
    assert most_until_running(["next"], place, node) == 0.9
    eventually(lambda: allocatable(installed) == before, seconds=30, what="all of it is there again")
