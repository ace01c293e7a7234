"""Installations as `gpu-share doctor` sees them: one in which all is well, and what can be wrong with it."""

from base64 import b64encode, encodebytes
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509 import load_pem_x509_certificate

from certs.issuer import CA_LIFETIME, new_ca
from console.cluster_policies import in_force
from console.doctor.admission import AdmissionPolicy, Binding, WebhookConfiguration
from console.doctor.installation import Attempt, Installation
from console.dra_objects import DeviceClass, ResourceSlice
from console.look import seen_pod
from console.objects import Metadata, Node, Pod
from console.seen import Seen
from console.seen_nodes import seen_nodes
from console.words import Shown, as_shown
from policies.device_classes import device_classes
from policies.node_state import Gpu, NodeState, Use
from tests.console.objects import GIB, PROGRAM, gpu, node, part, pending, state, tenant
from tests.console.stand_in import Object
from tests.manifests.admission import BASE
from tests.manifests.render import MANIFESTS, render

# The name of a check, the status that it comes to, a part of what it finds, and in which installation.
Wrong = tuple[str, str, str, Callable[[], Installation]]

_WAITS = "0/1 nodes are available: 1 Insufficient gpu-share.dev/vgpu."
DENIED = 'admission webhook "pods.gpu-share.dev" denied the request: "doctor" is no share'
PARTS = ("plugin", "mps", "webhook", "certs")
BY_DRA = render(MANIFESTS / "overlays" / "dra")
CLUSTER = "exemptNamespaces: [kube-system]\n"


def policies(cluster: str = CLUSTER, **files: str) -> dict[str, Any]:
    """What becomes of policy files."""
    texts = {"_cluster.yaml": cluster, "_default.yaml": "", **{f"{name}.yaml": text for name, text in files.items()}}
    made, problems = in_force({name: text.encode() for name, text in texts.items()})
    return {"policies": made, "policy_problems": problems}


def webhook(**changes: Any) -> WebhookConfiguration:
    """The webhook configuration of the manifests, with a CA bundle."""
    (made,) = (one for one in BASE if one["kind"] == "MutatingWebhookConfiguration")
    bundle = {"caBundle": b64encode(ca()).decode()}
    hooks = [{**one, "clientConfig": {**one["clientConfig"], **bundle}, **changes} for one in made["webhooks"]]
    return msgspec.convert({"metadata": made["metadata"], "webhooks": hooks}, WebhookConfiguration, dec_hook=as_shown)


def admission_policies(objects: list[Object] = BASE) -> dict[str, Any]:
    """The admission policies of the manifests, and their bindings."""
    made = [parsed(one, AdmissionPolicy) for one in objects if one["kind"] == "ValidatingAdmissionPolicy"]
    bindings = tuple(parsed(one, Binding) for one in objects if one["kind"] == "ValidatingAdmissionPolicyBinding")
    return {"admission_policies": {one.metadata.name: one for one in made}, "bindings": bindings}


def namespace(name: str, *, labels: dict[str, str] | None = None, **annotations: str) -> dict[str, Any]:
    """A namespace alone, with *labels*, and annotations of gpu-share with _ for -."""
    made = {f"gpu-share.dev/{key.replace('_', '-')}": value for key, value in annotations.items()}
    return {"namespaces": {name: Metadata(labels=labels or {}, annotations=made)}}


def dra(**changes: Any) -> dict[str, Any]:
    """What is there for DRA: policies, the classes of the sizes, and a slice of gpu-0, with *changes*."""
    spec = {"driver": "gpu-share.dev", "nodeName": "gpu-0", "sharedCounters": [{"name": "0"}], **changes}
    made = policies(x="allocation: dra\n")
    return {
        "classes": tuple(parsed(one, DeviceClass) for one in device_classes(made["policies"].cluster)),
        "slices": (parsed({"spec": spec}, ResourceSlice),),
        **admission_policies(BY_DRA),
        **made,
    }


def ca(days: float = 365) -> bytes:
    """The certificate of a CA that ends in so many days."""
    return new_ca(now=datetime.now(UTC) - CA_LIFETIME + timedelta(days=days)).pair.certificate_pem


def of_invalid_version(pem: bytes) -> bytes:
    """A certificate with a version of X.509 that there is none of."""
    version, other = b"\xa0\x03\x02\x01\x02", b"\xa0\x03\x02\x01\x43"
    whole = load_pem_x509_certificate(pem).public_bytes(Encoding.DER)
    return b"-----BEGIN CERTIFICATE-----\n%s-----END CERTIFICATE-----\n" % encodebytes(whole.replace(version, other))


def nodes(*said: NodeState | None, **changes: Any) -> dict[str, Any]:
    """Nodes of which each says something, or nothing."""
    listed = [parsed(node(f"gpu-{number}", **changes), Node) for number in range(len(said))]
    states = {f"gpu-{number}": one for number, one in enumerate(said) if one is not None}
    return {"nodes": seen_nodes(listed, states)}


def with_node(*gpus: Gpu, **more: Any) -> Installation:
    """An installation whose only node has *gpus*, and says *more*."""
    return installation(seen(**nodes(state(*gpus, on="gpu-0", **more))))


def parts(component: str, **status: Any) -> Installation:
    """An installation in which one part is as *status* says."""
    made = [part("gpu-0", one) for one in PARTS]
    for one in made:
        if one["metadata"]["labels"]["app.kubernetes.io/component"] == component:
            one["status"] = {**one["status"], **status}
    return installation(seen(parts=tuple(parsed(one, Pod) for one in made)))


def waiting(reason: str) -> list[Object]:
    """The status of a container that waits."""
    held = {"waiting": {"reason": reason, "message": "no such image"}}
    return [{"name": "main", "ready": False, "state": held}]


def seen(**changes: Any) -> Seen:
    """A cluster in which all is well."""
    values: dict[str, Any] = {
        "context": "here",
        "at": datetime.now(UTC).isoformat(),
        **nodes(state(gpu(), gpu(index=1), on="gpu-0")),
        "parts": tuple(parsed(part("gpu-0", one), Pod) for one in PARTS),
    }
    return Seen(**{**values, **changes})


def pods(*made: Object) -> dict[str, Any]:
    return {"pods": tuple(seen_pod(parsed(one, Pod)) for one in made)}


def installation(on: Seen | None = None, **changes: Any) -> Installation:
    """One in which all is well, but for *changes*."""
    values: dict[str, Any] = {
        "seen": on or seen(),
        "program": PROGRAM,
        "version": Shown("v1.36.2"),
        "apis": frozenset({"admissionregistration.k8s.io/v1", "resource.k8s.io/v1"}),
        "gates": {},
        "classes": (),
        "slices": (),
        "toolkits": {"gpu-0": "1.17.8"},
        "lacking_rights": (),
        "webhook": webhook(),
        "has_webhook": True,
        "attempt": Attempt(namespace="default", status=403, message=Shown(DENIED)),
        "ready": {"gpu-share-webhook-1": "ready"},
        "serving_certificate": ca(30),
        "namespaces": dict.fromkeys(("gpu-share", "kube-system", "team-vision"), Metadata()),
        **admission_policies(),
        **policies(),
        "config_map_keys": {"gpu-share-policies": {"_default.yaml"}, "gpu-share-cluster": {"_cluster.yaml"}},
    }
    return Installation(**{**values, **changes})


def fragmented(*, hidden: int = 0) -> Installation:
    """One in which enough is free for a pod that waits, and on no one GPU; some of it is *hidden* for that reason."""
    use = Use(memory_bytes=GIB, processes=1)
    used = (gpu(tenant("a", 7, use=use)), gpu(tenant("b", 8, use=use), index=1, hidden=hidden))
    return installation(
        seen(
            **nodes(state(*used, on="gpu-0")),
            **pods(pending("late", "0.4", _WAITS)),
        )
    )


def parsed(one: Object, kind: Any) -> Any:
    return msgspec.convert(one, kind, dec_hook=as_shown)
