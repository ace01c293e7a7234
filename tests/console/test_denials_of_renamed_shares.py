"""Denials by others of pods that ask for a share by a name of their cluster, which no node may say."""

from collections.abc import Callable

import pytest

from console.api_server import ApiServer
from console.look import look
from console.seen import DENIED_PODS
from tests.console.objects import cluster, denial, gpu, state
from tests.console.stand_in import StandIn
from tests.console.test_denials_by_others import KYVERNO, REPLICA_SET, answer, template

Connected = Callable[[StandIn], ApiServer]
RENAMED = "resourceNames: {mps: k8s.amazonaws.com/vgpu}\n"


def denied(resource: str, cluster_file: str) -> StandIn:
    on = cluster(events=(denial(KYVERNO),))
    on.raw[REPLICA_SET] = answer({"template": template({"cpu": "1", resource: "2"})})
    on.lists["/api/v1/namespaces/gpu-share/configmaps"] = [
        {"metadata": {"name": "gpu-share-cluster"}, "data": {"_cluster.yaml": cluster_file}}
    ]
    return on


def test_it_is_told_before_there_is_any_node(connected: Connected) -> None:
    seen = look(connected(denied("k8s.amazonaws.com/vgpu", RENAMED)))
    assert (len(seen.denials), seen.unseen) == (1, ())


@pytest.mark.parametrize("resource", ["rdma/hca", "nvidia.com/gpu"])
def test_another_resource_is_none(connected: Connected, resource: str) -> None:
    seen = look(connected(denied(resource, RENAMED)))
    assert (seen.denials, seen.unseen) == ((), ())


@pytest.mark.parametrize(
    ("forbidden", "why"),
    [
        (
            {"configmaps"},
            "_cluster.yaml cannot be read, which takes the right to list configmaps in namespace gpu-share",
        ),
        (set(), "_cluster.yaml:1: resourceNames: expected a mapping, got 5"),
    ],
)
def test_where_nobody_sees_how_shares_are_called_that_is_told(
    connected: Connected, forbidden: set[str], why: str
) -> None:
    on = denied("k8s.amazonaws.com/vgpu", "resourceNames: 5\n")
    on.forbidden = forbidden
    (hidden,) = look(connected(on)).unseen
    assert hidden.what == DENIED_PODS
    assert f"a share: {why}" in hidden.why


@pytest.mark.parametrize("resource", ["nvidia.com/gpu", "attachable-volumes.kubernetes.io/ebs", "cpu"])
def test_of_what_is_certainly_no_share_nobody_needs_to_see_that(connected: Connected, resource: str) -> None:
    on = denied(resource, RENAMED)
    on.forbidden = {"configmaps"}
    seen = look(connected(on))
    assert (seen.denials, seen.unseen) == ((), ())


def test_a_node_that_says_the_name_is_enough(connected: Connected) -> None:
    on = cluster(state(gpu(resource="example.com/part"), on="gpu-a"), events=(denial(KYVERNO),))
    on.raw[REPLICA_SET] = answer({"template": template({"example.com/part": "2"})})
    on.forbidden = {"configmaps"}
    seen = look(connected(on))
    assert (len(seen.denials), seen.unseen) == (1, ())
