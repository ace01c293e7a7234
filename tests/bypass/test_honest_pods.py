"""Pods as charts, operators and pipelines make them are granted with every sidecar and stay, or denied for a reason."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from policies.grant import Denied
from tests.policies.pods import decided, pod, policies
from tests.webhook.reviews import answer, call, patch_of, patched

_FOLDER = Path(__file__).parent / "honest"


def _read(path: Path) -> dict[str, Any]:
    read: dict[str, Any] = yaml.load(path.read_text(), yaml.CSafeLoader)  # each process of a run reads them
    return read


_SIDECARS = {"none": dict[str, Any](), **_read(_FOLDER / "sidecars.yaml")}
HONEST = {
    name: one for path in sorted(_FOLDER.glob("*.yaml")) if path.stem != "sidecars" for name, one in _read(path).items()
}


def honest_pod(one: dict[str, Any], beside: dict[str, Any]) -> dict[str, Any]:
    spec = one["spec"]
    joined = {field: [*spec.get(field, ()), *beside.get(field, ())] for field in ("initContainers", "volumes")}
    containers = [*spec["containers"], *beside.get("containers", ())]
    return pod(None, *containers, annotations={f"container.gpu-share.dev/{one['share']}": "0.2"}, **joined)


def test_there_are_enough_of_them() -> None:
    assert len(HONEST) * len(_SIDECARS) > 400


@pytest.mark.parametrize("strategy", ["mps", "time-slicing"])
@pytest.mark.parametrize("name", HONEST)
def test_an_honest_pod_is_granted_with_every_sidecar(name: str, strategy: str) -> None:
    by = policies(f"strategy: {strategy}", "handover: [cdi]")
    for sidecar, beside in _SIDECARS.items():
        decision = decided(honest_pod(HONEST[name], beside), by)
        code = decision.deny.code if isinstance(decision, Denied) else None
        assert code == HONEST[name].get("denied", {}).get(strategy), (sidecar, decision)
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
