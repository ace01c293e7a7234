"""
The API server, over HTTP and with the token of the plugin's ServiceAccount.

Kubernetes' client library for Python would do, and costs 33 MiB of memory on every node for five requests.
"""

import os
import socket
import ssl
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import msgspec

from plugin.errors import DraError
from program.tls import as_kubectl
from program.trust import trusting

SLICES = "/apis/resource.k8s.io/v1/resourceslices"
_REQUEST_SECONDS = 10.0
_WATCH_SECONDS = 300  # after which the API server ends a watch
_SILENT_SECONDS = _WATCH_SECONDS + 30.0
_NOT_FOUND, _CONFLICT, _TOO_MANY_REQUESTS, _SERVER_ERROR = 404, 409, 429, 500
_REMEDIES: Mapping[int, str] = {
    401: "check the token of the plugin's ServiceAccount",
    403: "install the rights of manifests/overlays/dra",
    404: "DRA's API resource.k8s.io/v1 is needed, which Kubernetes has from 1.34 on",
}


class ApiError(DraError):
    """A request that failed: what was asked, the reason and what to do."""

    def __init__(self, message: str, *, status: int = 0) -> None:
        self.status = status
        super().__init__(message)

    @property
    def is_missing(self) -> bool:
        """Whether the object does not exist."""
        return self.status == _NOT_FOUND

    @property
    def may_pass(self) -> bool:
        """Whether the API server could not be reached, or could not answer now."""
        return self.status in (0, _TOO_MANY_REQUESTS) or self.status >= _SERVER_ERROR

    @property
    def is_conflict(self) -> bool:
        """Whether somebody else has changed the object."""
        return self.status == _CONFLICT


class ApiServer:
    """A client for any thread: each request has a connection and reads the token anew, which the kubelet renews."""

    def __init__(self, host: str, port: int, *, credentials: Path) -> None:
        """Reach the API server at *host*; *credentials* has the files `token` and `ca.crt`."""
        self._address = (host, port)
        self._credentials = credentials

    @classmethod
    def from_environment(cls, environment: Mapping[str, str], *, credentials: Path) -> "ApiServer":
        """
        Reach the API server of the cluster that this process runs in.

        Raises:
            DraError: If it runs in none, or has no token.
        """
        host, port = environment.get("KUBERNETES_SERVICE_HOST", ""), environment.get("KUBERNETES_SERVICE_PORT", "443")
        if not host or not port.isdecimal():
            raise DraError("allocation: dra needs the API server: run in a pod, which has KUBERNETES_SERVICE_HOST")
        if not os.path.isfile(credentials / "token"):  # noqa: PTH113 - Path's raises where it cannot be seen
            raise DraError(
                f"--service-account {credentials}: no token there: allocation: dra needs a ServiceAccount with a token "
                "and the rights of manifests/overlays/dra"
            )
        return cls(host, int(port), credentials=credentials)

    def get(self, path: str, **query: str) -> Any:
        """Read an object or a list; raises ApiError."""
        return self._ask("GET", path, None, query)

    def create(self, path: str, body: Any) -> Any:
        """Create an object, and give it as it is stored; raises ApiError."""
        return self._ask("POST", path, body, {})

    def replace(self, path: str, body: Any) -> Any:
        """Replace an object, and give it as it is stored; raises ApiError."""
        return self._ask("PUT", path, body, {})

    def delete(self, path: str, body: Any) -> None:
        """Delete an object, if it is there; raises ApiError."""
        try:
            self._ask("DELETE", path, body, {})
        except ApiError as error:
            if not error.is_missing:
                raise

    @contextmanager
    def watch(self, path: str, **query: str) -> Iterator["Watch"]:
        """
        Follow a list.

        Raises:
            ApiError: If that is not possible.
        """
        query = {**query, "watch": "true", "timeoutSeconds": str(_WATCH_SECONDS)}
        with closing(self._connected(_SILENT_SECONDS, f"GET {path}")) as connection:
            yield Watch(connection, self._answer(connection, "GET", path, None, query))

    def _ask(self, method: str, path: str, body: Any, query: Mapping[str, str]) -> Any:
        with closing(self._connected(_REQUEST_SECONDS, f"{method} {path}")) as connection:
            response = self._answer(connection, method, path, body, query)
            try:
                return msgspec.json.decode(response.read(), type=dict[str, Any])
            except (OSError, HTTPException, ValueError, RecursionError) as error:
                raise ApiError(f"cannot {method} {path}: its answer is cut short, or no object: {error}") from error

    def _connected(self, seconds: float, what: str) -> HTTPConnection:
        host, port = self._address
        file = self._credentials / "ca.crt"
        try:
            contexts = trusting(lambda: as_kubectl(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)), file=str(file))
        except OSError as error:  # ssl.SSLError is one
            raise ApiError(f"{file}: cannot be used: {error}: is the ServiceAccount mounted?") from error
        why = ""
        for tls in contexts:
            connection = HTTPSConnection(host, port, timeout=seconds, context=tls)
            try:
                connection.connect()
            except ssl.SSLCertVerificationError as error:
                why = error.verify_message.rstrip(".")
            except (OSError, HTTPException, ValueError) as error:
                raise _unreached(what, error) from error
            else:
                return connection
        raise ApiError(
            f"cannot {what}: the certificate of the API server cannot be verified: {why}: it must be for {host}, and "
            f"by a CA in {file}"
        )

    def _answer(
        self, connection: HTTPConnection, method: str, path: str, body: Any, query: Mapping[str, str]
    ) -> HTTPResponse:
        where = f"{path}?{urlencode(query)}" if query else path
        try:
            token = (self._credentials / "token").read_text(encoding="ascii").strip()
            headers = {"Authorization": f"Bearer {token}", "Accept": "application/json"}
            if body is not None:
                headers["Content-Type"] = "application/json"
            connection.request(method, where, None if body is None else msgspec.json.encode(body), headers)
            response = connection.getresponse()
            if response.status < 300:  # noqa: PLR2004 - what HTTP calls successful
                return response
            text = response.read()
        except (OSError, HTTPException, ValueError) as error:
            raise _unreached(f"{method} {path}", error) from error
        remedy = _REMEDIES.get(response.status, "see the API server's log")
        raise ApiError(f"cannot {method} {path}: {_message(text, response)}: {remedy}", status=response.status)


class Watch:
    """An open watch; `close` ends it from any thread."""

    def __init__(self, connection: HTTPConnection, response: HTTPResponse) -> None:
        self._connection = connection
        self._response = response

    def events(self) -> Iterator[bytes]:
        """Yield each event as the API server wrote it, until either side ends it."""
        with suppress(OSError, HTTPException, ValueError):  # ended: by whom makes no difference
            while line := self._response.readline():
                yield line

    def close(self) -> None:
        """End the iteration."""
        sock = self._connection.sock
        with suppress(OSError, AttributeError):
            sock.shutdown(socket.SHUT_RDWR)


def path_of_claim(namespace: str, name: str) -> str:
    """Write the path of a ResourceClaim."""
    return f"/apis/resource.k8s.io/v1/namespaces/{quote(namespace, safe='')}/resourceclaims/{quote(name, safe='')}"


def is_gone(api: ApiServer, path: str, uid: str) -> bool:
    """Whether the object with that UID is gone already, or nobody says that it is not."""
    try:
        return bool(api.get(path)["metadata"]["uid"] != uid)
    except ApiError:
        return True


def path_of_node(name: str) -> str:
    """Write the path of a node."""
    return f"/api/v1/nodes/{quote(name, safe='')}"


def _unreached(what: str, error: Exception) -> ApiError:
    reason = " ".join(str(error).split()) or type(error).__name__
    return ApiError(f"cannot {what}: the API server cannot be reached: {reason}: check the network policies")


def _message(text: bytes, response: HTTPResponse) -> str:
    """Return the API server's message in one line, or the status and reason where there is none."""
    try:
        message = msgspec.json.decode(text)["message"]
    except (ValueError, TypeError, KeyError, RecursionError):
        message = f"{response.status} {response.reason}"
    return " ".join(str(message).split())
