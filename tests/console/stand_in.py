"""A stand-in for an API server, over real HTTP: lists of objects, rights, and proxies to the parts of nodes."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.message import Message
from email.utils import formatdate
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import yaml

from tests.serving import serving

Object = dict[str, Any]
Reply = tuple[int, bytes]
_PROXY = "/proxy/"


@dataclass
class StandIn:
    """What it knows; a test changes it at any time."""

    lists: dict[str, list[Object]] = field(default_factory=dict)  # by path
    states: dict[str, Callable[[], Reply]] = field(default_factory=dict)  # by `<pod>:<port>`
    uids: dict[str, str] = field(default_factory=dict)  # that a part wants to hear, likewise
    forbidden: set[str] = field(default_factory=set)  # resources that the user may not read
    raw: dict[str, Reply] = field(default_factory=dict)  # answers by path, whatever else is known of it
    posted: dict[str, Reply | Callable[[Any], Reply]] = field(default_factory=dict)  # answers to POST, by path
    sent: list[tuple[str, Any]] = field(default_factory=list)  # by POST: path with query, and body
    asked: list[str] = field(default_factory=list)
    headers: list[Message] = field(default_factory=list)  # of each request by GET
    redirect: str = ""  # where every part of a node sends its callers
    drips: bool = False  # parts of nodes send a byte at a time
    date: Callable[[str], str] = lambda _path: formatdate(usegmt=True)  # header of an answer, by path
    page: int = 500  # most objects in one answer, however many were asked for

    def reply(self, path: str, query: dict[str, list[str]]) -> Reply:
        """Answer as an API server does."""
        self.asked.append(path)
        if path in self.raw:
            return self.raw[path]
        if _PROXY in path:
            return self._proxied(path, query)
        resource = path.rpartition("/")[2]
        if resource in self.forbidden:
            return status_of(403, f'{resource} is forbidden: User "viewer" cannot list resource "{resource}"')
        if path not in self.lists:
            return 200, json.dumps({"items": None}).encode()
        found = [one for one in self.lists[path] if _matches(one, query.get("labelSelector", [""])[0])]
        found = [one for one in found if _has_fields(one, query.get("fieldSelector", [""])[0])]
        begin = int(query.get("continue", ["0"])[0])
        end = begin + min(self.page, int(query.get("limit", ["500"])[0]))
        metadata = {"continue": str(end)} if end < len(found) else {}
        return 200, json.dumps({"metadata": metadata, "items": found[begin:end]}).encode()

    def _proxied(self, path: str, query: dict[str, list[str]]) -> Reply:
        pod = path.removeprefix("/api/v1/namespaces/gpu-share/pods/").partition("/")[0]
        if "pods/proxy" in self.forbidden:
            return status_of(403, f'pods "{pod}" is forbidden: User "viewer" cannot get resource "pods/proxy"')
        if pod not in self.states:
            return status_of(503, f"error trying to reach service: dial tcp: no route to {pod}")
        if query.get("pod", [""])[0] != self.uids.get(pod, ""):
            return 403, b"expected ?pod= with metadata.uid of this pod"
        return self.states[pod]()


class _Handler(BaseHTTPRequestHandler):
    """Answers each request by what a stand-in knows."""

    protocol_version = "HTTP/1.1"

    def __init__(self, known: StandIn, *arguments: Any) -> None:
        self._known = known
        super().__init__(*arguments)  # which handles the requests of the connection

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        path = unquote(parts.path)
        self._known.headers.append(self.headers)
        if self._known.redirect and _PROXY in path:
            self._begin(302, b"", Location=self._known.redirect)
            return
        status, content = self._known.reply(path, parse_qs(parts.query))
        self._begin(status, content)
        for part in _parts(content, drips=self._known.drips and _PROXY in path):
            try:
                self.wfile.write(part)
            except OSError:
                return

    def do_POST(self) -> None:
        path = unquote(urlsplit(self.path).path)
        sent = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self._known.sent.append((self.path, sent))
        answer = self._known.posted.get(path, status_of(404, f"the server has no {path}"))
        status, content = answer(sent) if callable(answer) else answer
        self._begin(status, content)
        self.wfile.write(content)

    def date_time_string(self, timestamp: float | None = None) -> str:
        return self._known.date(self.path) if timestamp is None else super().date_time_string(timestamp)

    def log_message(self, *_: object) -> None:
        pass

    def _begin(self, status: int, content: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()


def _parts(content: bytes, *, drips: bool) -> Iterator[bytes]:
    if not drips:
        yield content
        return
    for byte in content:
        time.sleep(0.05)
        yield bytes([byte])


@contextmanager
def serve(known: StandIn, directory: Path) -> Iterator[Path]:
    """Serve *known* on this machine, and yield a kubeconfig that leads to it."""
    with serving(ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, known))) as port:
        yield _kubeconfig(directory, port)


def _kubeconfig(directory: Path, port: int) -> Path:
    path = directory / "kubeconfig"
    cluster = {"name": "c", "cluster": {"server": f"http://127.0.0.1:{port}"}}
    away = {"name": "away", "cluster": {"server": "http://127.0.0.1:1"}}
    contexts = [
        {"name": "here", "context": {"cluster": "c", "user": "viewer"}},
        {"name": "nowhere", "context": {"cluster": "away", "user": "viewer"}},
    ]
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [cluster, away],
        "contexts": contexts,
        "users": [{"name": "viewer", "user": {"token": "t"}}],
        "current-context": "here",
    }
    path.write_text(yaml.safe_dump(content))
    return path


def status_of(code: int, message: str) -> Reply:
    return code, json.dumps({"kind": "Status", "message": message}).encode()


def _matches(one: Object, selector: str) -> bool:
    labels = one["metadata"].get("labels", {})
    pairs = [part.partition("=") for part in selector.split(",") if part]
    return all(labels.get(key) == value for key, _, value in pairs)


def _has_fields(one: Object, selector: str) -> bool:
    """Select by fields as an API server does; what an object does not say of itself is as it is asked for."""
    pairs = [part.partition("=") for part in selector.split(",") if part]
    return all(
        _field(one, name[:-1]) != value if name.endswith("!") else _field(one, name) in (value, None)
        for name, _, value in pairs
    )


def _field(one: Object, path: str) -> Any:
    found: Any = one
    for name in path.split("."):
        found = found.get(name, {})
    return found or None
