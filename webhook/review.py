"""From an AdmissionReview to its answer, and what the log says of it."""

import re
from typing import Any, Final

import msgspec

from policies.decision import decide, decide_on_unread
from policies.denial import DeniedError, shorten
from policies.ephemeral import decide_on_added
from policies.errors import GpuShareError
from policies.grant import Added, Decision, Denied, Grant, Untouched
from policies.pod import Pod
from policies.policy_set import PolicySet
from policies.size import check_separators
from webhook.admission_review import AdmissionReview, ChangeReview, PodReview, Request, Response, Status
from webhook.nesting import DEEPEST, is_too_deep
from webhook.patch import Operation, hiding, operations
from webhook.warning_lines import printable

_MOST_NAMED = 16  # containers in a log line or audit annotation; more are counted by nobody
LONGEST_UID: Final = 128 * 1024  # characters; the API server's have 36
LONGEST_ANSWER: Final = 1024 * 1024  # bytes; what it is made of is bounded by policies/size.py, and a test holds it


class BadCall(GpuShareError):  # noqa: N818 - the name says what it is: the call is bad, not the pod
    """An invalid call: HTTP 400, with this sentence."""


class Reviewed(msgspec.Struct, frozen=True, gc=False):
    """The answer as bytes, and the fields of its log line: names and numbers, never the pod."""

    body: bytes
    event: dict[str, Any]


_decode_review = msgspec.json.Decoder(AdmissionReview).decode
_decode_pod_review = msgspec.json.Decoder(PodReview).decode
_decode_change = msgspec.json.Decoder(ChangeReview).decode
_encode = msgspec.json.encode
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_TOO_LONG = re.compile(r"Expected str(?: \| null)? of length <= (\d+) - at \$\.request\.object\.(\S+)")


def review(body: bytes | bytearray, policies: PolicySet, *, restricted: bool = False) -> Reviewed:
    """
    Answer one call; *restricted*: Pod Security forbids hostIPC and hostPath volumes in the namespace.

    Raises:
        BadCall: If *body* is not an AdmissionReview v1 of a pod.
    """
    if not body:
        raise BadCall("expected an AdmissionReview, got an empty body")
    try:
        check_separators(body)
        called = _decode_pod_review(body)
    except DeniedError as error:
        return _undecoded(body, error, policies)
    except _UNREADABLE as error:
        if too_long := _TOO_LONG.match(_plain(error)):
            what = f"A path or name in the pod has more than {too_long[1]} characters ({too_long[2]})"
            return _undecoded(body, DeniedError("PodTooLarge", what, "Shorten it: no pod starts with it"), policies)
        return _without_pod(body, error)
    _check(called)
    request, pod = called.request, called.request.object
    if _is_passed_over(request):
        return _answer(request, None, _NOT_DECIDED_ON)
    namespace = request.namespace or pod.metadata.namespace or "default"
    if request.sub_resource:
        return _answer(request, pod, decide_on_added(pod, _before(body), namespace, policies))
    return _answer(request, pod, decide(pod, namespace, policies, restricted=restricted))


# Nothing else of a pod's containers, environment and volumes can change after it is created.
_NOT_DECIDED_ON = Untouched("only the creation of a pod and its ephemeral containers are decided on")


def _is_passed_over(request: Request) -> bool:
    if request.sub_resource:
        return request.sub_resource != "ephemeralcontainers" or request.operation != "UPDATE"
    return request.operation != "CREATE"


def _before(body: bytes | bytearray) -> Pod:
    try:
        return _decode_change(body).request.old_object
    except _UNREADABLE as error:
        raise BadCall(f"the oldObject is not a pod: {_plain(error)}") from None


def _without_pod(body: bytes | bytearray, reason: Exception) -> Reviewed:
    """Say what is wrong with a call that holds no readable pod, unless it need not hold one."""
    called = _envelope(body)
    if _is_passed_over(called.request):
        return _answer(called.request, None, _NOT_DECIDED_ON)
    raise BadCall(f"the object is not a pod: {_plain(reason)}")


def _undecoded(body: bytes | bytearray, reason: DeniedError, policies: PolicySet) -> Reviewed:
    """Decide on a pod without looking at it; `mode: warn` says no more of it than this."""
    called = _envelope(body)
    if _is_passed_over(called.request):
        return _answer(called.request, None, _NOT_DECIDED_ON)
    return _answer(called.request, None, decide_on_unread(reason, called.request.namespace or "default", policies))


def _envelope(body: bytes | bytearray) -> AdmissionReview:
    """
    Decode all but the pod.

    Raises:
        BadCall: If it is no call that can be answered.
    """
    if is_too_deep(body):
        raise BadCall(f"nested deeper than {DEEPEST} levels")
    try:
        called = _decode_review(body)
    except _UNREADABLE as error:
        raise BadCall(f"expected an AdmissionReview of admission.k8s.io/v1: {_plain(error)}") from None
    _check(called)
    return called


def _check(called: AdmissionReview | PodReview) -> None:
    if called.kind != "AdmissionReview" or called.api_version != "admission.k8s.io/v1":
        got = f"{called.kind} {called.api_version}"
        raise BadCall(f"expected an AdmissionReview of admission.k8s.io/v1, got {shorten(ascii(got), 80)}")
    if not called.request.uid:
        raise BadCall("expected a uid in the request, got none")
    if len(called.request.uid) > LONGEST_UID:
        raise BadCall(f"expected a uid of at most {LONGEST_UID} characters, got {len(called.request.uid)}")
    kind = called.request.kind
    if kind.kind != "Pod" or kind.group:
        got = shorten(ascii(f"{kind.group}/{kind.kind}" if kind.group else kind.kind), 80)
        raise BadCall(f"expected a Pod of the core group, got {got}: narrow the webhook's rules to pods")


def _answer(request: Request, pod: Pod | None, decision: Decision | Added) -> Reviewed:
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
        case Added(policy, hidden, warnings=warnings):
            audit = {"policy": policy.name}
            response = _patching(request, hiding(decision), warnings, audit)
            event |= {"policy": policy.name, "decision": "hidden" if hidden else "untouched"}
        case Denied(policy):
            code = decision.deny.code
            status = Status(code=403, reason=code, message=decision.message)
            audit = {"policy": policy.name}
            response = Response(uid=request.uid, allowed=False, status=status, audit_annotations=audit)
            event |= {"policy": policy.name, "decision": "denied", "code": code}
        case _:
            response = Response(uid=request.uid, allowed=True, warnings=printable(decision.warnings))
            if isinstance(decision, Untouched) and decision.denied is not None:
                event |= {"policy": decision.denied.policy.name, "code": decision.denied.deny.code}
                response.audit_annotations = {"policy": decision.denied.policy.name}
    answer = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}
    return Reviewed(body=_encode(answer), event=event)


def _granted(request: Request, pod: Pod, grant: Grant) -> Response:
    named = grant.containers[:_MOST_NAMED]
    audit = {
        "policy": grant.policy.name,
        "share": ",".join([f"{shorten(one.slot.name, 63)}={one.share_text}" for one in named]),
        "vgpus": ",".join([f"{shorten(one.slot.name, 63)}={one.vgpus}" for one in named]),
    }
    return _patching(request, operations(pod, grant), grant.warnings, audit)


def _patching(request: Request, made: list[Operation], warnings: tuple[str, ...], audit: dict[str, str]) -> Response:
    return Response(
        uid=request.uid,
        allowed=True,
        patch_type="JSONPatch" if made else None,
        patch=_encode(made) if made else None,
        warnings=printable(warnings),
        audit_annotations=audit,
    )


def _plain(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "nested too deep"
    return shorten(str(error).replace("`", ""), 160)
