"""
What installing takes: to apply each kind of object, and to grant what the roles among them have.

Who creates a role must have what is in it, or `escalate` on roles; who binds it the same, or `bind`.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from itertools import product
from typing import Final, NamedTuple

import msgspec

from console.api_server import ApiServer, UnseenError, decoded
from console.doctor.installation import SUCCEEDED
from console.no_answer import message_of
from console.threads import asking
from policies.contract import CA_SECRET, NAMESPACE, SERVING_SECRET, WEBHOOK_CONFIGURATION


class Right(NamedTuple):
    """The right to do something with objects in one namespace, or in all, or with one of them."""

    verb: str
    group: str
    resource: str  # or `<resource>/<subresource>`
    namespace: str = ""
    name: str = ""


_RBAC: Final = "rbac.authorization.k8s.io"
_ADMISSION: Final = "admissionregistration.k8s.io"
_ALL: Final = Right("*", "*", "*")  # a cluster administrator has it
_APPLYING: Final = ("get", "create", "patch")  # of kubectl apply: patch for what is there already
_APPLIED: Final = (  # group, resource and namespace
    ("", "namespaces", ""),
    ("apps", "deployments", NAMESPACE),
    ("apps", "daemonsets", NAMESPACE),
    ("", "configmaps", NAMESPACE),
    ("", "resourcequotas", NAMESPACE),
    ("", "serviceaccounts", NAMESPACE),
    ("", "services", NAMESPACE),
    ("networking.k8s.io", "networkpolicies", NAMESPACE),
    ("policy", "poddisruptionbudgets", NAMESPACE),
    (_RBAC, "roles", NAMESPACE),
    (_RBAC, "rolebindings", NAMESPACE),
    (_RBAC, "clusterroles", ""),
    (_RBAC, "clusterrolebindings", ""),
    (_ADMISSION, "mutatingwebhookconfigurations", ""),
    (_ADMISSION, "validatingadmissionpolicies", ""),
    (_ADMISSION, "validatingadmissionpolicybindings", ""),
)
_GRANTING: Final = ("escalate", "bind")  # either with roles, or else what is in them
_GRANTED: Final = {
    "roles": (
        *(
            Right(*one)
            for one in product(("get", "patch"), [""], ["secrets"], [NAMESPACE], [SERVING_SECRET, CA_SECRET])
        ),
        Right("create", "", "secrets", NAMESPACE),
        Right("list", "", "pods", NAMESPACE),
        Right("get", "", "pods/proxy", NAMESPACE),
    ),
    "clusterroles": (
        Right("get", _ADMISSION, "mutatingwebhookconfigurations", name=WEBHOOK_CONFIGURATION),
        Right("patch", _ADMISSION, "mutatingwebhookconfigurations", name=WEBHOOK_CONFIGURATION),
        *(Right("list", "", resource) for resource in ("nodes", "pods", "events")),
    ),
}


def lacking(api: ApiServer) -> tuple[str, ...]:
    """
    Name what the user may not do of what installing takes.

    Raises:
        UnseenError: If that may not be asked.
    """
    if _has(api, _ALL):
        return ()
    asked = [*(_applying(*one, verb=verb) for one in _APPLIED for verb in _APPLYING), *_of_roles()]
    with asking(api) as threads:
        has = dict(zip(asked, threads.map(partial(_has, api), asked), strict=True))
    return (*_not_applied(has), *_not_granted(has))


def _applying(group: str, resource: str, namespace: str, *, verb: str) -> Right:
    return Right(verb, group, resource, namespace)


def _of_roles() -> Iterator[Right]:
    for resource, granted in _GRANTED.items():
        yield from (_granting(verb, resource) for verb in _GRANTING)
        yield from granted


def _granting(verb: str, resource: str) -> Right:
    return Right(verb, _RBAC, resource, NAMESPACE if resource == "roles" else "")


def _not_applied(has: Mapping[Right, bool]) -> Iterator[str]:
    for one in _APPLIED:
        if verbs := [verb for verb in _APPLYING if not has[_applying(*one, verb=verb)]]:
            yield f"{', '.join(verbs)} {one[1]}"


def _not_granted(has: Mapping[Right, bool]) -> Iterator[str]:
    for resource, granted in _GRANTED.items():
        missing = [f"{one.verb} {one.resource} {one.name}".rstrip() for one in granted if not has[one]]
        if missing and not all(has[_granting(verb, resource)] for verb in _GRANTING):
            yield f"grant by {resource}, which takes escalate and bind, or the same rights: {', '.join(missing)}"


def _has(api: ApiServer, right: Right) -> bool:
    class _Answer(msgspec.Struct, frozen=True):
        allowed: bool = False

    class _Review(msgspec.Struct, frozen=True):
        status: _Answer = _Answer()

    resource, _, subresource = right.resource.partition("/")
    body = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": right._asdict() | {"resource": resource, "subresource": subresource}},
    }
    status, content = api.post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", body)
    if status not in SUCCEEDED:
        raise UnseenError(message_of(content), status=status)
    return decoded(_Review, content).status.allowed
