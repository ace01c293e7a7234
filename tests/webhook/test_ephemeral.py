"""`kubectl debug` on a pod with a share: what webhook and policy make of the container."""

import copy
import json
from typing import Any

import pytest

from policies.policy_set import PolicySet
from tests.manifests.admission import BASE, policy, stored
from tests.policies.pods import container, mutated, pod, policies
from tests.webhook.reviews import answer, call, patch_of, patched
from tests.webhook.serving import Server

POLICY = policy(BASE, "gpu-share-changes")
VOID = {"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}
RUNNING = stored(mutated(pod("0.2")))


def debugging(*added: dict[str, Any], on: dict[str, Any] = RUNNING, before: tuple[dict[str, Any], ...] = ()) -> Any:
    """A review of what `kubectl debug` sends."""
    old, new = copy.deepcopy(on), copy.deepcopy(on)
    if before:
        old["spec"]["ephemeralContainers"] = list(before)
    new["spec"]["ephemeralContainers"] = [*before, *added]
    return call(new, oldObject=old, operation="UPDATE", subResource="ephemeralcontainers")


def after(review: Any, by: PolicySet | None = None) -> dict[str, Any]:
    return patched(review["request"]["object"], answer(review, by))


def ephemeral(on: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = on["spec"]["ephemeralContainers"]
    return found


def test_an_ephemeral_container_gets_void_and_the_policy_admits_it(server: Server) -> None:
    review = debugging(container("debugger", image="nvidia/cuda", tty=True))
    assert POLICY.denials(review["request"]["object"], RUNNING) != []
    with server.caller() as caller:
        status, text = caller.ask("POST", "/mutate", json.dumps(review).encode())
    assert status == 200
    response = json.loads(text)["response"]
    assert patch_of(response) == [{"op": "add", "path": "/spec/ephemeralContainers/0/env", "value": [VOID]}]
    made = patched(review["request"]["object"], response)
    assert POLICY.denials(made, RUNNING) == []


def test_void_comes_after_the_containers_own_variables() -> None:
    own = [{"name": "A", "value": "b"}]
    (found,) = ephemeral(after(debugging(container("debugger", env=own))))
    assert found["env"] == [*own, VOID]


def test_only_new_containers_are_changed() -> None:
    before = container("before")
    review = debugging(container("a"), container("b", env=[]), before=(before,))
    assert [one.get("env") for one in ephemeral(after(review))] == [None, [VOID], [VOID]]


def test_a_second_call_changes_nothing() -> None:
    once = debugging(container("a"), container("b", env=[{"name": "A"}]))
    once["request"]["object"] = after(once)
    assert patch_of(answer(once)) == []


def test_a_container_that_was_added_keeps_its_own_void() -> None:
    assert patch_of(answer(debugging(container("debugger", env=[VOID])))) == []


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]}, "ReservedEnvironment"),
        ({"env": [{"name": "CUDA_MPS_PIPE_DIRECTORY", "value": "/x"}]}, "ReservedEnvironment"),
        ({"securityContext": {"privileged": True}}, "PrivilegedContainer"),
        ({"securityContext": {"capabilities": {"add": ["SYS_ADMIN"]}}}, "PrivilegedContainer"),
        ({"volumeMounts": [{"name": "nvidia-mps", "mountPath": "/x"}]}, "ConflictingRequest"),
    ],
)
@pytest.mark.parametrize("mode", ["enforce", "warn"])
def test_what_reaches_a_gpu_is_denied(fields: dict[str, Any], code: str, mode: str) -> None:
    review = debugging(container("debugger", **fields))
    response = answer(review, policies(f"mode: {mode}"))
    assert response["status"]["reason"] == code
    assert '"debugger"' in response["status"]["message"]
    assert POLICY.denials(review["request"]["object"], RUNNING) != []


def test_a_reserved_variable_is_removed_where_the_policy_strips() -> None:
    review = debugging(container("debugger", env=[{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]))
    response = answer(review, policies("environment: {reserved: strip}"))
    (found,) = ephemeral(patched(review["request"]["object"], response))
    assert found["env"] == [VOID]
    assert "reserved and was removed" in " ".join(response["warnings"])


@pytest.mark.parametrize("directory", ["/tmp/nvidia-mps", "/run/pipes"])
def test_the_pipes_are_those_of_the_cluster(directory: str) -> None:
    by = policies(cluster=f"mps: {{pipeDirectory: {directory}}}")
    running = mutated(pod("0.2"), by)
    mount = {"name": "nvidia-mps", "mountPath": "/x"}
    assert "status" in answer(debugging(container("debugger", volumeMounts=[mount]), on=running), by)
    data = pod("0.2", volumes=[{"name": "data", "emptyDir": {}}])
    other = container("debugger", volumeMounts=[{"name": "data", "mountPath": "/x"}])
    assert answer(debugging(other, on=mutated(data, by)), by)["allowed"]


def test_a_volume_of_the_users_own_with_the_name_of_the_pipes_stays_writable() -> None:
    on = mutated(pod("0.2", volumes=[{"name": "nvidia-mps", "emptyDir": {}}]), policies("mps: {attach: node}"))
    mount = {"name": "nvidia-mps", "mountPath": "/x"}
    (found,) = ephemeral(after(debugging(container("debugger", volumeMounts=[mount]), on=on)))
    assert found["volumeMounts"] == [mount]


def test_a_pod_that_has_no_share_is_left_alone() -> None:
    for on in (pod(None), pod("0.2")):  # the second one asks, and was admitted without: mode is warn
        assert answer(debugging(container("debugger"), on=on)) == {"uid": "705ab4f5", "allowed": True}


def test_an_exempt_namespace_is_left_alone() -> None:
    by = policies(cluster="exemptNamespaces: [team]")
    assert "patch" not in answer(debugging(container("debugger")), by)


def test_a_request_that_leaves_out_the_label_is_seen_by_what_the_pod_was() -> None:
    review = debugging(container("debugger"))
    del review["request"]["object"]["metadata"]
    assert ephemeral(after(review))[0]["env"] == [VOID]


def test_a_share_in_a_namespace_that_has_none_any_more_still_hides_the_gpus() -> None:
    assert ephemeral(after(debugging(container("debugger")), policies("enabled: false")))[0]["env"] == [VOID]


@pytest.mark.parametrize("old", [None, 5, {"spec": 5}])
def test_a_call_without_the_pod_as_it_was_is_a_bad_call(server: Server, old: object) -> None:
    review = debugging(container("debugger"))
    review["request"]["oldObject"] = old
    with server.caller() as caller:
        status, text = caller.ask("POST", "/mutate", json.dumps(review).encode())
    assert status == 400
    assert "oldObject" in text
