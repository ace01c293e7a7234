"""Look at an installation: what the checks of `gpu-share doctor` judge. Nothing in the cluster is changed."""

from collections.abc import Callable, Mapping
from importlib.metadata import version as version_of
from typing import Any, Final

from console.api_server import TOO_MANY_REQUESTS, ApiServer, ForeignError, UnseenError, decoded, path_of
from console.cluster_policies import RIGHT as POLICIES_RIGHT
from console.cluster_policies import ConfigMap, config_maps, policies_in
from console.doctor.admission import AdmissionPolicy, Binding, WebhookConfiguration
from console.doctor.installation import SUCCEEDED, Attempt, Installation
from console.doctor.parts import parts
from console.doctor.rights import lacking
from console.doctor.served import apis, classes, gates, slices, toolkits, version
from console.look import look, unseen
from console.no_answer import message_of
from console.objects import Metadata, Object, Pod
from console.policy_sources import sources_seen
from console.seen import Seen, Unseen
from console.serving_certificate import RIGHT, serving_certificate
from console.threads import asking
from console.words import Shown
from policies.contract import NAMESPACE, SHARE_ANNOTATION, WEBHOOK_CONFIGURATION

_ADMISSION: Final = "/apis/admissionregistration.k8s.io/v1"
_WEBHOOK_PORT: Final = 8443
_NOT_FOUND: Final = 404
_FORBIDDEN: Final = 403
_SERVER_ERROR: Final = 500
Found = dict[str, Any]  # fields of Installation


def inspect(api: ApiServer, *, pre: bool) -> Installation:
    """Look at all of it, or with *pre* at what is there before an installation."""
    looks: dict[str, tuple[str, Callable[[], Found]]] = {
        "version": ("get /version", lambda: {"version": version(api)}),
        "apis": ("get /apis", lambda: {"apis": apis(api)}),
        "gates": ("get /metrics of the API server", lambda: {"gates": gates(api)}),
        "slices": ("list resourceslices", lambda: {"slices": slices(api)}),
    }
    if pre:
        looks["lacking_rights"] = ("create selfsubjectaccessreviews", lambda: {"lacking_rights": lacking(api)})
    else:
        looks |= {
            "classes": ("list deviceclasses", lambda: {"classes": classes(api)}),
            "toolkits": ("list pods", lambda: {"toolkits": toolkits(api)}),
            "webhook": ("get mutatingwebhookconfigurations", lambda: _webhook(api)),
            "admission_policies": ("list validatingadmissionpolicies", lambda: {"admission_policies": _policed(api)}),
            "bindings": ("list validatingadmissionpolicybindings", lambda: {"bindings": _bindings(api)}),
            "attempt": (f"create pods in namespace {api.namespace}", lambda: {"attempt": _attempt(api)}),
            "serving_certificate": (RIGHT, lambda: _serving(api)),
            "namespaces": ("list namespaces", lambda: {"namespaces": _namespaces(api)}),
        }
    with asking(api) as threads:
        asked = {name: threads.submit(_look, name, *one) for name, one in looks.items()}
        listed = None if pre else threads.submit(config_maps, api)
        seen = look(api)
        found: Found = {"ready": {} if pre else _ready(api, seen)}
        answers = {name: answer.result() for name, answer in asked.items()}
        if listed is not None:  # which of them count is seen by the pods
            answers["policies"] = _look("policies", POLICIES_RIGHT, lambda: _policies(listed.result(), seen))
        missing: dict[str, Unseen] = {}
        for name, answered in answers.items():
            if isinstance(answered, Unseen):
                missing[name] = answered
            else:
                found |= answered
    return Installation(seen=seen, program=version_of("gpu-share"), unseen=missing, **found)


def _look(name: str, right: str, read_it: Callable[[], Found | Unseen]) -> Found | Unseen:
    try:
        return read_it()
    except UnseenError as error:
        return unseen(name, error, right)


def _webhook(api: ApiServer) -> Found:
    path = f"{_ADMISSION}/mutatingwebhookconfigurations/{WEBHOOK_CONFIGURATION}"
    try:
        return {"webhook": api.one(WebhookConfiguration, path), "has_webhook": True}
    except UnseenError as error:
        if _is_missing(error):
            return {"has_webhook": False}
        raise


def _is_missing(error: UnseenError) -> bool:
    """Whether the API server says that something is not there; a load balancer knows nothing of it."""
    return error.status == _NOT_FOUND and not isinstance(error, ForeignError)


def _policed(api: ApiServer) -> dict[str, AdmissionPolicy]:
    found = api.all(AdmissionPolicy, f"{_ADMISSION}/validatingadmissionpolicies")
    return {str(one.metadata.name): one for one in found if one.metadata.name.startswith(NAMESPACE)}


def _bindings(api: ApiServer) -> tuple[Binding, ...]:
    return tuple(api.all(Binding, f"{_ADMISSION}/validatingadmissionpolicybindings"))


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
    is_forbidden = status == _FORBIDDEN and " cannot create resource " in message
    # What fails in the API server, or before it, says nothing of the webhook; what fails in a webhook names it.
    is_elsewhere = status >= _SERVER_ERROR and "webhook" not in message
    if status == TOO_MANY_REQUESTS or is_forbidden or is_elsewhere or not (message or status in SUCCEEDED):
        raise UnseenError(message or f"HTTP {status}", status=status)
    if status in SUCCEEDED:
        decoded(Pod, content)  # else it was no API server that answered
    return Attempt(namespace=api.namespace, status=status, message=Shown(message))


def _serving(api: ApiServer) -> Found:
    try:
        return {"serving_certificate": serving_certificate(api)}
    except UnseenError as error:
        if _is_missing(error):
            return {"serving_certificate": b""}
        raise


def _policies(listed: Mapping[str, ConfigMap], seen: Seen) -> Found | Unseen:
    sources = sources_seen(seen)
    if isinstance(sources, Unseen):
        return sources
    policies, problems = policies_in(listed, sources)
    keys = {name: frozenset(one.files) for name, one in listed.items()}
    return {"policies": policies, "policy_problems": problems, "config_map_keys": keys}


def _namespaces(api: ApiServer) -> dict[str, Metadata]:
    return {str(one.metadata.name): one.metadata for one in api.all(Object, "/api/v1/namespaces")}


def _ready(api: ApiServer, seen: Seen) -> dict[str, str]:
    """Ask each webhook pod what an administrator should mend."""
    return {
        str(pod.metadata.name): _answer(api, pod) for pod in parts(seen, "webhook") if pod.status.phase == "Running"
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
