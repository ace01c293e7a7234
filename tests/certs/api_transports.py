"""Two ways for the real client to reach the simulated API server: in memory, and over HTTP."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from kubernetes import client
from kubernetes.client.rest import RESTResponse

from tests.certs.simulated_api_server import SimulatedApiServer
from tests.serving import serving


@dataclass
class _Response:
    """A response as urllib3 gives it to the client."""

    status: int
    data: bytes
    reason: str = ""
    headers: dict[str, str] = field(default_factory=lambda: {"content-type": "application/json"})


class _InMemoryTransport:
    """Replaces the client's sockets, and nothing else."""

    def __init__(self, server: SimulatedApiServer) -> None:
        self._server = server

    def request(self, method: str, url: str, headers: dict[str, str], body: Any = None, **_: Any) -> RESTResponse:
        path = url.removeprefix("http://localhost").partition("?")[0]
        content = b"" if body is None else json.dumps(body).encode()
        status, answer = self._server.handle(method, path, headers.get("Content-Type", ""), content)
        response = _Response(status, json.dumps(answer).encode())
        if self._server.date:
            response.headers["date"] = self._server.date
        return RESTResponse(response)

    def close(self) -> None:
        pass


def client_in_memory(server: SimulatedApiServer) -> client.ApiClient:
    """Return the real client, connected to *server* in memory."""
    api = client.ApiClient(client.Configuration(host="http://localhost"))
    api.rest_client = _InMemoryTransport(server)  # type: ignore[assignment]
    return api


@contextmanager
def over_http(server: SimulatedApiServer) -> Iterator[str]:
    """Serve *server* over HTTP on a free port of this machine, and yield its URL."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # a response in one packet

        def _handle(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
            content_type = self.headers.get("Content-Type", "")
            status, answer = server.handle(self.command, self.path.partition("?")[0], content_type, body)
            content = json.dumps(answer).encode()
            self.send_response_only(status)
            if server.date:
                self.send_header("Date", server.date)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = _handle  # noqa: N815 - names of the base class

        def log_message(self, *_: object) -> None:
            pass

    with serving(ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as port:
        yield f"http://127.0.0.1:{port}"
