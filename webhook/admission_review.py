"""AdmissionReview v1 of Kubernetes, as far as it is needed: what the API server sends, and what it gets."""

import msgspec

from policies.pod import Pod


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


class ChangeRequest(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """What a request to change a pod says of it as it is."""

    old_object: Pod


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


class ChangeReview(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """
    A call about the change of a pod, without the pod as it is to be.

    That was decoded before it was known that this one is needed: with both in it, a pod would be in memory twice.
    """

    request: ChangeRequest


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
    patch: bytes | None = None  # in JSON they are base64
    status: Status | None = None
    warnings: list[str] | None = None
    audit_annotations: dict[str, str] | None = None
