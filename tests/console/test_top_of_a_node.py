"""`gpu-share top --node`: by what it says of a node administrators go on with that node."""

from collections.abc import Callable
from typing import Any

import pytest
from click.testing import Result

from tests.console.objects import cluster, gpu, pod, state, tenant
from tests.console.stand_in import StandIn


def of_one_name() -> StandIn:
    """Two nodes on which a pod of one name has half a GPU each: the one on gpu-a was deleted by force."""
    halves = (state(gpu(tenant("web-0", 5)), on="gpu-a"), state(gpu(tenant("web-0", 5)), on="gpu-b"))
    return cluster(*halves, pods=(pod("web-0", "0.5", on="gpu-b"),))


@pytest.mark.parametrize(("node", "phase"), [("gpu-a", None), ("gpu-b", "Running")])
def test_a_tenant_is_shown_on_its_node_though_another_has_a_pod_of_its_name(
    shown: Callable[..., Any], node: str, phase: str | None
) -> None:
    (row,) = shown(of_one_name(), "top", "--node", node)["pods"]
    assert (row["pod"], row["node"], row["phase"], row["share"]) == ("web-0", node, phase, "0.5")
    assert len(shown(of_one_name(), "top")["pods"]) == 2


def test_what_is_left_of_an_earlier_pod_is_told(asked: Callable[..., Result]) -> None:
    said = asked(of_one_name(), "top", "--once").output
    assert "team-vision/web-0 on gpu-a: of an earlier pod of this name, which its node has still" in said


@pytest.mark.parametrize("output", [["--once"], ["-o", "json"]])
def test_a_node_that_is_not_there_is_a_failure(asked: Callable[..., Result], output: list[str]) -> None:
    result = asked(of_one_name(), "top", "--node", "gpu-aa", *output)
    assert result.exit_code == 1
    assert "--node gpu-aa: no node of this name shares its GPUs" in result.stderr
    assert result.stdout == ""
