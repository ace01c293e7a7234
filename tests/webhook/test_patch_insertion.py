"""Another webhook puts a container into the pod, before ours or after it: over HTTP, and over pods of all kinds."""

import copy
import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from policies.contract import DEFAULT_CONTAINER_ANNOTATION, SHARED_LABEL
from tests.policies.pods import container, environment, pod
from tests.webhook.reviews import call, patched
from tests.webhook.serving import Server
from tests.webhook.test_patch import POLICIES, patch, pods

ALL = {"image": "cuda", "ports": [{"containerPort": 1}]}
SIDECAR = st.sampled_from(
    [
        container("inserted"),
        container("inserted", **ALL, env=[]),
        container("inserted", env=[{"name": "A", "value": "b"}], args=["--x"]),
        container("inserted", resources={"limits": {"cpu": "1"}}),
    ]
)


@given(pods(), st.sampled_from(sorted(POLICIES)), SIDECAR, st.integers(0, 5), st.data())
@settings(deadline=None, max_examples=500, suppress_health_check=[HealthCheck.too_slow])
def test_a_container_that_is_inserted_gets_void_and_moves_no_share(
    before: dict[str, Any], name: str, one: dict[str, Any], index: int, data: st.DataObject
) -> None:
    granted, grant = patch(before, POLICIES[name])
    if grant is None:
        return
    changed = copy.deepcopy(granted)
    group = data.draw(st.sampled_from(["containers", "initContainers"]))
    changed["spec"][group] = [*(changed["spec"].get(group) or [])]
    changed["spec"][group].insert(index, copy.deepcopy(one))
    if data.draw(st.booleans()):
        changed["metadata"]["annotations"][DEFAULT_CONTAINER_ANNOTATION] = "inserted"
    again, second = patch(changed, POLICIES[name])
    assert second is not None
    (found,) = (each for each in again["spec"][group] if each["name"] == "inserted")
    assert found == one | {"env": [*one.get("env", []), {"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}]}
    again["spec"][group].remove(found)
    for on in (again, granted):  # an empty list that was missing is the same to the API server
        on["spec"][group] = on["spec"].get(group) or []
    again["metadata"]["annotations"].pop(DEFAULT_CONTAINER_ANNOTATION, None)
    assert again == granted
    final = patch(changed, POLICIES[name])[0]
    assert patch(final, POLICIES[name])[0] == final


def admitted(server: Server, on: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """What the API server makes of a pod and our webhook's answer, and the warnings that the user sees."""
    with server.caller() as caller:
        status, text = caller.ask("POST", "/mutate", json.dumps(call(on)).encode())
    assert status == 200
    response = json.loads(text)["response"]
    assert response["allowed"], response
    return patched(on, response), response.get("warnings", [])


def seen(on: dict[str, Any]) -> dict[str, Any]:
    """By container: its vGPUs, or what it says of the GPUs that it may see."""
    return {
        one["name"]: one.get("resources", {}).get("limits", {}).get("gpu-share.dev/vgpu")
        or environment(one).get("NVIDIA_VISIBLE_DEVICES")
        for one in on["spec"]["containers"]
    }


@pytest.mark.parametrize("index", [0, 1])
def test_a_container_put_first_after_ours_gets_no_share(server: Server, index: int) -> None:
    after, _ = admitted(server, pod("0.2", container("user")))
    after["spec"]["containers"].insert(index, container("proxy"))
    again, warnings = admitted(server, after)
    assert seen(again) == {"user": "2", "proxy": "void"}
    assert any('"user"' in warning for warning in warnings)
    assert admitted(server, again)[0] == again
    assert again["metadata"]["labels"] == {SHARED_LABEL: "true"}


def test_a_container_put_first_before_ours_gets_no_share_where_its_injector_names_the_users(server: Server) -> None:
    on = pod("0.2", container("proxy"), container("user"), annotations={DEFAULT_CONTAINER_ANNOTATION: "user"})
    after, warnings = admitted(server, on)
    assert seen(after) == {"proxy": "void", "user": "2"}
    assert warnings == []


def test_a_container_put_first_before_ours_is_named_in_a_warning_where_its_injector_names_none(server: Server) -> None:
    after, warnings = admitted(server, pod("0.2", container("proxy"), container("user")))
    assert seen(after) == {"proxy": "2", "user": "void"}
    said = " ".join(warnings)
    assert '"proxy"' in said
    assert DEFAULT_CONTAINER_ANNOTATION in said
