"""
A simulated API server: nodes, ResourceSlices and ResourceClaims over HTTPS, as a driver of DRA meets them.

It writes quantities in its own words, adds to taints when they came, keeps resource versions and ends watches.
"""

import json
import ssl
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Condition, Thread
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit
from uuid import uuid4

Object = dict[str, Any]
SLICES = "/apis/resource.k8s.io/v1/resourceslices"
_ALIVE_SECONDS = 0.2  # between two looks of a watch whether it is over


@dataclass
class Store:
    """The objects, by path."""

    keeps: Callable[[Object], Object] = lambda spec: spec  # what of a slice's specification is kept
    objects: dict[str, Object] = field(default_factory=dict)
    requests: list[tuple[str, str]] = field(default_factory=list)
    closed: bool = False
    forbids: str = ""  # why no object may be replaced
    fails: int = 0  # so many more requests for a claim
    changed: Condition = field(default_factory=Condition)
    version: int = 0

    def put(self, path: str, one: Object) -> Object:
        """Keep an object in the API server's words, and give it as it is kept."""
        with self.changed:
            self.version += 1
            metadata = {"uid": str(uuid4()), **one["metadata"], "resourceVersion": str(self.version)}
            spec = _in_its_words(self.keeps(deepcopy(one.get("spec", {}))))
            kept: Object = {**deepcopy(one), "metadata": metadata, "spec": spec}
            self.objects[path] = kept
            self.changed.notify_all()
            return deepcopy(kept)

    def remove(self, path: str) -> None:
        """Forget an object."""
        with self.changed:
            if self.objects.pop(path, None) is not None:
                self.version += 1
                self.changed.notify_all()

    def below(self, path: str) -> list[Object]:
        """List the objects of a collection, by name."""
        with self.changed:
            found = [one for at, one in sorted(self.objects.items()) if at.rpartition("/")[0] == path]
            return deepcopy(found)


class SimulatedApiServer:
    """Serves *store* on a port of this machine with *certificate* and *key*, in a `with` statement."""

    def __init__(self, store: Store, *, certificate: Path, key: Path) -> None:
        self.store = store
        self._server = _Server(("localhost", 0), type("Handler", (_Handler,), {"store": store}))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        # Each connection in its own thread, when its request is read: nobody waits for the handshake of another one.
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)
        self._thread = Thread(target=self._server.serve_forever, name="api server")

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self._server.server_address[1])

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self.store.changed:
            self.store.closed = True
            self.store.changed.notify_all()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    """A thread for each connection; as many as come at once are queued."""

    request_queue_size = 1024


class _Handler(BaseHTTPRequestHandler):
    """One request."""

    store: Store

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 - the base class's name
        """Say nothing."""

    def do_GET(self) -> None:
        path, query = self._asked()
        if self.store.fails and "/resourceclaims/" in path:
            self.store.fails -= 1
            self._error(503, "the server is currently unable to handle the request")
        elif query.get("watch") == ["true"]:
            self._watch(path)
        elif path == SLICES:
            items = [one for one in self.store.below(path) if _is_selected(one, query.get("fieldSelector", [""])[0])]
            self._answer(200, {"kind": "ResourceSliceList", "items": items})
        elif path in self.store.objects:
            self._answer(200, self.store.objects[path])
        else:
            self._error(404, f'"{path}" not found')

    def do_POST(self) -> None:
        path, _ = self._asked()
        one = self._body()
        place = f"{path}/{one['metadata']['name']}"
        if place in self.store.objects:
            self._error(409, f'"{place}" already exists')
        else:
            self._answer(201, self.store.put(place, one))

    def do_PUT(self) -> None:
        path, _ = self._asked()
        one, before = self._body(), self.store.objects.get(path)
        if self.store.forbids:
            self._error(403, self.store.forbids)
        elif before is None:
            self._error(404, f'"{path}" not found')
        elif before["metadata"]["resourceVersion"] != one["metadata"].get("resourceVersion"):
            self._error(409, "the object has been modified")
        else:
            one["metadata"]["uid"] = before["metadata"]["uid"]
            self._answer(200, self.store.put(path, one))

    def do_DELETE(self) -> None:
        path, _ = self._asked()
        only = self._body().get("preconditions", {})
        before = self.store.objects.get(path)
        if before is None:
            self._error(404, f'"{path}" not found')
        elif any(before["metadata"][name] != value for name, value in only.items()):
            self._error(409, "the object has been modified")
        else:
            self.store.remove(path)
            self._answer(200, {"kind": "Status", "status": "Success"})

    def _asked(self) -> tuple[str, dict[str, list[str]]]:
        parts = urlsplit(self.path)
        self.store.requests.append((self.command, parts.path))
        return parts.path, parse_qs(parts.query)

    def _body(self) -> Object:
        read: Object = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))))
        return read

    def _answer(self, status: int, body: object) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _error(self, status: int, message: str) -> None:
        self._answer(status, {"kind": "Status", "status": "Failure", "message": message, "code": status})

    def _watch(self, path: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        try:
            for event in _events(self.store, path):
                self.wfile.write(event)
        except OSError:
            pass  # whoever watched is gone


def _events(store: Store, path: str) -> Iterator[bytes]:
    seen = -1
    while True:
        with store.changed:
            store.changed.wait_for(lambda: store.closed or store.version != seen, _ALIVE_SECONDS)  # noqa: B023 - called at once
            if store.closed:
                return
            is_new, seen = store.version != seen, store.version
        yield json.dumps({"type": "MODIFIED", "object": {"path": path}}).encode() + b"\n" if is_new else b""


def _is_selected(one: Object, selector: str) -> bool:
    wanted = dict(part.split("=", 1) for part in selector.split(",") if part)
    spec = one["spec"]
    return all(spec.get(name.removeprefix("spec.")) == value for name, value in wanted.items())


def _in_its_words(value: Any) -> Any:
    if isinstance(value, dict):
        made = {key: _in_its_words(one) for key, one in value.items() if one not in (None, [], {})}
        if made.keys() == {"value"} and str(made["value"]).endswith("000"):
            return {"value": f"{str(made['value'])[:-3]}k"}
        return {**made, "timeAdded": "2026-01-01T00:00:00Z"} if "effect" in made else made
    return [_in_its_words(one) for one in value] if isinstance(value, list) else value
