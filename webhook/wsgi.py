"""A request to a WSGI application, for the routes that are called seldom."""

import io
import sys
from typing import Any, Final
from urllib.parse import unquote_to_bytes
from wsgiref.types import WSGIApplication

from httptools import HttpParserInvalidURLError

from webhook.http1 import Answer, Request, plain

_OURS: Final = frozenset({"content-length", "content-type", "connection", "date"})


def call(application: WSGIApplication, request: Request) -> Answer:
    """Let *application* answer. It sees method, target and body: no header of a caller means anything to a route."""
    started: list[Any] = []

    def start_response(status: str, headers: list[tuple[str, str]], _error: object = None) -> Any:
        started[:] = [int(status.partition(" ")[0]), headers]

    try:
        path, query = request.path_and_query
    except HttpParserInvalidURLError:  # such as that of CONNECT
        return plain("The target of the request is malformed.", 400)
    environ = {
        "REQUEST_METHOD": request.method,
        "SCRIPT_NAME": "",
        "PATH_INFO": unquote_to_bytes(path).decode("latin-1"),
        "QUERY_STRING": query.decode("latin-1"),
        "SERVER_NAME": "localhost",
        "SERVER_PORT": "443",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "CONTENT_LENGTH": str(len(request.body)),
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": "https",
        "wsgi.input": io.BytesIO(request.body),
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": False,
        "wsgi.multiprocess": True,
        "wsgi.run_once": False,
    }
    parts = application(environ, start_response)
    body = b"".join(parts)
    if hasattr(parts, "close"):
        parts.close()
    status, headers = started
    named = {name.lower(): value for name, value in headers}
    return Answer(
        status,
        body,
        content_type=named.get("content-type", "text/plain"),
        headers=tuple((name, value) for name, value in headers if name.lower() not in _OURS),
        length=int(named["content-length"]) if request.method == "HEAD" and "content-length" in named else None,
    )
