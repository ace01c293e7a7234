"""The console as its user's browser meets it: over real HTTP, with the address that it prints."""

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from html import unescape
from pathlib import Path

from flask import Flask
from urllib3 import BaseHTTPResponse, PoolManager

from console.kubeconfig import connect
from console.page.app import create_app
from console.page.desk import Desk
from console.page.guard import TOKEN, Guard
from console.page.server import Server
from tests.console.stand_in import StandIn, serve
from webhook.preview.pasted import explained


@dataclass
class Visitor:
    """A browser without a screen."""

    origin: str
    token: str
    cookie: str = ""
    app: Flask | None = None  # where it is in this process
    pool: PoolManager = field(default_factory=PoolManager)

    @property
    def address(self) -> str:
        """What the command prints."""
        return f"{self.origin}/?{TOKEN}={self.token}"

    def enter(self) -> BaseHTTPResponse:
        """Open the address that was printed, and keep the cookie."""
        answer = self.ask("/", f"?{TOKEN}={self.token}")
        self.cookie = answer.headers.get("Set-Cookie", "").partition(";")[0]
        return answer

    def ask(self, path: str, query: str = "", **headers: str) -> BaseHTTPResponse:
        return self.pool.request("GET", f"{self.origin}{path}{query}", headers=self._with(headers), redirect=False)

    def text(self, path: str, query: str = "") -> str:
        """Read a page as text."""
        answer = self.ask(path, query)
        assert answer.status == 200, answer.data
        return answer.data.decode()

    def post(self, path: str, fields: dict[str, str], **headers: str) -> BaseHTTPResponse:
        """Send a form, as the page itself does unless *headers* say something else."""
        sent = {"Origin": self.origin} | self._with(headers)
        return self.pool.request(
            "POST", f"{self.origin}{path}", fields=fields, encode_multipart=False, headers=sent, redirect=False
        )

    def _with(self, headers: dict[str, str]) -> dict[str, str]:
        own = {"Cookie": self.cookie} if self.cookie else {}
        return own | {name.replace("_", "-"): value for name, value in headers.items()}


@contextmanager
def console(known: StandIn, directory: Path, *, context: str = "", namespace: str = "") -> Iterator[Visitor]:
    """Serve the page of a stand-in for a cluster."""
    with serve(known, directory) as kubeconfig:
        guard = Guard()
        api = connect(kubeconfig=kubeconfig, context=context)
        desk = Desk(api, namespace=namespace, preview=explained)
        app = create_app(desk, guard)
        server = Server(app, port=0)
        desk.watch.start()
        server.start()
        visitor = Visitor(f"http://127.0.0.1:{server.port}", guard.token, app=app)
        try:
            yield visitor
        finally:
            visitor.pool.clear()
            server.close()
            assert desk.watch.close(10)


def words(text: str) -> str:
    """Write a page as its reader sees it."""
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", text)).split())


def until(visitor: Visitor, path: str, expected: str) -> str:
    """Read a page until it says something."""
    deadline = time.monotonic() + 20
    while expected not in (text := words(visitor.text(path))):
        assert time.monotonic() < deadline, text
        time.sleep(0.1)
    return text
