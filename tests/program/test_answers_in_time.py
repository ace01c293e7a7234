"""Answers of an API server, or of what stands in its place, that arrive a few bytes at a time."""

import time
from collections.abc import Sequence
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from kubernetes import client
from urllib3 import Retry, Timeout
from urllib3.exceptions import HTTPError

from program.api_client import api_client
from tests.serving import serving

_BEGIN = b"HTTP/1.1 200 OK\r\n"
_CHUNKED = _BEGIN + b"Transfer-Encoding: chunked\r\n\r\n"
_SLOW = 40  # pieces, which arrive over 2 seconds
_HEADERS = [_BEGIN, *[b"X-More: a\r\n"] * _SLOW, b"Content-Length: 2\r\n\r\nok"]
_CHUNK_LINE = [_CHUNKED, *[b"0"] * _SLOW, b"2\r\nok\r\n0\r\n\r\n"]
_CHUNKS = [_CHUNKED, *[b"1\r\n \r\n"] * _SLOW, b"2\r\nok\r\n0\r\n\r\n"]
_BODY = [_BEGIN + b"Content-Length: %d\r\n\r\n" % (_SLOW + 2), *[b" "] * _SLOW, b"ok"]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def __init__(self, pieces: Sequence[bytes], *arguments: Any) -> None:
        self._pieces = pieces
        super().__init__(*arguments)

    def do_GET(self) -> None:
        for piece in self._pieces:
            try:
                self.wfile.write(piece)
            except OSError:
                return
            time.sleep(0.05)

    def log_message(self, *_: object) -> None:
        pass


def answer(pieces: Sequence[bytes], *, seconds: float) -> bytes:
    with serving(ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, pieces))) as port:
        settings = client.Configuration(host=f"http://127.0.0.1:{port}")
        pools = api_client(settings).rest_client.pool_manager
        made = pools.request("GET", settings.host, timeout=Timeout(total=seconds), retries=Retry(total=0))
        return bytes(made.data)


@pytest.mark.parametrize("pieces", [_HEADERS, _CHUNK_LINE, _CHUNKS, _BODY], ids=("headers", "line", "chunks", "body"))
def test_an_answer_that_arrives_too_slowly_ends_with_the_time_of_the_request(pieces: Sequence[bytes]) -> None:
    assert answer(pieces, seconds=60).endswith(b"ok")
    with pytest.raises(HTTPError, match="timed out"):
        answer(pieces, seconds=0.5)
