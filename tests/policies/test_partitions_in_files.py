"""Partitions in policy files: what is a mistake there, and which of them a namespace has."""

import msgspec
import pytest

from policies.errors import PolicyError
from policies.grant import Denied
from tests.policies.partitioned import CLUSTER, asked, by
from tests.policies.pods import decided, pod, policies


@pytest.mark.parametrize(
    ("default", "cluster", "told"),
    [
        (
            "strategy: partition\npartition: x",
            "partitions: {x: [" + "{share: '1', resource: amd.com/gpu}, " * 65 + "]}",
            "_cluster.yaml:1: partitions.x: expected a list with 1 to 64 items, got a list: take out 1 of its 65",
        ),
        ("strategy: partition", CLUSTER, "_default.yaml:1: strategy: partition needs the name of partitions"),
        (
            "strategy: partition\npartition: x",
            CLUSTER,
            '_default.yaml:2: partition: _cluster.yaml has no partitions of the name "x"',
        ),
        ("strategy: partition\npartition: x", "", "there are none"),
        ("", "partitions: {a: []}", "_cluster.yaml:1: partitions.a: expected a list with 1 to 64 items"),
        ("", "partitions: {A: [{share: '1', resource: a.b/c}]}", "lower-case letters"),
        ("", "partitions: {a: [{share: 1, resource: a.b/c}]}", "expected a share in quotes"),
        ("", "partitions: {a: [{share: '2', resource: a.b/c}]}", "above one GPU"),
        ("", "partitions: {a: [{share: '1', resource: c}]}", "the extended resource of a maker's plugin"),
        (
            "",
            "partitions: {a: [{share: '1', resource: x.kubernetes.io/c}]}",
            "the extended resource of a maker's plugin",
        ),
        ("", "partitions: {a: [{share: '1', resource: gpu-share.dev/vgpu}]}", "a resource of gpu-share itself"),
        ("", "partitions: {a: [{share: '1', resource: gpu-share.dev/share-100m}]}", "a resource of gpu-share itself"),
        (
            "",
            "partitions: {a: [{share: '1', resource: a.b/c}, {share: '1', resource: a.b/d}]}",
            "has the share 1 twice",
        ),
        ("", "partitions: {a: [{share: '1', resource: a.b/c}, {share: '0.5', resource: a.b/c}]}", "a.b/c twice"),
        ("", "partitions: {a: [{share: '1'}]}", "partitions.a[0].resource: is missing"),
    ],
)
def test_a_mistake_in_the_files_is_a_problem_with_its_place(default: str, cluster: str, told: str) -> None:
    with pytest.raises(PolicyError) as raised:
        policies(default, cluster)
    assert told in str(raised.value.problems[0]), raised.value.problems


def test_a_missing_partition_is_told_of_where_nobody_knows_the_cluster_file_and_an_unknown_one_is_not() -> None:
    broken = "partitions: {a: []}"
    with pytest.raises(PolicyError) as raised:
        policies("strategy: partition", broken, named="partition: x")
    told = [str(one) for one in raised.value.problems if "/_cluster.yaml:" not in str(one)]
    wanted = "_default.yaml:1: strategy: partition needs the name of partitions in _cluster.yaml: add partition"
    assert [one.rpartition("/")[2] for one in told] == [wanted]


def test_a_namespace_picks_other_partitions_than_the_default() -> None:
    made = policies("strategy: partition\npartition: h100", CLUSTER, amd="partition: mi300x")
    assert asked(decided(pod("0.1"), made, "amd")) == {"main": ("amd.com/cpx_nps4", 1)}


def test_partitions_that_have_gone_from_the_cluster_file_deny_and_grant_nothing() -> None:
    made = by()
    without = msgspec.structs.replace(made, cluster=msgspec.structs.replace(made.cluster, partitions={}))
    decision = decided(pod("0.1"), without)
    assert isinstance(decision, Denied)
    assert decision.deny.code == "SharingDisabled"
