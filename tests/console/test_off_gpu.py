"""Pods that run with a share, of which nobody sees on which GPU they are: `explain`, `top` and `doctor` say so."""

import json
from typing import Any

import pytest

from console.doctor.report import AFTER, findings
from console.look import seen_pod
from console.objects import Node, Pod
from console.off_gpu import OffGpus
from console.seen import Unseen
from console.seen_nodes import seen_nodes
from policies.node_state import Ages, NodeState
from tests.console.explained import Asked, explain, known, only, owned
from tests.console.installations import installation, nodes, parsed, pods, seen
from tests.console.objects import ago, cluster, gpu, node, pod, state, tenant
from tests.console.stand_in import Object

_UNNAMED = "its node gpu-a names it on no GPU: nobody sees which one it has, or what it takes"
_WITHOUT = "no part of gpu-share runs on its node gpu-b: nobody sees which GPU it has, or what it takes"
_GONE = "its node gpu-b is gone: there is no such node any more, and nobody sees whether it still runs"
_OTHER = gpu(tenant("other", 2))


def container(state: str = "running", **since: Any) -> list[Object]:
    return [{"name": "main", "ready": True, "state": {state: since or {"startedAt": ago(minutes=5)}}}]


def said(one: Object, *states: NodeState, unlabelled: str = "", **more: Any) -> str:
    """What is said of a pod in a cluster whose nodes say *states*; "" if nothing is."""
    known_states = {one.node: one for one in states}
    listed = [*map(node, known_states), *([node(unlabelled, labelled=False)] if unlabelled else [])]
    found = seen(nodes=seen_nodes([parsed(one, Node) for one in listed], known_states), **more)
    off = OffGpus(found).of(seen_pod(parsed(one, Pod)))
    return off.why if off else ""


def granted(one: Object, **grant: Any) -> Object:
    annotations = one["metadata"]["annotations"]
    annotations["gpu-share.dev/grant"] = json.dumps({**json.loads(annotations["gpu-share.dev/grant"]), **grant})
    return one


@pytest.mark.parametrize(
    "one",
    [
        pod("lost", containerStatuses=container()),
        granted(pod("lost", containerStatuses=container()), strategy="whole", resource="gpu-share.dev/gpu"),
        granted(pod("lost", containerStatuses=container()), allocation="dra", resource=""),
    ],
    ids=["vgpus", "whole", "dra"],
)
def test_a_pod_that_its_node_does_not_name_is_told(one: Object) -> None:
    assert said(one, state(_OTHER)) == _UNNAMED


@pytest.mark.parametrize("listed", [("gpu-a", "gpu-b"), ()], ids=["known", "nodes not known"])
def test_a_pod_on_a_node_without_gpu_share_is_told(listed: tuple[str, ...]) -> None:
    assert said(pod("lost", on="gpu-b"), state(_OTHER), unlabelled="gpu-b", listed=frozenset(listed)) == _WITHOUT


def test_of_a_pod_whose_node_is_gone_that_is_said_and_not_to_label_the_node() -> None:
    assert said(pod("lost", on="gpu-b"), state(_OTHER), listed=frozenset({"gpu-a"})) == _GONE


@pytest.mark.parametrize(
    "one",
    [
        pod("lost", containerStatuses=container("terminated", exitCode=0)),
        pod("lost", containerStatuses=container("waiting", reason="CrashLoopBackOff")),
        pod("lost", phase="Pending", containerStatuses=container("waiting", reason="ContainerCreating")),
        pod("lost", phase="Succeeded"),
        pod("lost", phase="Failed"),
        granted(pod("lost", containerStatuses=container()), strategy="partition", resource=""),
        granted(pod("lost", containerStatuses=container()), containers={"init": {"share": "0.2", "vgpus": 2}}),
        pod("other", containerStatuses=container()),
    ],
    ids=["ended", "waits", "pending", "succeeded", "failed", "partition", "init container", "named"],
)
@pytest.mark.parametrize("on", ["gpu-a", "gpu-b"])
def test_a_pod_whose_gpu_no_node_needs_to_name_is_not_told(one: Object, on: str) -> None:
    moved = {**one, "spec": {**one["spec"], "nodeName": on}}
    assert said(moved, state(_OTHER), state(_OTHER, on="gpu-b")) == ""
    if one["metadata"]["name"] == "lost":
        assert said(moved, state(_OTHER, on="gpu-c")) == ""


def test_a_pod_that_has_just_begun_is_not_told_since_its_node_may_not_have_heard() -> None:
    for seconds, why in ((20, ""), (90, _UNNAMED)):
        begun = pod("lost", containerStatuses=container(startedAt=ago(seconds=seconds)))
        assert said(begun, state(_OTHER)) == why


@pytest.mark.parametrize(
    "node_says",
    [
        state(_OTHER, tenants_unknown="the kubelet does not answer"),
        state(_OTHER, ages=Ages(health=25.0, tenants=25.0)),
        state(_OTHER, waiting="no driver"),
        state(_OTHER, gpu(index=1, granted=None)),
    ],
    ids=["tenants unknown", "silent", "waiting", "a GPU of which nobody has asked"],
)
def test_of_a_node_that_does_not_say_who_is_on_its_gpus_nothing_is_told(node_says: NodeState) -> None:
    assert said(pod("lost"), node_says) == ""


@pytest.mark.parametrize("what", ["nodes", "the pods of gpu-share, and so what nodes say of themselves"])
def test_where_nodes_or_the_parts_cannot_be_listed_no_node_is_said_to_have_none(what: str) -> None:
    assert said(pod("lost", on="gpu-b"), state(_OTHER), unseen=(Unseen(what=what, why="forbidden"),)) == ""


def test_explain_and_top_say_it_with_what_to_do(asked: Asked) -> None:
    for on, why in (("gpu-a", _UNNAMED), ("gpu-b", _WITHOUT), ("gpu-c", _GONE.replace("gpu-b", "gpu-c"))):
        explained, made = known(pod("lost", on=on)), cluster(state(_OTHER), pods=(pod("lost", on=on),))
        for one in (explained, made):
            one.lists["/api/v1/nodes"] += [node("gpu-b", labelled=False)]
        text = explain(asked, explained, "lost")
        assert f"\n  GPU\n    {why}\n    what to do: " in text
        assert f"! team-vision/lost is Running: {why}\n" in asked(made, "top", "--once").stdout


def test_explain_says_it_of_one_of_many(asked: Asked) -> None:
    names = [f"resnet-5d-{n:02}" for n in range(24)]
    gpus = (gpu(*(tenant(one, 1) for one in names[at : at + 8]), index=at // 8) for at in (0, 8, 16))
    on = known(*(owned(pod(one), "ReplicaSet", "resnet-5d") for one in [*names, "lost"]), state=state(*gpus))
    only(on, "apps/v1/namespaces/team-vision/deployments/resnet")
    text = explain(asked, on, "deploy/resnet")
    assert text.index("Pod team-vision/lost: Running") < text.index(_UNNAMED) < text.index("and 23 more like it")


def test_doctor_does_not_say_of_such_a_pod_that_it_keeps_to_its_share() -> None:
    on = installation(seen(**nodes(state(gpu(), on="gpu-0")), **pods(pod("lost", on="gpu-b"))))
    found = {one.check: one for one in findings(on, AFTER)}
    assert found["pods-run"].found == (f"team-vision/lost is Running: {_WITHOUT}",)
    assert (found["pods-run"].status, found["within-share"].status) == ("warning", "unknown")
    assert found["within-share"].found == ("nobody sees on which GPU team-vision/lost is",)
