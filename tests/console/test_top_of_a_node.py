"""`gpu-share top --node`: by what it says of a node administrators go on with that node."""

from collections.abc import Callable
from typing import Any

import pytest
from click.testing import Result

from policies.node_state import Ages, NodeState, NotRegistered
from tests.console.objects import cluster, gpu, node, pod, state, tenant
from tests.console.stand_in import StandIn


def of_one_name() -> StandIn:
    """Two nodes on which a pod of one name has half a GPU each: the one on gpu-a was deleted by force."""
    halves = (state(gpu(tenant("web-0", 5)), on="gpu-a"), state(gpu(tenant("web-0", 5)), on="gpu-b"))
    return cluster(*halves, pods=(pod("web-0", "0.5", on="gpu-b"),))


@pytest.mark.parametrize(("on", "phase"), [("gpu-a", None), ("gpu-b", "Running")])
def test_a_tenant_is_shown_on_its_node_though_another_has_a_pod_of_its_name(
    shown: Callable[..., Any], on: str, phase: str | None
) -> None:
    (row,) = shown(of_one_name(), "top", "--node", on)["pods"]
    assert (row["pod"], row["node"], row["phase"], row["share"]) == ("web-0", on, phase, "0.5")
    assert len(shown(of_one_name(), "top")["pods"]) == 2


def test_what_is_left_of_an_earlier_pod_is_told(asked: Callable[..., Result]) -> None:
    said = asked(of_one_name(), "top", "--once").output
    assert "team-vision/web-0 on gpu-a: of an earlier pod of this name, which its node has still" in said


@pytest.mark.parametrize("output", [["--once"], ["-o", "json"]])
def test_a_node_that_is_not_there_is_a_failure(asked: Callable[..., Result], output: list[str]) -> None:
    known = of_one_name()
    known.forbidden = {"events"}
    result = asked(known, "top", "--node", "gpu-aa", *output)
    assert result.exit_code == 1
    assert "--node gpu-aa: no such node shares its GPUs" in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize("output", [["--once"], ["-o", "json"]])
@pytest.mark.parametrize(
    "of_node",
    [
        [],
        [state(gpu(), on="gpu-a", tenants_unknown="the kubelet did not list pod resources")],
        [state(gpu(), on="gpu-a", ages=Ages(health=95.0))],
    ],
)
def test_a_node_of_which_nobody_knows_who_holds_what_is_not_one_without_shares(
    asked: Callable[..., Result], of_node: list[NodeState], output: list[str]
) -> None:
    known = cluster(*of_node)
    known.lists["/api/v1/nodes"] = [node("gpu-a")]
    result = asked(known, "top", "--node", "gpu-a", *output)
    assert result.exit_code == 1
    assert "no pod with a share" not in result.output
    assert "nobody knows which pods have a share on gpu-a" in result.output or "json" in output


def test_what_an_earlier_pod_of_its_name_has_on_another_node_is_not_explained_as_its_own(
    asked: Callable[..., Result],
) -> None:
    known = of_one_name()
    known.lists["/api/v1/namespaces/team-vision/pods"] = known.lists["/api/v1/pods"]
    said = asked(known, "explain", "web-0", "-n", "team-vision").output
    assert ("of gpu-b)" in said, "of gpu-a)" in said) == (True, False)


@pytest.mark.parametrize("forbidden", [{"nodes"}, {"pods"}])
def test_a_node_of_which_it_cannot_be_seen_whether_it_shares_is_not_one_without_shares(
    asked: Callable[..., Result], forbidden: set[str]
) -> None:
    known = of_one_name()
    known.forbidden = forbidden
    result = asked(known, "top", "--node", "gpu-c", "--once")
    assert (result.exit_code, "no pod with a share" in result.output) == (1, False)
    assert "nobody knows whether it shares its GPUs" in result.stderr


def test_a_node_that_cannot_publish_its_slices_is_told_of_beside_its_gpus(
    asked: Callable[..., Result], shown: Callable[..., Any]
) -> None:
    known = cluster(state(gpu(allocation="dra"), on="gpu-a", slices_not_published="forbidden"))
    assert "! slices not published: forbidden" in asked(known, "top", "--once").stdout
    (row,) = shown(known, "top")["nodes"]
    assert (row["notes"], row["trouble"]) == (["slices not published: forbidden"], "")


def test_a_node_whose_kubelet_does_not_know_its_plugin_is_told_of_beside_its_gpus(
    asked: Callable[..., Result], shown: Callable[..., Any]
) -> None:
    unknown = NotRegistered(resource="gpu-share.dev/vgpu", why="it cannot dial")
    known = cluster(state(gpu(), on="gpu-a", not_registered=(unknown,)))
    said = "not registered: gpu-share.dev/vgpu: it cannot dial"
    assert f"! {said}" in asked(known, "top", "--once").stdout
    (row,) = shown(known, "top")["nodes"]
    assert (row["notes"], row["trouble"]) == ([said], "")


@pytest.mark.parametrize("output", [["--once"], ["-o", "json"]])
@pytest.mark.parametrize("granted", [5, None])
def test_a_node_whose_gpus_are_held_by_no_named_container_is_not_empty(
    asked: Callable[..., Result], granted: int | None, output: list[str]
) -> None:
    on = cluster(state(gpu(granted=granted, free=granted, largest_free=granted)))
    result = asked(on, "top", "--node", "gpu-a", *output)
    assert result.exit_code == 1
    assert "no pod with a share" not in result.output
    assert ("GPU 0: 0.5 is held, and by no container that is named" in result.output) is (granted is not None)


def test_thousandths_that_are_rounded_are_held_by_nobody(asked: Callable[..., Result]) -> None:
    held = gpu(tenant("a", 333), tenant("b", 333), parts=1000, vgpus_per_gpu=7, granted=670, free=330)
    assert asked(cluster(state(held)), "top", "--node", "gpu-a", "--once").exit_code == 0


def test_a_namespace_without_pods_is_not_called_a_node_without_any(asked: Callable[..., Result]) -> None:
    on = cluster(state(gpu(tenant("x", 5, namespace="other"))))
    assert "no pod with a share in namespace mine\n" in asked(on, "top", "--once", "-n", "mine").output


def test_what_processes_of_a_deleted_pod_use_is_told_of(
    asked: Callable[..., Result], shown: Callable[..., Any]
) -> None:
    on = cluster(state(gpu(tenant("old", 8), outlived=8)))
    said = "GPU 0: 0.8 still used by processes of a pod that was deleted by force"
    assert shown(on, "top")["nodes"][0]["notes"] == [said]
    assert f"! {said}" in asked(on, "top", "--once").stdout
