"""Admission reviews as the API server sends them, and its side of the answer."""

import json
from base64 import b64decode
from typing import Any

import jsonpatch

from policies.policy_set import PolicySet
from tests.policies.pods import policies
from webhook.review import review


def call(of: object, **request: Any) -> dict[str, Any]:
    return {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "705ab4f5",
            "kind": {"group": "", "version": "v1", "kind": "Pod"},
            "resource": {"group": "", "version": "v1", "resource": "pods"},
            "namespace": "team",
            "operation": "CREATE",
            "userInfo": {"username": "system:serviceaccount:kube-system:replicaset-controller"},
            "object": of,
            "oldObject": None,
            "dryRun": False,
            "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
            **request,
        },
    }


def debugged(on: dict[str, Any]) -> dict[str, Any]:
    """The call when somebody adds an ephemeral container to a pod with a share that is *on*, twice in its body."""
    labels = {**on["metadata"].get("labels", {}), "gpu-share.dev/shared": "true"}
    shared = {**on, "metadata": {**on["metadata"], "labels": labels}}
    return call(shared, oldObject=shared, operation="UPDATE", subResource="ephemeralcontainers")


def answer(body: object, by: PolicySet | None = None) -> dict[str, Any]:
    """Check what holds for every answer; returns the response."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    answered = json.loads(review(content, by or policies()).body)
    assert {name: answered[name] for name in ("apiVersion", "kind")} == {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
    }
    response: dict[str, Any] = answered["response"]
    assert isinstance(response["allowed"], bool)
    assert ("patch" in response) == ("patchType" in response)
    assert all(len(warning) <= 120 for warning in response.get("warnings", ()))
    return response


def patch_of(response: dict[str, Any]) -> list[dict[str, Any]]:
    operations: list[dict[str, Any]] = json.loads(b64decode(response.get("patch", ""), validate=True) or b"[]")
    return operations


def patched(on: dict[str, Any], response: dict[str, Any]) -> dict[str, Any]:
    """Apply the patch of an answer as the API server does."""
    made: dict[str, Any] = jsonpatch.apply_patch(on, patch_of(response))
    return made
