"""AdmissionReview v1 to values and back: what the API server sends, what it gets, what the log says of it."""

import re
from base64 import b64encode
from textwrap import wrap
from typing import Any, Final

import msgspec

from policies.decision import decide
from policies.denial import shorten
from policies.errors import GpuShareError
from policies.grant import Decision, Denied, Grant, Untouched
from policies.pod import Pod
from policies.policy_set import PolicySet
from webhook.patch import operations

DEEPEST: Final = 500  # levels of nesting; a pod has about 15
_PREFIX = "gpu-share: "
_MOST_NAMED = 16  # containers in a log line or audit annotation; more are counted by nobody
LONGEST_WARNING: Final = 120  # characters, as the API's documentation asks

_USUAL_DEPTH = 32
_LARGEST_COUNTED = 1024 * 1024  # bytes
_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))


class BadCall(GpuShareError):  # noqa: N818 - the name says what it is: the call is bad, not the pod
    """An invalid call: HTTP 400, with this sentence."""


class Kind(msgspec.Struct, frozen=True, gc=False):
    """What the object is."""

    kind: str
    group: str = ""


class Request(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The fields of an admission request that are needed."""

    uid: str
    kind: Kind
    namespace: str = ""
    operation: str = "CREATE"
    sub_resource: str = ""


class PodRequest(Request, frozen=True, gc=False, rename="camel", kw_only=True):
    """A request with a pod in it."""

    object: Pod


class AdmissionReview(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """A call, whatever it is about."""

    api_version: str
    kind: str
    request: Request


class PodReview(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """A call about a pod."""

    api_version: str
    kind: str
    request: PodRequest


class Status(msgspec.Struct, frozen=True, gc=False):
    """Why a pod is denied, as the user sees it."""

    code: int
    reason: str
    message: str


class Response(msgspec.Struct, gc=False, rename="camel", omit_defaults=True):
    """The answer."""

    uid: str
    allowed: bool
    patch_type: str | None = None
    patch: str | None = None  # base64
    status: Status | None = None
    warnings: list[str] | None = None
    audit_annotations: dict[str, str] | None = None


class Reviewed(msgspec.Struct, frozen=True, gc=False):
    """The answer as bytes, and the fields of its log line: names and numbers, never the pod."""

    body: bytes
    event: dict[str, Any]


_decode_review = msgspec.json.Decoder(AdmissionReview).decode
_decode_pod_review = msgspec.json.Decoder(PodReview).decode
_encode = msgspec.json.encode
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def review(body: bytes, policies: PolicySet) -> Reviewed:
    """
    Answer one call.

    Raises:
        BadCall: If *body* is not an AdmissionReview v1 of a pod.
    """
    if not body:
        raise BadCall("expected an AdmissionReview, got an empty body")
    if _is_too_deep(body):
        raise BadCall(f"nested deeper than {DEEPEST} levels")
    try:
        called = _decode_pod_review(body)
    except _UNREADABLE as error:
        return _without_pod(body, error)
    _check(called)
    request, pod = called.request, called.request.object
    if _is_passed_over(request):
        return _answer(request, None, _NOT_A_CREATION)
    namespace = request.namespace or pod.metadata.namespace or "default"
    return _answer(request, pod, decide(pod, namespace, policies))


# A pod's resources, environment and volumes cannot change after it is created.
_NOT_A_CREATION = Untouched("only the creation of a pod is decided on")


def _is_passed_over(request: Request) -> bool:
    return request.operation != "CREATE" or bool(request.sub_resource)


def _without_pod(body: bytes, reason: Exception) -> Reviewed:
    """Say what is wrong with a call that holds no readable pod, unless it need not hold one."""
    try:
        called = _decode_review(body)
    except _UNREADABLE as error:
        raise BadCall(f"expected an AdmissionReview of admission.k8s.io/v1: {_plain(error)}") from None
    _check(called)
    if _is_passed_over(called.request):
        return _answer(called.request, None, _NOT_A_CREATION)
    raise BadCall(f"the object is not a pod: {_plain(reason)}")


def _check(called: AdmissionReview | PodReview) -> None:
    if called.kind != "AdmissionReview" or called.api_version != "admission.k8s.io/v1":
        got = f"{called.kind} {called.api_version}"
        raise BadCall(f"expected an AdmissionReview of admission.k8s.io/v1, got {shorten(ascii(got), 80)}")
    if not called.request.uid:
        raise BadCall("expected a uid in the request, got none")
    kind = called.request.kind
    if kind.kind != "Pod" or kind.group:
        got = shorten(ascii(f"{kind.group}/{kind.kind}" if kind.group else kind.kind), 80)
        raise BadCall(f"expected a Pod of the core group, got {got}: narrow the webhook's rules to pods")


def _is_too_deep(body: bytes) -> bool:
    """
    Whether the brackets nest deeper than DEEPEST.

    Almost free for a usual pod, and bounded for every other body: the decoder has a limit of its own, only a less
    even one, so what is very large is left to it.
    """
    if len(body) > _LARGEST_COUNTED:
        return False
    brackets = body.translate(None, _NO_BRACKETS)
    if len(brackets) <= 2 * DEEPEST:
        return False
    for _ in range(_USUAL_DEPTH):  # each round takes the innermost level off
        inner, brackets = brackets, brackets.replace(b"{}", b"").replace(b"[]", b"")
        if not brackets:
            return False
        if len(brackets) == len(inner):
            break
    depth = 0
    for bracket in _STRING.sub(b"", body).translate(None, _NO_BRACKETS):
        depth += 1 if bracket in b"[{" else -1
        if depth > DEEPEST:
            return True
    return False


def _answer(request: Request, pod: Pod | None, decision: Decision) -> Reviewed:
    named = (pod.metadata.name or pod.metadata.generate_name or "") if pod is not None else ""
    event = {
        "uid": shorten(request.uid, 64),
        "namespace": shorten(request.namespace, 64),
        "pod": shorten(named, 253),
        "policy": "",
        "decision": "untouched",
        "code": "",
        "shares": {},
    }
    match decision:
        case Grant() if pod is not None:
            response = _granted(request, pod, decision)
            shares = {shorten(one.slot.name, 63): one.share_text for one in decision.containers[:_MOST_NAMED]}
            event |= {"policy": decision.policy.name, "decision": "granted", "shares": shares}
        case Denied(policy):
            code = decision.deny.code
            status = Status(code=403, reason=code, message=decision.message)
            audit = {"policy": policy.name}
            response = Response(uid=request.uid, allowed=False, status=status, audit_annotations=audit)
            event |= {"policy": policy.name, "decision": "denied", "code": code}
        case _:
            response = Response(uid=request.uid, allowed=True, warnings=_printable(decision.warnings))
            if isinstance(decision, Untouched) and decision.denied is not None:
                event |= {"policy": decision.denied.policy.name, "code": decision.denied.deny.code}
                response.audit_annotations = {"policy": decision.denied.policy.name}
    answer = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}
    return Reviewed(body=_encode(answer), event=event)


def _granted(request: Request, pod: Pod, grant: Grant) -> Response:
    made = operations(pod, grant)
    named = grant.containers[:_MOST_NAMED]
    audit = {
        "policy": grant.policy.name,
        "share": ",".join([f"{shorten(one.slot.name, 63)}={one.share_text}" for one in named]),
        "vgpus": ",".join([f"{shorten(one.slot.name, 63)}={one.vgpus}" for one in named]),
    }
    return Response(
        uid=request.uid,
        allowed=True,
        patch_type="JSONPatch" if made else None,
        patch=b64encode(_encode(made)).decode() if made else None,
        warnings=_printable(grant.warnings),
        audit_annotations=audit,
    )


def _printable(warnings: tuple[str, ...]) -> list[str] | None:
    """Cut what is too long for one warning into several, between words."""
    if not warnings:
        return None
    room = LONGEST_WARNING - len(_PREFIX)
    return [f"{_PREFIX}{line}" for text in warnings for line in (wrap(text, room) if len(text) > room else [text])]


def _plain(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "nested too deep"
    return shorten(str(error).replace("`", ""), 160)
