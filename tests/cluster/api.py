"""The API server as a program talks to it: one connection that stays open, so that a hundred pods take a second."""

import base64
import json
import ssl
import subprocess
import tempfile
from dataclasses import dataclass
from functools import cache
from http.client import HTTPException, HTTPSConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

from program.tls import as_kubectl

Object = dict[str, Any]
_SECONDS = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the API server said."""

    status: int
    body: Any  # an object, or text
    warnings: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        return self.status < 300

    @property
    def message(self) -> str:
        """Give the sentence of a denial."""
        return str(self.body.get("message", "")) if isinstance(self.body, dict) else str(self.body)

    @property
    def reason(self) -> str:
        return str(self.body.get("reason", "")) if isinstance(self.body, dict) else ""


class Api:
    """A client of the cluster of KUBECONFIG; one for each thread."""

    def __init__(self) -> None:
        self._address, self._tls, self._headers = _access()
        self._connection = self._connect()

    def ask(self, method: str, path: str, body: Object | list[Any] | None = None, **query: str) -> Answer:
        """
        Send one request and read its answer. *query* becomes the part behind the question mark.

        Raises:
            OSError, HTTPException: If the API server cannot be reached.
        """
        where = f"{path}?{urlencode(query)}" if query else path
        kind = {"PATCH": "application/json-patch+json" if isinstance(body, list) else "application/merge-patch+json"}
        headers = self._headers | {"Content-Type": kind.get(method, "application/json")}
        data = None if body is None else json.dumps(body)
        try:
            self._connection.request(method, where, data, headers)
            response = self._connection.getresponse()
            text = response.read().decode()
        except (OSError, HTTPException):
            self._connection.close()
            self._connection = self._connect()
            raise
        warnings = tuple(_warning(one) for one in response.headers.get_all("Warning", []))
        is_json = response.headers.get_content_type() == "application/json"
        return Answer(status=response.status, body=json.loads(text) if is_json else text, warnings=warnings)

    def get(self, path: str, **query: str) -> Any:
        """Give what is at *path*; the test fails if there is nothing."""
        answer = self.ask("GET", path, None, **query)
        assert answer.ok, f"GET {path}: {answer.status} {answer.message}"
        return answer.body

    def create(self, on: Object, namespace: str, *, dry_run: bool = False) -> Answer:
        """Create a pod, or ask what would become of it."""
        on = on | {"metadata": {key: value for key, value in on["metadata"].items() if key != "namespace"}}
        return self.ask("POST", f"/api/v1/namespaces/{namespace}/pods{'?dryRun=All' * dry_run}", on)

    def close(self) -> None:
        self._connection.close()

    def _connect(self) -> HTTPSConnection:
        host, port = self._address
        return HTTPSConnection(host, port, timeout=_SECONDS, context=self._tls)


def _warning(header: str) -> str:
    """Give the text of `299 - "text"`."""
    text = header.partition('"')[2].rpartition('"')[0]
    return text.replace('\\"', '"').replace("\\\\", "\\")


@cache
def _access() -> tuple[tuple[str, int], ssl.SSLContext, dict[str, str]]:
    """Read the kubeconfig's current context: address, TLS with the user's certificate, headers with a token."""
    command = ["kubectl", "config", "view", "--raw", "--minify", "--flatten", "-o", "json"]
    config = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    tls = as_kubectl(ssl.create_default_context(cadata=_decoded(cluster, "certificate-authority-data") or None))
    if "client-certificate-data" in user:
        with tempfile.TemporaryDirectory() as folder:
            certificate, key = Path(folder, "client-certificate-data"), Path(folder, "client-key-data")
            for path in (certificate, key):
                path.write_text(_decoded(user, path.name))
            tls.load_cert_chain(certificate, key)
    address = urlsplit(cluster["server"])
    headers = {"Authorization": f"Bearer {user['token']}"} if "token" in user else {}
    return (str(address.hostname), address.port or 443), tls, headers


def _decoded(holder: Object, field: str) -> str:
    return base64.b64decode(holder.get(field, "")).decode()
