"""An API server in memory, with what a pass can meet: permissions, validation, conflicts, patches."""

import base64
import binascii
import copy
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import jsonpatch

Object = dict[str, Any]
_PATH = re.compile(
    r"/api/v1/namespaces/(?P<namespace>[^/]+)/(?P<secrets>secrets)(/(?P<secret>[^/]+))?"
    r"|/apis/admissionregistration.k8s.io/v1/(?P<configurations>mutatingwebhookconfigurations)/(?P<name>[^/]+)"
)
_VERBS = {"GET": "get", "POST": "create", "PATCH": "patch", "PUT": "update", "DELETE": "delete"}


class RejectedError(Exception):
    """The API server rejects a request."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass
class Call:
    """One request: the verb and the object."""

    verb: str
    resource: str
    name: str

    def __str__(self) -> str:
        return f"{self.verb} {self.resource} {self.name}".strip()


@dataclass
class SimulatedApiServer:
    """Objects by name, and the permissions of its client: `verb resource name`; None grants all."""

    namespace: str = "gpu-share"
    permissions: set[str] | None = None
    before: Callable[[Call], None] = lambda _: None
    after: Callable[[], None] = lambda: None
    objects: dict[str, Object] = field(default_factory=dict)
    calls: list[tuple[Call, str, Any]] = field(default_factory=list)
    writes: int = 0  # the newest resourceVersion
    date: str = ""  # as its answers say it; empty if they do not

    def handle(self, method: str, path: str, content_type: str, body: bytes) -> tuple[int, Object]:
        """Return the status and the object with which the API server answers one request."""
        found = _PATH.fullmatch(path)
        if not found:
            return 404, {"kind": "Status", "message": "the server could not find the requested resource"}
        try:
            resource = found["secrets"] or found["configurations"]
            call = Call(_VERBS[method], resource, found["secret"] or found["name"] or "")
            content = json.loads(body) if body else None
            self.before(call)
            self.calls.append((call, content_type, content))
            return self._answer(call, found["namespace"], content_type, content)
        except RejectedError as rejected:
            return rejected.status, {"kind": "Status", "status": "Failure", "message": str(rejected)}

    def put(self, name: str, changed: Object | None) -> None:
        """Store as an administrator would; None deletes."""
        if changed is None:
            self.objects.pop(name, None)
        else:
            self.writes += 1
            metadata = changed.setdefault("metadata", {})
            metadata |= {"name": name, "resourceVersion": str(self.writes)}
            self.objects[name] = changed
        self.after()

    def _answer(self, call: Call, namespace: str | None, content_type: str, content: Any) -> tuple[int, Object]:
        if self.permissions is not None and str(call) not in self.permissions:
            raise RejectedError(403, f'{call.resource} "{call.name}" is forbidden: User "passes" cannot {call.verb}')
        there = namespace in (None, self.namespace)
        match call.verb:
            case "create":
                if not there:
                    raise RejectedError(404, f'namespaces "{namespace}" not found')
                return 201, self._create(content)
            case "get" | "patch" if not there or call.name not in self.objects:
                raise RejectedError(404, f'{call.resource} "{call.name}" not found')
            case "get":
                return 200, copy.deepcopy(self.objects[call.name])
            case "patch":
                return 200, self._patch(call.name, content_type, content)
            case _:
                raise RejectedError(405, f"{call.verb}: passes do nothing but get, create and patch")

    def _create(self, content: Object) -> Object:
        name = content["metadata"]["name"]
        if content["metadata"].get("resourceVersion"):
            raise RejectedError(400, "resourceVersion should not be set on objects to be created")
        if name in self.objects:
            raise RejectedError(409, f'secrets "{name}" already exists')
        _check(content)
        self.put(name, content)
        return copy.deepcopy(content)

    def _patch(self, name: str, content_type: str, content: Any) -> Object:
        before = self.objects[name]
        changed = _patched(before, content_type, content)
        if changed["metadata"]["resourceVersion"] != before["metadata"]["resourceVersion"]:
            raise RejectedError(409, f'Operation cannot be fulfilled on "{name}": the object has been modified')
        _check(changed)
        _check_update(before, changed)
        if changed != before:
            self.put(name, changed)
        return copy.deepcopy(changed)


def _patched(before: Object, content_type: str, content: Any) -> Object:
    match content_type:
        case "application/json-patch+json":
            try:
                return dict(jsonpatch.apply_patch(before, content))
            except jsonpatch.JsonPatchException as error:
                raise RejectedError(422, f"the server rejected our request: {error}") from None
        case "application/merge-patch+json":
            return dict(_merged(before, content, keyed=False))
        case "application/strategic-merge-patch+json":
            return dict(_merged(before, content, keyed=True))
        case _:
            raise RejectedError(415, f"the body of the request was in an unknown format: {content_type}")


def _merged(before: Any, patch: Any, *, keyed: bool) -> Any:
    """Merge as RFC 7396 says; *keyed* as a strategic merge, which finds webhooks by their names."""
    if not isinstance(patch, dict):
        return patch
    merged = copy.deepcopy(before) if isinstance(before, dict) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        elif keyed and name == "webhooks":
            merged[name] = _merged_by_name(merged.get(name, []), value)
        else:
            merged[name] = _merged(merged.get(name), value, keyed=keyed)
    return merged


def _merged_by_name(before: list[Object], patch: list[Object]) -> list[Object]:
    entries = {entry["name"]: entry for entry in before}
    for entry in patch:
        entries[entry["name"]] = _merged(entries.get(entry["name"]), entry, keyed=True)
    return list(entries.values())


def _check(changed: Object) -> None:
    """Reject what the API server's validation rejects."""
    for value in (changed.get("data") or {}).values():
        try:
            base64.b64decode(value, validate=True)
        except (binascii.Error, TypeError):
            raise RejectedError(400, "illegal base64 data") from None
    if changed.get("type") == "kubernetes.io/tls" and not {"tls.crt", "tls.key"} <= changed["data"].keys():
        raise RejectedError(422, "data[tls.crt], data[tls.key]: Required value")
    for webhook in changed.get("webhooks", []):
        if missing := {"name", "clientConfig", "sideEffects", "admissionReviewVersions"} - webhook.keys():
            raise RejectedError(422, f"webhooks[0]: Required value: {sorted(missing)}")
        if len({"service", "url"} & webhook["clientConfig"].keys()) != 1:
            raise RejectedError(422, "webhooks[0].clientConfig: exactly one of url or service is required")


def _check_update(before: Object, changed: Object) -> None:
    if before.get("type") != changed.get("type"):
        raise RejectedError(422, "type: Invalid value: field is immutable")
    if before["metadata"]["name"] != changed["metadata"]["name"]:
        raise RejectedError(422, "metadata.name: Invalid value: field is immutable")
    if before.get("immutable") and before.get("data") != changed.get("data"):
        raise RejectedError(422, "data: Forbidden: field is immutable when `immutable` is set")
