"""
Read and write the CA Secret, the serving Secret and the caBundle of each webhook in the webhook configuration.

Every write is a create, or a patch with the resourceVersion that was read: it changes only the fields
in it, and the API server rejects it with a conflict if the object has changed since.
"""

from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NamedTuple, TypeVar, assert_never

from kubernetes import client
from kubernetes.client.exceptions import ApiException

from certs.answers import answer_of, metadata_of
from certs.pem import shared
from certs.rotation import CERTIFICATE, KEY, State, Write, WriteBundle, WriteCA, WriteServing
from policies.contract import CA_SECRET, SERVING_SECRET, WEBHOOK_CONFIGURATION, WEBHOOK_NAMES
from program.http_date import time_of

K = TypeVar("K", client.V1Secret, client.V1MutatingWebhookConfiguration)

_NOT_FOUND: Final = 404
_CONFLICT: Final = 409
_GONE_OR_CHANGED: Final = frozenset({_NOT_FOUND, _CONFLICT})  # of a patch: the object existed when it was read
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


class _Found(NamedTuple):
    """An object; without a version where there is none."""

    version: str | None = None
    content: Mapping[str, bytes] = {}  # by key, or by the name of the webhook
    annotations: Mapping[str, str] = {}


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
        bundle, elsewhere = shared(list(configuration.content.values()))
        state = State(
            ca=ca.content,
            annotations=ca.annotations,
            serving=serving.content,
            bundle=bundle,
            elsewhere=elsewhere,
        )
        objects = {WEBHOOK_CONFIGURATION: configuration, SERVING_SECRET: serving, CA_SECRET: ca}
        versions = {name: each.version for name, each in objects.items() if each.version is not None}
        return Snapshot(state=state, versions=versions, webhooks=tuple(configuration.content), time=self._time)

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

    def _configuration(self) -> _Found:
        name = WEBHOOK_CONFIGURATION
        return self._found(
            f"get mutatingwebhookconfigurations {name}",
            lambda: self._admission.read_mutating_webhook_configuration_with_http_info(name, **_REQUEST),
            _bundles,
        )

    def _secret(self, name: str) -> _Found:
        return self._found(
            f"get secrets {name}",
            lambda: self._core.read_namespaced_secret_with_http_info(name, self._namespace, **_REQUEST),
            _data,
        )

    def _found(
        self,
        what: str,
        call: Callable[[], tuple[K, int, Mapping[str, str] | None]],
        content: Callable[[K], Mapping[str, bytes]],
    ) -> _Found:
        """Read an object, its *content*, and the time of the API server, with the answer that there is none as well."""

        def found() -> tuple[_Found, Mapping[str, str] | None]:
            try:
                data, _, headers = call()
            except ApiException as error:
                if error.status != _NOT_FOUND:
                    raise
                return _Found(), error.headers
            metadata = metadata_of(data)
            return _Found(metadata.resource_version, content(data), metadata.annotations or {}), headers

        read, headers = answer_of(what, found)
        self._time = time_of(headers or {})
        return read

    def _write_bundle(self, bundle: bytes, found: Snapshot) -> None:
        name = WEBHOOK_CONFIGURATION
        settings = {"caBundle": b64encode(bundle).decode()}
        webhooks = [{"name": webhook, "clientConfig": settings} for webhook in found.webhooks]
        body = {"metadata": {"resourceVersion": found.versions[name]}, "webhooks": webhooks}
        answer_of(
            f"patch mutatingwebhookconfigurations {name}",
            lambda: metadata_of(self._admission.patch_mutating_webhook_configuration(name, body, **_PATCH)),
            conflicts=_GONE_OR_CHANGED,
        )

    def _write_secret(self, name: str, body: dict[str, Any], *, version: str | None) -> None:
        if version is None:
            body["metadata"] = {"name": name, "labels": _LABELS} | _without_nulls(body["metadata"])
            secret = client.V1Secret.model_validate(_without_nulls(body))
            answer_of(
                f"create secrets {name}",
                lambda: metadata_of(self._core.create_namespaced_secret(self._namespace, secret, **_WRITE)),
                conflicts={_CONFLICT},
            )
            return
        body["metadata"]["resourceVersion"] = version
        del body["type"]  # immutable
        answer_of(
            f"patch secrets {name}",
            lambda: metadata_of(self._core.patch_namespaced_secret(name, self._namespace, body, **_PATCH)),
            conflicts=_GONE_OR_CHANGED,
        )


def _data(secret: client.V1Secret) -> dict[str, bytes]:
    return {name: b64decode(value, validate=True) for name, value in (secret.data or {}).items()}


def _bundles(configuration: client.V1MutatingWebhookConfiguration) -> dict[str, bytes]:
    return {
        webhook.name: b64decode(webhook.client_config.ca_bundle or b"")
        for webhook in configuration.webhooks or ()
        if webhook.name in WEBHOOK_NAMES
    }


def _encoded(data: Mapping[str, bytes | None]) -> dict[str, str | None]:
    return {name: value if value is None else b64encode(value).decode() for name, value in data.items()}


def _without_nulls(values: dict[str, Any]) -> dict[str, Any]:
    """Leave out what a patch would delete, which a create must not contain."""
    return {
        name: _without_nulls(value) if isinstance(value, dict) else value
        for name, value in values.items()
        if value is not None
    }
