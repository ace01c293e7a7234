"""Pods, policies and what is decided on them, in few words."""

import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import jsonpatch
import msgspec

from policies.decision import decide
from policies.denial import LONGEST_MESSAGE, Deny
from policies.grant import ContainerGrant, Decision, Denied, Grant, Untouched
from policies.pod import Pod
from policies.policy_set import PolicySet
from policies.reading.store import load
from webhook.patch import operations

VGPU = "gpu-share.dev/vgpu"
TIMESLICED = "gpu-share.dev/vgpu-timesliced"
GPU = "gpu-share.dev/gpu"


def container(name: str = "main", **fields: Any) -> dict[str, Any]:
    return {"name": name, "image": "registry.example/app:1", **fields}


def limited(name: str = "main", quantity: Any = "2", resource: str = VGPU, **fields: Any) -> dict[str, Any]:
    return container(name, resources={"limits": {resource: quantity}}, **fields)


def pod(
    share: str | None = "0.2",
    *containers: dict[str, Any],
    annotations: dict[str, str] | None = None,
    **spec: Any,
) -> dict[str, Any]:
    written = ({} if share is None else {"gpu-share": share}) | (annotations or {})
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "example", "annotations": written},
        "spec": {"containers": list(containers) or [container()], **spec},
    }


def policies(default: str = "", cluster: str = "", **namespaces: str) -> PolicySet:
    return _policies(default, cluster, tuple(sorted(namespaces.items())))


@cache
def _policies(default: str, cluster: str, namespaces: tuple[tuple[str, str], ...]) -> PolicySet:
    with tempfile.TemporaryDirectory() as directory:
        for name, text in (("_default", default), ("_cluster", cluster), *namespaces):
            if text:
                (Path(directory) / f"{name}.yaml").write_text(text)
        return load(Path(directory))


def decided(on: dict[str, Any], by: PolicySet | None = None, namespace: str = "team") -> Decision:
    return decide(msgspec.convert(on, Pod), namespace, by or policies())


def granted(on: dict[str, Any], by: PolicySet | None = None, namespace: str = "team") -> Grant:
    decision = decided(on, by, namespace)
    assert isinstance(decision, Grant), decision
    return decision


def only(grant: Grant) -> ContainerGrant:
    (one,) = grant.containers
    return one


def vgpus(grant: Grant) -> dict[str, int]:
    return {one.slot.name: one.vgpus for one in grant.containers}


def denied(on: dict[str, Any], by: PolicySet | None = None, namespace: str = "team") -> Deny:
    decision = decided(on, by, namespace)
    assert isinstance(decision, Denied), decision
    assert len(decision.deny.message) <= LONGEST_MESSAGE
    assert decision.deny.message.endswith(".")
    return decision.deny


def untouched(on: dict[str, Any], by: PolicySet | None = None, namespace: str = "team") -> Untouched:
    decision = decided(on, by, namespace)
    assert isinstance(decision, Untouched), decision
    return decision


def mutated(on: dict[str, Any], by: PolicySet | None = None, namespace: str = "team") -> dict[str, Any]:
    """Apply the patch as the API server does."""
    made = operations(msgspec.convert(on, Pod), granted(on, by, namespace))
    patched: dict[str, Any] = jsonpatch.apply_patch(on, msgspec.to_builtins(made))
    return patched


def only_container(of: dict[str, Any]) -> dict[str, Any]:
    (one,) = of["spec"]["containers"]
    assert isinstance(one, dict)
    return one


def environment(of: dict[str, Any]) -> dict[str, str]:
    return {one["name"]: one["value"] for one in of.get("env", ())}
