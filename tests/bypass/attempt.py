"""One pod that tries to get more than its share, and in few words."""

from dataclasses import dataclass
from typing import Any, Literal

from tests.policies.pods import limited, pod

GRANT = (
    '{"policy":"_default","strategy":"mps","attach":"pod","resource":"gpu-share.dev/vgpu",'
    '"containers":{"main":{"vgpus":%d,"share":"%s","of":10}}}'
)

# What a policy lists of the node's paths, and how the annotation of its namespace says the same.
LISTED = "hostPaths: [{path: /data/models}, {path: /scratch, writable: true}]"
ANNOTATIONS = {"gpu-share.dev/host-paths": "/data/models, /scratch:rw"}


@dataclass(frozen=True)
class Attempt:
    """One pod, and what becomes of it."""

    name: str
    pod: dict[str, Any]
    by: Literal["webhook", "policy", "harmless"]
    code: str = ""  # of the webhook's refusal
    says: str = ""  # what stands in the policy's refusal
    webhook_runs: bool = True  # false: it is down, or another one changed the pod after it
    rules: str = ""  # of `_default.yaml`


def by_webhook(name: str, code: str, on: dict[str, Any], rules: str = "") -> Attempt:
    return Attempt(name, on, "webhook", code=code, rules=rules)


def by_policy(name: str, says: str, on: dict[str, Any]) -> Attempt:
    return Attempt(name, on, "policy", says=says, webhook_runs=False)


def variable(name: str, value: str | None = "all", **source: Any) -> dict[str, Any]:
    return {"name": name, **({} if value is None else {"value": value}), **source}


def forged(vgpus: int = 2, share: str = "0.2", **changes: Any) -> dict[str, Any]:
    """A pod that looks as if the webhook had granted it."""
    made = pod(
        "0.2", limited("main", str(vgpus), **changes), annotations={"gpu-share.dev/grant": GRANT % (vgpus, share)}
    )
    made["metadata"]["labels"] = {"gpu-share.dev/shared": "true"}
    return made


def with_spec(on: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return on | {"spec": on["spec"] | spec}
