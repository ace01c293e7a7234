"""Pods as charts, operators and pipelines make them are granted with every sidecar and stay, or denied for a reason."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from policies.grant import Denied
from tests.policies.pods import decided, pod, policies
from tests.webhook.reviews import answer, call, patch_of, patched

_FOLDER = Path(__file__).parent / "honest"
_SIDECARS: dict[str, Any] = yaml.safe_load((_FOLDER / "sidecars.yaml").read_text())
HONEST = {
    name: one
    for path in sorted(_FOLDER.glob("*.yaml"))
    if path.stem != "sidecars"
    for name, one in yaml.safe_load(path.read_text()).items()
}


def honest_pod(one: dict[str, Any], beside: dict[str, Any]) -> dict[str, Any]:
    spec = one["spec"]
    joined = {field: [*spec.get(field, ()), *beside.get(field, ())] for field in ("initContainers", "volumes")}
    containers = [*spec["containers"], *beside.get("containers", ())]
    return pod(None, *containers, annotations={f"container.gpu-share.dev/{one['share']}": "0.2"}, **joined)


def test_there_are_enough_of_them() -> None:
    assert len(HONEST) * (1 + len(_SIDECARS)) > 400


@pytest.mark.parametrize("sidecar", ["none", *_SIDECARS])
@pytest.mark.parametrize("strategy", ["mps", "time-slicing"])
@pytest.mark.parametrize("name", HONEST)
def test_an_honest_pod_is_granted(name: str, strategy: str, sidecar: str) -> None:
    by = policies(f"strategy: {strategy}", "handover: [cdi]")
    decision = decided(honest_pod(HONEST[name], _SIDECARS.get(sidecar, {})), by)
    code = decision.deny.code if isinstance(decision, Denied) else None
    assert code == HONEST[name].get("denied", {}).get(strategy), decision
    if code == "MemoryArgumentAboveShare":
        assert isinstance(decision, Denied)
        assert "--option=$(NAME)" in decision.deny.message


@pytest.mark.parametrize("strategy", ["mps", "time-slicing"])
@pytest.mark.parametrize("name", HONEST)
def test_a_second_review_of_an_honest_pod_changes_nothing(name: str, strategy: str) -> None:
    if strategy in HONEST[name].get("denied", {}):
        return
    by, on = policies(f"strategy: {strategy}", "handover: [cdi]"), honest_pod(HONEST[name], {})
    again = answer(call(patched(on, answer(call(on), by))), by)
    assert again["allowed"], again
    assert not patch_of(again)
