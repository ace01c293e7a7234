"""`gpu-share explain` of pods that wait for partitions: of nodes that their makers' plugins know."""

import json

import pytest

from console.doctor.report import AFTER, findings
from console.objects import Node
from console.seen_nodes import other_nodes
from tests.console.explained import OURS, Asked, explain, known, only
from tests.console.installations import installation, parsed, policies, seen
from tests.console.objects import node, pending
from tests.console.stand_in import Object, StandIn

SLICED, LARGER = "nvidia.com/mig-1g.10gb", "nvidia.com/mig-2g.20gb"
CORDONED = {"unschedulable": True}
_MAKER = "the plugin of the partitions' maker, or by DRA at its ResourceSlices"
_WHO = "in all, and who has them is not seen here: the scheduler's own words are above, or in its log"


def waits(*resources: str, count: int = 1) -> Object:
    """A pod that waits, with a container for each resource."""
    made = pending("late", "0.1", "0/1 nodes are available.")
    given = {f"c{index}": {"resource": one, "count": count, "share": "0.1"} for index, one in enumerate(resources)}
    made["spec"]["containers"] = [{"name": name} for name in given]
    grant = {"policy": "team-vision", "strategy": "partition", "containers": given}
    made["metadata"]["annotations"]["gpu-share.dev/grant"] = json.dumps(grant)
    return made


def among(one: Object, *others: Object) -> StandIn:
    """The node gpu-a, which shares GPUs, and *others*."""
    on = known(one)
    on.lists["/api/v1/nodes"] += others
    on.lists[f"{OURS}/pods"] = [one]
    return on


def makers(*, labelled: bool = False, **allocatable: str) -> Object:
    """The node mig-1, whose plugin advertises so many of each size."""
    names = {"small": SLICED, "large": LARGER}
    written = {names[size]: count for size, count in allocatable.items()}
    return node("mig-1", labelled=labelled, allocatable={"cpu": "8", **written})


@pytest.mark.parametrize(
    ("one", "other", "told"),
    [
        (waits(SLICED), makers(small="7"), f"mig-1: it advertises 7 {SLICED} {_WHO}"),
        (waits(SLICED), makers(labelled=True, small="7"), f"mig-1: it advertises 7 {SLICED} {_WHO}"),
        (waits(SLICED), makers(small="0"), f"mig-1: it advertises no {SLICED}"),
        (waits(SLICED, LARGER), makers(small="7"), f"mig-1: it advertises no {LARGER}"),
        (
            waits(SLICED, SLICED, count=2),
            makers(small="3"),
            f"mig-1: it advertises 3 {SLICED} in all, and the pod asks for 4",
        ),
        (
            waits(SLICED),
            {**makers(small="7"), "spec": CORDONED},
            "mig-1: it is cordoned",
        ),
        (
            waits(SLICED),
            makers(large="7"),
            f"no node advertises {SLICED}: look at {_MAKER}",
        ),
    ],
    ids=["has", "labelled", "none", "not all", "too few", "cordoned", "no node"],
)
def test_of_partitions_the_nodes_are_judged_that_advertise_them(
    asked: Asked, one: Object, other: Object, told: str
) -> None:
    text = explain(asked, among(one, other), "late")
    assert f"\n    {told}\n" in text
    assert "gpu-a" not in text


def test_without_labelled_nodes_a_pod_that_waits_for_partitions_is_not_told_that_no_node_shares_gpus(
    asked: Asked,
) -> None:
    on = among(waits(SLICED))
    on.lists["/api/v1/nodes"] = [makers(small="7"), node("cpu-only", labelled=False, allocatable={})]
    on.lists["/api/v1/namespaces/gpu-share/pods"], on.states = [], {}
    text = explain(asked, on, "late")
    assert f"\n    mig-1: it advertises 7 {SLICED}" in text
    assert "no node shares GPUs" not in text
    assert "cpu-only" not in text


PARTITIONED = "strategy: partition\npartition: h100\n"


@pytest.mark.parametrize(
    ("files", "status"),
    [
        ({"_default": PARTITIONED}, "not-applicable"),
        ({"_default": PARTITIONED, "off": "enabled: false\n"}, "not-applicable"),
        ({"_default": PARTITIONED, "team": "strategy: mps\n"}, "warning"),
        ({"team": PARTITIONED}, "warning"),
        ({}, "warning"),  # the table alone grants nothing
    ],
)
def test_doctor_wants_no_label_of_nodes_where_policies_grant_partitions_alone(
    files: dict[str, str], status: str
) -> None:
    unlabelled = parsed(node("mig-1", labelled=False, allocatable={SLICED: "7"}), Node)
    table = f"partitions:\n  h100: [{{share: '0.125', resource: {SLICED}}}, {{share: '1', resource: nvidia.com/gpu}}]\n"
    on = installation(seen(nodes=(), others=other_nodes([unlabelled], ())), **policies(table, **files))
    (found,) = (one for one in findings(on, AFTER) if one.check == "nodes-labelled")
    assert found.status == status


def test_a_quota_of_partitions_is_one_of_shares(asked: Asked) -> None:
    on = known()
    only(on, "apps/v1/namespaces/team-vision/deployments/resnet", spec={"replicas": 1})
    text = 'partitions:\n  h100: [{share: "0.125", resource: nvidia.com/mig-1g.10gb}]\n'
    on.lists["/api/v1/namespaces/gpu-share/configmaps"][1]["data"] = {"_cluster.yaml": text}
    amounts = {"requests.nvidia.com/mig-1g.10gb": "7", "requests.nvidia.com/mig-2g.20gb": "7"}
    on.lists[f"{OURS}/resourcequotas"] = [{"metadata": {"name": "gpus"}, "status": {"hard": amounts, "used": amounts}}]
    said = explain(asked, on, "deploy/resnet")
    assert "  Quotas\n    quota gpus: 7 of 7 requests.nvidia.com/mig-1g.10gb: it is used up\n" in said
    assert "mig-2g" not in said
