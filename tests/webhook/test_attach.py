"""How a pod reaches its MPS daemon: by what the policy says, and by what Pod Security permits in the namespace."""

import json
from typing import Any

import pytest

from policies.contract import GRANT_ANNOTATION, MUTATE_PATH, MUTATE_RESTRICTED_PATH
from policies.policy_set import PolicySet
from tests.manifests.admission import BASE, policy, stored
from tests.policies.pods import pod, policies
from tests.webhook.reviews import call, patched
from tests.webhook.serving import Server
from webhook.review import review

POLICY = policy(BASE)
AUTO = policies("mps: {attach: auto}")
POD = policies("mps: {attach: pod}")
NODE = policies("mps: {attach: node}")


def admitted(on: dict[str, Any], by: PolicySet, *, restricted: bool) -> tuple[dict[str, Any], str]:
    body = json.dumps(call(on)).encode()
    response = json.loads(review(body, by, restricted=restricted).body)["response"]
    assert response["allowed"], response
    return patched(on, response), " ".join(response.get("warnings", []))


def attached(on: dict[str, Any]) -> str:
    """Where the pod carries what MPS needs; Pod Security baseline forbids it in the pod."""
    said: str = json.loads(on["metadata"]["annotations"][GRANT_ANNOTATION])["attach"]
    spec = on["spec"]
    in_pod = spec.get("hostIPC"), bool(spec.get("volumes")), bool(spec["containers"][0].get("volumeMounts"))
    assert in_pod == ((True, True, True) if said == "pod" else (None, False, False))
    return said


@pytest.mark.parametrize(
    ("by", "restricted", "expected"),
    [
        (policies(), False, "pod"),
        (policies(), True, "node"),
        (AUTO, False, "pod"),
        (AUTO, True, "node"),
        (NODE, False, "node"),
        (NODE, True, "node"),
        (POD, False, "pod"),
        (POD, True, "pod"),
    ],
)
def test_a_pod_carries_what_the_policy_says_and_by_default_what_pod_security_permits(
    by: PolicySet,
    restricted: bool,  # noqa: FBT001 - a column of the table
    expected: str,
) -> None:
    after, _ = admitted(pod("0.2"), by, restricted=restricted)
    assert attached(after) == expected
    assert POLICY.denials(stored(after)) == []
    again, _ = admitted(after, by, restricted=restricted)
    assert again == after


def test_a_pod_that_pod_security_will_deny_is_told_which_setting_of_gpu_share_it_is() -> None:
    by = policies("enabled: true", team="mps:\n  attach: pod\n")
    _, said = admitted(pod("0.2"), by, restricted=True)
    assert "mps.attach: pod (team.yaml:2)" in said
    assert "hostIPC and a hostPath volume" in said
    assert "mps.attach: node" in said


@pytest.mark.parametrize(("by", "restricted"), [(POD, False), (AUTO, False), (AUTO, True), (NODE, True)])
def test_nobody_else_is_warned(
    by: PolicySet,
    restricted: bool,  # noqa: FBT001 - a column of the table
) -> None:
    assert admitted(pod("0.2"), by, restricted=restricted)[1] == ""
    sliced = policies("strategy: time-slicing\nmps: {attach: pod}")
    assert admitted(pod("0.2"), sliced, restricted=True)[1] == ""


def test_the_two_paths_are_served(server: Server) -> None:
    found = {}
    with server.caller() as caller:
        for path in (MUTATE_PATH, MUTATE_RESTRICTED_PATH):
            status, text = caller.ask("POST", path, json.dumps(call(pod("0.2"))).encode())
            assert status == 200
            found[path] = attached(patched(pod("0.2"), json.loads(text)["response"]))
    assert found == {MUTATE_PATH: "pod", MUTATE_RESTRICTED_PATH: "node"}
