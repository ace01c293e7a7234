"""Installations as `gpu-share doctor` sees them: one in which all is well, and what can be wrong with it."""

from base64 import b64encode
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from certs.issuer import CA_LIFETIME, new_ca
from console.cluster_policies import in_force
from console.doctor.installation import Attempt, Installation, WebhookConfiguration
from console.look import seen_nodes, seen_pod
from console.objects import Node, Pod
from console.seen import Seen
from console.words import Shown, as_shown
from policies.node_state import NodeState
from tests.console.objects import gpu, node, part, pending, state, tenant
from tests.console.stand_in import Object
from tests.manifests.admission import BASE

_WAITS = "0/1 nodes are available: 1 Insufficient gpu-share.dev/vgpu."
DENIED = 'admission webhook "pods.gpu-share.dev" denied the request: "doctor" is no share'
CLUSTER = "exemptNamespaces: [kube-system]\n"


def policies(cluster: str = CLUSTER, **files: str) -> dict[str, Any]:
    """What becomes of policy files."""
    texts = {"_cluster.yaml": cluster, "_default.yaml": "", **{f"{name}.yaml": text for name, text in files.items()}}
    made, problems = in_force(texts)
    return {"policies": made, "policy_problems": problems}


def webhook(**changes: Any) -> WebhookConfiguration:
    """The webhook configuration of the manifests, with a CA bundle."""
    (made,) = (one for one in BASE if one["kind"] == "MutatingWebhookConfiguration")
    bundle = {"clientConfig": {"caBundle": b64encode(ca()).decode()}}
    hooks = [{**one, **bundle, **changes} for one in made["webhooks"]]
    return msgspec.convert({"metadata": made["metadata"], "webhooks": hooks}, WebhookConfiguration, dec_hook=as_shown)


def ca(days: float = 365) -> bytes:
    """The certificate of a CA that ends in so many days."""
    return new_ca(now=datetime.now(UTC) - CA_LIFETIME + timedelta(days=days)).pair.certificate_pem


def nodes(*said: NodeState | None, **changes: Any) -> dict[str, Any]:
    """Nodes of which each says something, or nothing."""
    listed = [parsed(node(f"gpu-{number}", **changes), Node) for number in range(len(said))]
    states = {f"gpu-{number}": one for number, one in enumerate(said) if one is not None}
    return {"nodes": seen_nodes(listed, states)}


def seen(**changes: Any) -> Seen:
    """A cluster in which all is well."""
    values: dict[str, Any] = {
        "context": "here",
        "at": datetime.now(UTC).isoformat(),
        **nodes(state(gpu(), gpu(index=1), on="gpu-0")),
        "parts": tuple(parsed(part("gpu-0", one), Pod) for one in ("plugin", "mps", "webhook", "certs")),
    }
    return Seen(**{**values, **changes})


def pods(*made: Object) -> dict[str, Any]:
    return {"pods": tuple(seen_pod(parsed(one, Pod)) for one in made)}


def installation(on: Seen | None = None, **changes: Any) -> Installation:
    """One in which all is well, but for *changes*."""
    values: dict[str, Any] = {
        "seen": on or seen(),
        "version": Shown("v1.36.2"),
        "apis": frozenset({"admissionregistration.k8s.io/v1", "resource.k8s.io/v1"}),
        "rights": {"namespaces": True},
        "webhook": webhook(),
        "has_webhook": True,
        "attempt": Attempt(namespace="default", status=403, message=Shown(DENIED)),
        "ready": {"gpu-share-webhook-1": "ready"},
        "serving_certificate": ca(30),
        "namespaces": {"team-vision": {}, "gpu-share": {}},
        **policies(),
    }
    return Installation(**{**values, **changes})


def fragmented(*, hidden: int = 0) -> Installation:
    """One in which enough is free for a pod that waits, and on no one GPU; some of it is *hidden* for that reason."""
    used = (gpu(tenant("a", 7)), gpu(tenant("b", 8), index=1, hidden=hidden))
    return installation(
        seen(
            **nodes(state(*used, on="gpu-0")),
            **pods(pending("late", "0.4", _WAITS)),
        )
    )


def parsed(one: Object, kind: Any) -> Any:
    return msgspec.convert(one, kind, dec_hook=as_shown)
