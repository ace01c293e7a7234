"""Look at an installation: what the checks of `gpu-share doctor` judge. Nothing in the cluster is changed."""

from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import msgspec

from console.api_server import ApiServer, UnseenError, decoded, message_of, path_of
from console.cluster_policies import read_policies
from console.doctor.installation import SUCCEEDED, Attempt, Installation, Namespace, WebhookConfiguration
from console.look import look, unseen
from console.objects import Pod
from console.seen import COMPONENT_LABEL, Seen, Unseen
from console.words import Shown
from policies.contract import (
    NAMESPACE,
    SERVING_SECRET,
    SHARE_ANNOTATION,
    WEBHOOK_CONFIGURATION,
)

_WEBHOOK_PORT: Final = 8443
_NOT_FOUND: Final = 404
_FORBIDDEN: Final = 403
# What an installation creates, and by which rights: group, resource, whether it is in our namespace.
_CREATES: Final = (
    ("", "namespaces", False),
    ("apps", "deployments", True),
    ("apps", "daemonsets", True),
    ("", "configmaps", True),
    ("rbac.authorization.k8s.io", "roles", True),
    ("rbac.authorization.k8s.io", "clusterroles", False),
    ("admissionregistration.k8s.io", "mutatingwebhookconfigurations", False),
    ("admissionregistration.k8s.io", "validatingadmissionpolicies", False),
)

Found = dict[str, Any]  # fields of Installation


def inspect(api: ApiServer, *, pre: bool) -> Installation:
    """Look at all of it, or with *pre* at what is there before an installation."""
    looks: dict[str, tuple[str, Callable[[], Found]]] = {
        "version": ("get /version", lambda: {"version": _version(api)}),
        "apis": ("get /apis", lambda: {"apis": _apis(api)}),
    }
    if pre:
        looks["rights"] = ("create selfsubjectaccessreviews", lambda: {"rights": _rights(api)})
    else:
        looks |= {
            "webhook": ("get mutatingwebhookconfigurations", lambda: _webhook(api)),
            "attempt": (f"create pods in namespace {api.namespace}", lambda: {"attempt": _attempt(api)}),
            "serving_certificate": (f"get secrets in namespace {NAMESPACE}", lambda: _serving(api)),
            "policies": (f"list configmaps in namespace {NAMESPACE}", lambda: _policies(api)),
            "namespaces": ("list namespaces", lambda: {"namespaces": _namespaces(api)}),
        }
    with ThreadPoolExecutor(len(looks)) as threads:
        asked = {name: threads.submit(_look, name, *one) for name, one in looks.items()}
        seen = look(api)
        found: Found = {"ready": {} if pre else _ready(api, seen)}
        missing: dict[str, Unseen] = {}
        for name, answer in asked.items():
            answered = answer.result()
            if isinstance(answered, Unseen):
                missing[name] = answered
            else:
                found |= answered
    return Installation(seen=seen, unseen=missing, **found)


def _look(name: str, right: str, read_it: Callable[[], Found]) -> Found | Unseen:
    try:
        return read_it()
    except UnseenError as error:
        return unseen(name, error, right)


def _version(api: ApiServer) -> Shown:
    class _Version(msgspec.Struct, frozen=True):
        gitVersion: Shown = Shown("")  # noqa: N815 - as the API server spells it

    return api.one(_Version, "/version").gitVersion


def _apis(api: ApiServer) -> frozenset[str]:
    class _GroupVersion(msgspec.Struct, frozen=True):
        groupVersion: str = ""  # noqa: N815 - likewise

    class _Group(msgspec.Struct, frozen=True):
        versions: tuple[_GroupVersion, ...] = ()

    class _Groups(msgspec.Struct, frozen=True):
        groups: tuple[_Group, ...] = ()

    return frozenset(one.groupVersion for group in api.one(_Groups, "/apis").groups for one in group.versions)


def _rights(api: ApiServer) -> dict[str, bool]:
    """Ask which rights to install the user has."""

    class _Answer(msgspec.Struct, frozen=True):
        allowed: bool = False

    class _Review(msgspec.Struct, frozen=True):
        status: _Answer = _Answer()

    rights = {}
    for group, resource, is_ours in _CREATES:
        attributes = {"verb": "create", "group": group, "resource": resource, "namespace": NAMESPACE if is_ours else ""}
        body = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": attributes},
        }
        status, content = api.post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", body)
        if status not in SUCCEEDED:
            raise UnseenError(message_of(content), status=status)
        rights[resource] = decoded(_Review, content).status.allowed
    return rights


def _webhook(api: ApiServer) -> Found:
    path = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
    try:
        return {"webhook": api.one(WebhookConfiguration, f"{path}/{WEBHOOK_CONFIGURATION}"), "has_webhook": True}
    except UnseenError as error:
        if error.status == _NOT_FOUND:
            return {"has_webhook": False}
        raise


def _attempt(api: ApiServer) -> Attempt:
    """Have the API server review a pod whose share is invalid, and create nothing."""
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"generateName": "gpu-share-doctor-", "annotations": {SHARE_ANNOTATION: "doctor"}},
        "spec": {"containers": [{"name": "main", "image": "gpu-share-doctor"}]},
    }
    status, content = api.post(path_of("api", "v1", "namespaces", api.namespace, "pods"), pod, {"dryRun": "All"})
    message = message_of(content)
    if status == _FORBIDDEN and " cannot create resource " in message:
        raise UnseenError(message, status=status)
    return Attempt(namespace=api.namespace, status=status, message=Shown(message))


def _serving(api: ApiServer) -> Found:
    """Read the certificate that the webhook serves; of the Secret nothing else is kept."""

    class _Certificate(msgspec.Struct, frozen=True):
        certificate: str = msgspec.field(name="tls.crt", default="")

    class _Secret(msgspec.Struct, frozen=True):
        data: _Certificate = _Certificate()

    try:
        secret = api.one(_Secret, path_of("api", "v1", "namespaces", NAMESPACE, "secrets", SERVING_SECRET))
        return {"serving_certificate": b64decode(secret.data.certificate)}
    except Base64Error:
        return {"serving_certificate": b""}
    except UnseenError as error:
        if error.status == _NOT_FOUND:
            return {"serving_certificate": b""}
        raise


def _policies(api: ApiServer) -> Found:
    policies, problems = read_policies(api)
    return {"policies": policies, "policy_problems": problems}


def _namespaces(api: ApiServer) -> dict[str, dict[str, str]]:
    return {str(one.metadata.name): one.metadata.labels for one in api.all(Namespace, "/api/v1/namespaces")}


def _ready(api: ApiServer, seen: Seen) -> dict[str, str]:
    """Ask each webhook pod what an administrator should mend."""
    return {
        str(pod.metadata.name): _answer(api, pod)
        for pod in seen.parts
        if pod.metadata.labels.get(COMPONENT_LABEL) == "webhook" and pod.status.phase == "Running"
    }


def _answer(api: ApiServer, pod: Pod) -> str:
    name = f"https:{pod.metadata.name}:{_WEBHOOK_PORT}"
    try:
        content = api.get(
            path_of("api", "v1", "namespaces", NAMESPACE, "pods", name, "proxy", "readyz"), largest_bytes=65536
        )
    except UnseenError as error:
        return f"no answer: {error}"
    # One line for each trouble: lines are kept, and what is in them is made harmless.
    return "\n".join(Shown(line) for line in content.decode(errors="replace").splitlines())
