"""
Read and write the CA Secret, the serving Secret and the caBundle of each webhook in the webhook configuration.

Every write is a create, or a patch with the resourceVersion that was read: it changes only the fields
in it, and the API server rejects it with a conflict if the object has changed since.
"""

from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, TypeVar, assert_never

import msgspec
from kubernetes import client, config
from kubernetes.client.exceptions import ApiException
from urllib3.exceptions import HTTPError

from certs.errors import ClusterError, ConflictError, NotFoundError
from certs.pem import shared
from certs.rotation import CERTIFICATE, KEY, State, Write, WriteBundle, WriteCA, WriteServing
from policies.contract import CA_SECRET, SERVING_SECRET, WEBHOOK_CONFIGURATION, WEBHOOK_NAMES
from program.http_date import time_of

T = TypeVar("T")

_NOT_FOUND: Final = 404
_CONFLICT: Final = 409
_REMEDIES: Final = {
    401: "check the token of the ServiceAccount, or the kubeconfig",
    403: "grant the permission to this ServiceAccount or user",
    404: "create the namespace first",
    422: "if the object is immutable, delete it, and the next pass creates a new one",
}
_LONGEST_REASON: Final = 200  # of what others have written
_REQUEST: Final[dict[str, Any]] = {"_request_timeout": 10.0}  # seconds
_WRITE: Final = _REQUEST | {"field_manager": "gpu-share-certs"}
# A strategic merge finds the webhook by its name, wherever it stands in the list.
_PATCH: Final = _WRITE | {"_content_type": "application/strategic-merge-patch+json"}
_LABELS: Final = {"app.kubernetes.io/name": "gpu-share", "app.kubernetes.io/component": "certs"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """What was read, and the resourceVersion of each object that exists, by its name."""

    state: State
    versions: Mapping[str, str]
    webhooks: tuple[str, ...]  # those of ours that are there, by name
    time: datetime | None = None  # that the API server says it is; None if it does not


class Cluster:
    """The objects of one installation of gpu-share."""

    def __init__(self, api: client.ApiClient, *, namespace: str) -> None:
        self._core = client.CoreV1Api(api)
        self._admission = client.AdmissionregistrationV1Api(api)
        self._namespace = namespace
        self._time: datetime | None = None

    def read(self) -> Snapshot:
        """
        Return what the API server has now.

        Raises:
            ClusterError: If the API server cannot be reached, or rejects a request.
        """
        # The CA Secret last: it is written before anything that depends on it, so any CA that another pass has
        # put into the CA bundle or has issued a certificate with is in what is read here.
        configuration = self._configuration()
        serving = self._secret(SERVING_SECRET)
        ca = self._secret(CA_SECRET)
        annotations = ca.metadata.annotations if ca and ca.metadata else None
        bundles = _bundles(configuration)
        bundle, elsewhere = shared(list(bundles.values()))
        state = State(
            ca=_data(ca),
            annotations=annotations or {},
            serving=_data(serving),
            bundle=bundle,
            elsewhere=elsewhere,
        )
        objects = {WEBHOOK_CONFIGURATION: configuration, SERVING_SECRET: serving, CA_SECRET: ca}
        versions = {name: _version(each) for name, each in objects.items() if each}
        return Snapshot(state=state, versions=versions, webhooks=tuple(bundles), time=self._time)

    def write(self, write: Write, found: Snapshot) -> None:
        """
        Carry out *write*, unless its object has changed since *found* was read.

        Raises:
            ConflictError: If it has.
            ClusterError: If the API server cannot be reached, or rejects the request.
        """
        match write:
            case WriteBundle():
                self._write_bundle(write.bundle, found)
            case WriteCA():
                metadata = {"annotations": dict(write.annotations)}
                body = {"metadata": metadata, "data": _encoded(write.data), "type": "Opaque"}
                self._write_secret(CA_SECRET, body, version=found.versions.get(CA_SECRET))
            case WriteServing():
                data = _encoded({CERTIFICATE: write.pair.certificate_pem, KEY: write.pair.key_pem})
                body = {"metadata": {}, "data": data, "type": "kubernetes.io/tls"}
                self._write_secret(SERVING_SECRET, body, version=found.versions.get(SERVING_SECRET))
            case _:
                assert_never(write)

    def _configuration(self) -> client.V1MutatingWebhookConfiguration | None:
        name = WEBHOOK_CONFIGURATION
        return self._found(
            f"get mutatingwebhookconfigurations {name}",
            lambda: self._admission.read_mutating_webhook_configuration_with_http_info(name, **_REQUEST),
        )

    def _secret(self, name: str) -> client.V1Secret | None:
        return self._found(
            f"get secrets {name}",
            lambda: self._core.read_namespaced_secret_with_http_info(name, self._namespace, **_REQUEST),
        )

    def _found(self, what: str, call: Callable[[], tuple[T, int, Mapping[str, str] | None]]) -> T | None:
        """Read an object, None if there is none, and the time of the API server with either answer."""

        def found() -> tuple[T | None, Mapping[str, str] | None]:
            try:
                data, _, headers = call()
            except ApiException as error:
                if error.status != _NOT_FOUND:
                    raise
                return None, error.headers
            return data, headers

        data, headers = _call(what, found)
        self._time = time_of(headers or {})
        return data

    def _write_bundle(self, bundle: bytes, found: Snapshot) -> None:
        name = WEBHOOK_CONFIGURATION
        settings = {"caBundle": b64encode(bundle).decode()}
        webhooks = [{"name": webhook, "clientConfig": settings} for webhook in found.webhooks]
        body = {"metadata": {"resourceVersion": found.versions[name]}, "webhooks": webhooks}
        _patch(
            f"patch mutatingwebhookconfigurations {name}",
            lambda: self._admission.patch_mutating_webhook_configuration(name, body, **_PATCH),
        )

    def _write_secret(self, name: str, body: dict[str, Any], *, version: str | None) -> None:
        if version is None:
            body["metadata"] = {"name": name, "labels": _LABELS} | _without_nulls(body["metadata"])
            secret = client.V1Secret.model_validate(_without_nulls(body))
            _call(
                f"create secrets {name}", lambda: self._core.create_namespaced_secret(self._namespace, secret, **_WRITE)
            )
            return
        body["metadata"]["resourceVersion"] = version
        del body["type"]  # immutable
        _patch(
            f"patch secrets {name}",
            lambda: self._core.patch_namespaced_secret(name, self._namespace, body, **_PATCH),
        )


def _call(what: str, call: Callable[[], T]) -> T:
    try:
        return call()
    except ApiException as error:
        if error.status == _CONFLICT:
            raise ConflictError(what) from None
        kind = NotFoundError if error.status == _NOT_FOUND else ClusterError
        remedy = _REMEDIES.get(error.status, "see the log of the API server")
        raise kind(f"cannot {what}: {_message(error)}: {remedy}") from None
    except HTTPError as error:
        reason = " ".join(str(error).split())
        raise ClusterError(
            f"cannot {what}: the API server cannot be reached: {reason}: check its address and the network"
        ) from None
    except (config.ConfigException, OSError) as error:  # of the token, or of what gives it
        raise ClusterError(f"cannot {what}: {' '.join(str(error).split())}") from None
    except (ValueError, RecursionError) as error:
        reason = " ".join(f"{type(error).__name__} {error}".split())[:_LONGEST_REASON]
        raise ClusterError(
            f"cannot {what}: the answer is not what an API server gives: {reason}: is a proxy in between?"
        ) from None


def _patch(what: str, call: Callable[[], object]) -> None:
    try:
        _call(what, call)
    except NotFoundError as error:
        raise ConflictError(what) from error  # it existed when it was read


def _message(error: ApiException) -> str:
    """Return the API server's message in one line, or the status and reason where there is none."""
    try:
        message = msgspec.json.decode(error.body or "")["message"]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, TypeError, KeyError):
        message = f"{error.status} {error.reason}"
    return " ".join(str(message).split())


def _data(secret: client.V1Secret | None) -> dict[str, bytes]:
    return {name: b64decode(value) for name, value in ((secret and secret.data) or {}).items()}


def _bundles(configuration: client.V1MutatingWebhookConfiguration | None) -> dict[str, bytes]:
    return {
        webhook.name: b64decode(webhook.client_config.ca_bundle or b"")
        for webhook in (configuration and configuration.webhooks) or ()
        if webhook.name in WEBHOOK_NAMES
    }


def _version(found: client.V1Secret | client.V1MutatingWebhookConfiguration) -> str:
    return (found.metadata and found.metadata.resource_version) or ""


def _encoded(data: Mapping[str, bytes | None]) -> dict[str, str | None]:
    return {name: value if value is None else b64encode(value).decode() for name, value in data.items()}


def _without_nulls(values: dict[str, Any]) -> dict[str, Any]:
    """Leave out what a patch would delete, which a create must not contain."""
    return {
        name: _without_nulls(value) if isinstance(value, dict) else value
        for name, value in values.items()
        if value is not None
    }
