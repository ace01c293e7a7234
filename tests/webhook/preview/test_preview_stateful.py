"""The claims of a StatefulSet are volumes of its pods."""

import json
from typing import Any

import pytest

from tests.webhook.commands import unreadable
from tests.webhook.preview.previewed import made, titles

TITLE = "StatefulSet default/s"


def stateful(claims: Any, volumes: list[Any] | None = None, name: str = "data") -> str:
    container = {"name": "a", "image": "x", "volumeMounts": [{"name": name, "mountPath": "/data"}]}
    spec = {"containers": [container], **({"volumes": volumes} if volumes else {})}
    template = {"metadata": {"annotations": {"gpu-share": "0.2"}}, "spec": spec}
    whole = {"template": template, "volumeClaimTemplates": claims}
    return json.dumps({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "s"}, "spec": whole})


def claim(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {}}


@pytest.mark.parametrize(("name", "verdict"), [("data", "granted"), ("nvidia-mps", "denied, ConflictingRequest")])
def test_a_claim_is_judged_as_a_volume_of_its_pods(name: str, verdict: str) -> None:
    assert titles(stateful([claim(name)], name=name), code=int(verdict != "granted")) == {TITLE: verdict}


def test_a_claim_takes_the_place_of_a_volume_of_its_name() -> None:
    socket = {"name": "data", "hostPath": {"path": "/run/x"}}
    assert titles(stateful([claim("data")], [socket])) == {TITLE: "granted"}
    written = made(stateful([claim("data")], [socket]))["spec"]
    assert [one["name"] for one in written["template"]["spec"]["volumes"]] == ["data", "nvidia-mps"]
    assert written["template"]["spec"]["volumes"][0] == socket


def test_claims_stay_out_of_the_template_that_is_written() -> None:
    written = made(stateful([claim("data"), claim("more")]))["spec"]
    assert [one["name"] for one in written["template"]["spec"]["volumes"]] == ["nvidia-mps"]
    assert written["volumeClaimTemplates"] == [claim("data"), claim("more")]


@pytest.mark.parametrize("claims", [5, [5], [{"metadata": {"name": 5}}]])
def test_claims_of_a_wrong_type_are_told(claims: Any) -> None:
    assert "spec.volumeClaimTemplates" in unreadable(stateful(claims))
