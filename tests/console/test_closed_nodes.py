"""Nodes to which no new pod comes, as cordoned ones: their GPUs are no room, and what is wrong with them is said."""

from collections.abc import Callable
from typing import Any

import pytest
from click.testing import Result

from console.doctor.report import AFTER, findings
from console.explain.remedies import remedies
from console.objects import Node
from console.seen_nodes import seen_nodes
from policies.node_state import NodeState
from tests.console.explained import OURS, explain
from tests.console.explained import known as explained
from tests.console.installations import installation, parsed, pods, seen
from tests.console.objects import closed, cluster, gpu, node, pending, state, taint, tenant
from tests.console.stand_in import Object, StandIn

Asked = Callable[..., Result]
LATE = "1 node(s) had untolerated taint"


def half_full(*held: int) -> NodeState:
    return state(*(gpu(tenant(f"p{index}", parts), index=index) for index, parts in enumerate(held)), on="gpu-a")


def beside(other: Object) -> StandIn:
    """A node with 0.4 free of each of its GPUs, beside another one with an empty GPU."""
    on = cluster(half_full(6, 6), state(gpu(), on="gpu-b"))
    on.lists["/api/v1/nodes"][1] = other
    return on


@pytest.mark.parametrize("why", ["cordoned", "not Ready", "disk-pressure"])
def test_what_is_free_of_a_closed_node_fits_nothing_and_its_title_says_why(
    asked: Asked, shown: Callable[..., Any], why: str
) -> None:
    text = asked(beside(closed(why)), "top", "--once").stdout
    assert "2 nodes, 3 GPUs, largest share that fits: 0.4 " in text, text
    assert f"── gpu-b  driver 580.65  {why}\n" in text, text
    assert [one["closed"] for one in shown(beside(closed(why)), "top")["nodes"]] == [[], [why]]


@pytest.mark.parametrize(
    "taints",
    [
        [taint("nvidia.com/gpu")],  # which policies have pods tolerate
        [taint("node.kubernetes.io/gpu")],  # of an administrator, whatever the prefix
        [taint("node.kubernetes.io/memory-pressure")],  # which pods tolerate that ask for memory
        [taint("node.kubernetes.io/out-of-service", "PreferNoSchedule")],
    ],
)
def test_a_node_to_which_pods_may_come_has_room(asked: Asked, taints: list[Object]) -> None:
    text = asked(beside({**node("gpu-b"), "spec": {"taints": taints}}), "top", "--once").stdout
    assert "largest share that fits: 1 " in text, text


def test_where_all_nodes_are_closed_nothing_fits(asked: Asked) -> None:
    text = asked(beside(closed("cordoned")), "top", "--once", "--node", "gpu-b").stdout
    assert "1 node, 1 GPU, largest share that fits: 0 " in text, text


def test_a_dead_node_that_says_nothing_leaves_no_doubt_about_what_fits(asked: Asked) -> None:
    on = beside(closed("not Ready"))
    del on.states["gpu-share-plugin-gpu-b:9407"]
    text = asked(on, "top", "--once").stdout
    assert "2 nodes, at least 2 GPUs, largest share that fits: 0.4 " in text, text


def doctor(check: str, waits: str, other: Object, *held: int) -> Any:
    states = {"gpu-a": half_full(*held), "gpu-b": state(gpu(), on="gpu-b")}
    nodes = seen_nodes([parsed(node("gpu-a"), Node), parsed(other, Node)], states)
    on = installation(seen(nodes=nodes, **pods(*([pending("late", waits, "")] if waits else []))))
    (found,) = (one for one in findings(on, AFTER) if one.check == check)
    return found


@pytest.mark.parametrize(
    ("held", "told"),
    [
        (
            (6, 6),
            "smallest that waits is 0.5: no one GPU has room for it but on gpu-b (cordoned), to which no new pod comes",
        ),
        (
            (9, 9),
            "the smallest that waits is 0.5, and has room only on gpu-b (cordoned), to which no new pod comes",
        ),
    ],
)
def test_doctor_says_of_what_waits_that_only_a_closed_node_has_room(held: tuple[int, ...], told: str) -> None:
    found = doctor("shares-fit", "0.5", closed("cordoned"), *held)
    assert (found.status, [told in one for one in found.found]) == ("warning", [True])
    assert "kubectl uncordon" in found.hint


def test_doctor_counts_the_room_of_nodes_that_take_pods_as_before() -> None:
    assert doctor("shares-fit", "0.5", node("gpu-b"), 6, 6).status == "ok"
    assert doctor("shares-fit", "0.4", closed("cordoned"), 6, 6).status == "ok"


def test_for_doctor_a_node_that_is_not_ready_is_wrong_and_one_that_somebody_cordoned_is_not() -> None:
    found = doctor("nodes-ready", "", closed("not Ready"), 6, 6)
    told = "gpu-b is not Ready: NodeStatusUnknown: it stopped; no new pod comes to it"
    assert (found.status, found.found) == ("failure", (told,))
    assert doctor("nodes-ready", "", closed("cordoned"), 6, 6).status == "ok"


@pytest.mark.parametrize(
    ("said", "advice"),
    [
        ("1 node(s) were unschedulable.", ["kubectl uncordon"]),
        (f"{LATE} {{ToBeDeletedByClusterAutoscaler: 1764342000}}.", ["an autoscaler removes a node"]),
        (f"{LATE} {{karpenter.sh/disrupted: }}.", ["an autoscaler removes a node"]),
        (f"{LATE} {{karpenter.sh/disrupted-by-us: }}.", ["placement.tolerations"]),
        (f"{LATE} {{node.kubernetes.io/unschedulable: }}.", ["kubectl uncordon"]),
        (f"{LATE} {{node.kubernetes.io/unreachable: }}.", ["look at the node and its kubelet"]),
        (f"{LATE} {{node.kubernetes.io/not-ready: }}.", ["look at the node and its kubelet"]),
        (f"{LATE} {{node.kubernetes.io/disk-pressure: }}.", ["kubectl describe node"]),
        (f"{LATE} {{node.cloudprovider.kubernetes.io/uninitialized: true}}.", ["kubectl describe node"]),
        (f"{LATE} {{node.kubernetes.io/gpu: }}.", ["placement.tolerations"]),
        (
            f"{LATE} {{a: b}}, {LATE} {{node.kubernetes.io/unreachable: }}.",
            ["placement.tolerations", "look at the node and its kubelet"],
        ),
    ],
)
def test_no_toleration_is_advised_for_what_kubernetes_itself_says_of_a_node(said: str, advice: list[str]) -> None:
    told = [one.what for one in remedies([said, said])]
    assert [words in what for words, what in zip(advice, told, strict=True)] == [True] * len(advice), told


def waiting_beside(other: Object, said: str) -> StandIn:
    on = explained(pending("late", "0.9", said))
    on.lists["/api/v1/nodes"].append(other)
    return on


def test_where_a_scheduler_names_no_taint_the_nodes_say_it(asked: Asked) -> None:
    said = "0/2 nodes are available: 2 node(s) had untolerated taint(s)."
    text = explain(asked, waiting_beside(closed("not Ready"), said), "late")
    assert "what to do: a node is not Ready" in text, text
    assert "what to do: a node is not Ready" not in explain(asked, waiting_beside(node("gpu-b"), said), "late")


def test_explain_says_once_what_keeps_a_pod_off_a_closed_node(asked: Asked) -> None:
    for why, told in (
        ("cordoned", "it is cordoned"),
        ("not Ready", "it is not Ready"),
        ("disk-pressure", "Kubernetes keeps pods off it: disk-pressure"),
        ("memory-pressure", "Kubernetes keeps pods off it: memory-pressure"),
    ):
        text = explain(asked, waiting_beside(closed(why), "no"), "late")
        assert f"    gpu-b: {told}; it has no GPU to share" in text, text


def test_what_a_pod_tolerates_does_not_keep_it_off(asked: Asked) -> None:
    on = waiting_beside(closed("memory-pressure"), "no")
    key = "node.kubernetes.io/memory-pressure"
    on.lists[f"{OURS}/pods"][0]["spec"]["tolerations"] = [{"key": key, "operator": "Exists"}]
    assert "    gpu-b: it has no GPU to share" in explain(asked, on, "late")


def test_a_node_that_an_autoscaler_removes_has_no_room(asked: Asked) -> None:
    leaving = {**node("gpu-b"), "spec": {"taints": [taint("ToBeDeletedByClusterAutoscaler")]}}
    text = asked(beside(leaving), "top", "--once").stdout
    assert "largest share that fits: 0.4 " in text, text
    assert "── gpu-b  driver 580.65  removed by an autoscaler\n" in text, text
    found = doctor("shares-fit", "0.5", leaving, 6, 6)
    assert (found.status, "kubectl uncordon" in found.hint) == ("warning", False)
    said = "0/2 nodes are available: 2 node(s) had untolerated taint(s)."
    text = explain(asked, waiting_beside(leaving, said), "late")
    assert "    gpu-b: it is being removed by an autoscaler" in text, text
    assert "what to do: an autoscaler removes a node" in text, text
