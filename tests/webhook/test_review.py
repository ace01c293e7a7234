import json
import re
from typing import Any

import pytest

from tests.policies.pods import container, pod, policies
from tests.webhook.reviews import answer, call, patch_of
from webhook.review import review

KEY = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")


def event(body: object, policy: str = "") -> dict[str, Any]:
    return review(json.dumps(body).encode(), policies(policy)).event


def test_a_grant_is_an_allowed_patch_for_the_same_uid() -> None:
    response = answer(call(pod("0.25"), uid="e911857d-c318-11e8-bbad-025000000001"))
    assert response["uid"] == "e911857d-c318-11e8-bbad-025000000001"
    assert response["allowed"] is True
    assert response["patchType"] == "JSONPatch"
    assert {operation["op"] for operation in patch_of(response)} == {"add"}
    assert set(response) == {"uid", "allowed", "patch", "patchType", "warnings", "auditAnnotations"}
    assert response["auditAnnotations"] == {"policy": "built-in", "share": "main=0.25", "vgpus": "main=3"}
    assert "rounded up to 3" in response["warnings"][0]


def test_a_denial_is_a_403_with_the_code_as_reason() -> None:
    response = answer(call(pod("0,2")))
    assert set(response) == {"uid", "allowed", "status", "auditAnnotations"}
    assert response["allowed"] is False
    assert (response["status"]["code"], response["status"]["reason"]) == (403, "ShareMalformed")
    assert response["status"]["message"].startswith("The annotation ")


def test_a_pod_without_a_share_is_allowed_with_nothing_else() -> None:
    assert answer(call(pod(None))) == {"uid": "705ab4f5", "allowed": True}


def test_a_dry_run_is_answered_like_any_other() -> None:
    assert answer(call(pod("0.2"), dryRun=True)) == answer(call(pod("0.2")))


def test_mode_warn_allows_with_a_warning() -> None:
    response = answer(call(pod("0,2")), policies("mode: warn"))
    assert set(response) == {"uid", "allowed", "warnings", "auditAnnotations"}
    assert "ShareMalformed" in " ".join(response["warnings"])


@pytest.mark.parametrize(
    "request_",
    [
        {"operation": "UPDATE"},
        {"operation": "DELETE", "object": None},
        {"operation": "CONNECT"},
        {"subResource": "ephemeralcontainers"},
        {"subResource": "resize", "operation": "UPDATE"},
        {"operation": "UPDATE", "object": {"spec": 5}},
    ],
)
def test_only_the_creation_of_a_pod_is_decided_on(request_: dict[str, Any]) -> None:
    assert answer(call(pod("nonsense"), **request_)) == {"uid": "705ab4f5", "allowed": True}


@pytest.mark.parametrize(
    ("on", "request_", "policy"),
    [
        ({}, {}, "_default"),
        ({}, {"namespace": "vision"}, "vision"),
        ({"namespace": "vision"}, {"namespace": ""}, "vision"),
        ({"namespace": "vision"}, {"namespace": "other"}, "_default"),
        ({"generateName": "a-", "name": None}, {}, "_default"),
    ],
)
def test_the_namespace_of_the_request_decides(on: dict[str, Any], request_: dict[str, Any], policy: str) -> None:
    body = call({**pod("0.2"), "metadata": {**pod("0.2")["metadata"], **on}}, **request_)
    by = policies("mode: enforce", vision="mode: enforce")
    assert answer(body, by)["auditAnnotations"]["policy"] == policy


SECRETS = [{"name": "PASSWORD", "value": "s3cret-value"}]


def test_an_event_carries_names_and_numbers_never_the_pod() -> None:
    on = pod("0.25", container("web", env=SECRETS, args=["--token=s3cret-value"], command=["s3cret-value"]))
    assert event(call(on)) == {
        "uid": "705ab4f5",
        "namespace": "team",
        "pod": "example",
        "policy": "built-in",
        "decision": "granted",
        "code": "",
        "shares": {"web": "0.25"},
    }


@pytest.mark.parametrize(
    ("on", "policy", "expected"),
    [
        (pod("0,2"), "", ("denied", "ShareMalformed", "built-in")),
        (pod(None), "", ("untouched", "", "")),
        (pod("0,2"), "mode: warn", ("untouched", "ShareMalformed", "_default")),
    ],
)
def test_an_event_says_what_was_decided(on: dict[str, Any], policy: str, expected: tuple[str, str, str]) -> None:
    made = event(call(on), policy)
    assert (made["decision"], made["code"], made["policy"]) == expected


def test_a_pod_without_a_name_is_logged_by_its_generate_name() -> None:
    on = pod("0.2")
    on["metadata"] = {"generateName": "web-7d4b9-", "annotations": {"gpu-share": "0.2"}}
    assert event(call(on))["pod"] == "web-7d4b9-"


def test_hostile_names_do_not_swell_the_event() -> None:
    on = pod("0.2", container("c" * 100_000))
    on["metadata"]["name"] = "n" * 100_000
    assert len(json.dumps(event(call(on, uid="u" * 100_000, namespace="s" * 100_000)))) < 2_000


@pytest.mark.parametrize("name", ["web", "\u00e9" * 500, "a b\n"])
def test_audit_annotations_have_valid_keys_and_texts(name: str) -> None:
    for on in (pod("0.2", container(name)), pod("0,2", container(name))):
        for key, value in answer(call(on))["auditAnnotations"].items():
            assert KEY.fullmatch(key)
            assert isinstance(value, str)


def test_long_warnings_are_cut_between_words() -> None:
    on = pod("0.25", container("x" * 500), annotations={"gpu-share.dev/framework": "y" * 500})
    warnings = answer(call(on))["warnings"]
    assert warnings
    assert all(one == one.strip() and one for one in warnings)
