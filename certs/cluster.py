"""
The two Secrets and the one caBundle, as the API server has them.

Every write is a create, or a patch that names the resourceVersion that was read: it changes the
fields that it names and nothing else, and is refused if anyone was quicker.
"""

from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar, assert_never

import msgspec
import yaml
from kubernetes import client, config
from kubernetes.client.exceptions import ApiException
from urllib3.exceptions import HTTPError

from certs.rotation import CERTIFICATE, KEY, State, Write, WriteAuthority, WriteBundle, WriteServing
from policies.contract import AUTHORITY_SECRET, SERVING_SECRET, WEBHOOK_CONFIGURATION, WEBHOOK_NAME

T = TypeVar("T")

_NOT_FOUND: Final = 404
_CONFLICT: Final = 409
_HELP: Final = {
    401: "check the token of the ServiceAccount, or the kubeconfig",
    403: "give the right to this ServiceAccount or user",
    404: "create the namespace first",
    422: "if the object is immutable, delete it, and the next pass makes a new one",
}
_REQUEST: Final[dict[str, Any]] = {"_request_timeout": 10.0}  # seconds
_WRITE: Final = _REQUEST | {"field_manager": "gpu-share-certs"}
# A strategic merge finds the webhook by its name, wherever it stands in the list.
_PATCH: Final = _WRITE | {"_content_type": "application/strategic-merge-patch+json"}
_LABELS: Final = {"app.kubernetes.io/name": "gpu-share", "app.kubernetes.io/component": "certs"}


class ClusterError(Exception):
    """A cluster that cannot be read or written: one line that says what was asked and what to do."""


class NoClusterError(ClusterError):
    """There is no cluster to talk to."""


class MissingError(ClusterError):
    """What was asked for is not there."""


class ConflictError(Exception):
    """Someone was quicker: what was read is not there any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What was read, and the resourceVersion of each object by its name; an object that is not there has none."""

    state: State
    versions: Mapping[str, str]


def connect() -> client.ApiClient:
    """
    Return a client for the cluster that this process runs in, or else that the kubeconfig names.

    Raises:
        NoClusterError: If there is neither.
    """
    settings = client.Configuration()
    try:
        config.load_incluster_config(settings)  # type: ignore[no-untyped-call] # published without types
    except config.ConfigException as outside:
        try:
            config.load_kube_config(client_configuration=settings)  # type: ignore[no-untyped-call] # likewise
        except (config.ConfigException, OSError, ValueError, TypeError, yaml.YAMLError) as error:
            reasons = " ".join(f"{outside} {error}".split())
            raise NoClusterError(f"no cluster: run in a pod, or set KUBECONFIG: {reasons}") from None
    return client.ApiClient(settings)


class Cluster:
    """The objects of one installation."""

    def __init__(self, api: client.ApiClient, *, namespace: str) -> None:
        self._core = client.CoreV1Api(api)
        self._admission = client.AdmissionregistrationV1Api(api)
        self._namespace = namespace

    def read(self) -> Found:
        """
        Return what is there now.

        Raises:
            ClusterError: If the API server cannot be reached, or refuses.
        """
        # The authority last. Its Secret is written before anything that follows from it, so whatever
        # another pass has put into the bundle or the serving Secret by now is known in what is read here.
        configuration = self._configuration()
        serving = self._secret(SERVING_SECRET)
        authority = self._secret(AUTHORITY_SECRET)
        marks = authority.metadata.annotations if authority and authority.metadata else None
        state = State(
            authority=_data(authority), marks=marks or {}, serving=_data(serving), bundle=_bundle(configuration)
        )
        objects = {WEBHOOK_CONFIGURATION: configuration, SERVING_SECRET: serving, AUTHORITY_SECRET: authority}
        return Found(state=state, versions={name: _version(each) for name, each in objects.items() if each})

    def write(self, write: Write, found: Found) -> None:
        """
        Carry out *write* if nobody has changed its object since *found* was read.

        Raises:
            ConflictError: If someone has.
            ClusterError: If the API server cannot be reached, or refuses.
        """
        match write:
            case WriteBundle():
                self._write_bundle(write.bundle, version=found.versions[WEBHOOK_CONFIGURATION])
            case WriteAuthority():
                body = {"metadata": {"annotations": dict(write.marks)}, "data": _encoded(write.data), "type": "Opaque"}
                self._write_secret(AUTHORITY_SECRET, body, version=found.versions.get(AUTHORITY_SECRET))
            case WriteServing():
                data = _encoded({CERTIFICATE: write.pair.certificate_pem, KEY: write.pair.key_pem})
                body = {"metadata": {}, "data": data, "type": "kubernetes.io/tls"}
                self._write_secret(SERVING_SECRET, body, version=found.versions.get(SERVING_SECRET))
            case _:
                assert_never(write)

    def _configuration(self) -> client.V1MutatingWebhookConfiguration | None:
        name = WEBHOOK_CONFIGURATION
        try:
            return _ask(
                f"get mutatingwebhookconfigurations {name}",
                lambda: self._admission.read_mutating_webhook_configuration(name, **_REQUEST),
            )
        except MissingError:
            return None

    def _secret(self, name: str) -> client.V1Secret | None:
        try:
            return _ask(
                f"get secrets {name}", lambda: self._core.read_namespaced_secret(name, self._namespace, **_REQUEST)
            )
        except MissingError:
            return None

    def _write_bundle(self, bundle: bytes, *, version: str) -> None:
        name = WEBHOOK_CONFIGURATION
        webhook = {"name": WEBHOOK_NAME, "clientConfig": {"caBundle": b64encode(bundle).decode()}}
        body = {"metadata": {"resourceVersion": version}, "webhooks": [webhook]}
        _patch(
            f"patch mutatingwebhookconfigurations {name}",
            lambda: self._admission.patch_mutating_webhook_configuration(name, body, **_PATCH),
        )

    def _write_secret(self, name: str, body: dict[str, Any], *, version: str | None) -> None:
        if version is None:
            body["metadata"] = {"name": name, "labels": _LABELS} | _without_nulls(body["metadata"])
            secret = client.V1Secret.model_validate(_without_nulls(body))
            _ask(
                f"create secrets {name}", lambda: self._core.create_namespaced_secret(self._namespace, secret, **_WRITE)
            )
            return
        body["metadata"]["resourceVersion"] = version
        del body["type"]  # cannot be changed
        _patch(
            f"patch secrets {name}",
            lambda: self._core.patch_namespaced_secret(name, self._namespace, body, **_PATCH),
        )


def _ask(what: str, call: Callable[[], T]) -> T:
    try:
        return call()
    except ApiException as error:
        if error.status == _CONFLICT:
            raise ConflictError(what) from None
        kind = MissingError if error.status == _NOT_FOUND else ClusterError
        help_ = _HELP.get(error.status, "see the log of the API server")
        raise kind(f"cannot {what}: {_said(error)}: {help_}") from None
    except HTTPError as error:
        raise ClusterError(f"cannot {what}: the API server cannot be reached: {' '.join(str(error).split())}") from None


def _patch(what: str, call: Callable[[], object]) -> None:
    try:
        _ask(what, call)
    except MissingError as error:
        raise ConflictError(what) from error  # it was there when it was read


def _said(error: ApiException) -> str:
    """Return the API server's own words, in one line."""
    try:
        words = msgspec.json.decode(error.body or "")["message"]
    except (msgspec.DecodeError, TypeError, KeyError):
        words = f"{error.status} {error.reason}"
    return " ".join(str(words).split())


def _data(secret: client.V1Secret | None) -> dict[str, bytes]:
    return {name: b64decode(value) for name, value in ((secret and secret.data) or {}).items()}


def _bundle(configuration: client.V1MutatingWebhookConfiguration | None) -> bytes | None:
    for webhook in (configuration and configuration.webhooks) or ():
        if webhook.name == WEBHOOK_NAME:
            return b64decode(webhook.client_config.ca_bundle or b"")
    return None


def _version(found: client.V1Secret | client.V1MutatingWebhookConfiguration) -> str:
    return (found.metadata and found.metadata.resource_version) or ""


def _encoded(data: Mapping[str, bytes | None]) -> dict[str, str | None]:
    return {name: value if value is None else b64encode(value).decode() for name, value in data.items()}


def _without_nulls(values: dict[str, Any]) -> dict[str, Any]:
    """Leave out what a patch would take away."""
    return {
        name: _without_nulls(value) if isinstance(value, dict) else value
        for name, value in values.items()
        if value is not None
    }
