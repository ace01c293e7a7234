"""HTTP/1.1, parsed by llhttp: bytes to requests within their limits, and answers to bytes."""

import time
from collections import deque
from email.utils import formatdate
from functools import cache, lru_cache
from http import HTTPStatus
from typing import Final, NamedTuple

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser, parse_url

from webhook.settings import MAX_BODY_BYTES, MAX_HEAD_BYTES, MAX_WAITING_REQUESTS

CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
_PLAIN: Final = "text/plain; charset=utf-8"
_CLOSE: Final = "Connection: close\r\n"
_BESIDE_HEADER_BYTES: Final = len(": \r\n")
_BESIDE_CHUNK_BYTES: Final = len("1\r\n\r\n")  # at least


class Request(NamedTuple):
    """A request that is here in whole."""

    method: str
    target: bytes
    body: bytes | bytearray
    is_last: bool  # of its connection, because the caller says so, or because its end is not known by its length

    @property
    def path(self) -> bytes:
        """
        The path of the target, in whichever of HTTP's forms that is.

        Raises:
            HttpParserInvalidURLError: If it has none.
        """
        return parse_url(self.target).path or b"/"


class Answer(NamedTuple):
    """An answer, but for what concerns the connection."""

    status: int
    body: bytes
    content_type: str = _PLAIN
    headers: tuple[tuple[str, str], ...] = ()
    length: int | None = None  # that is said, where it is not the body's: of the answer to HEAD

    def written(self, *, is_last: bool) -> bytes:
        """Write head and body, which leave together: in one TLS record, where they fit."""
        head = (
            f"{_status_line(self.status)}Date: {_date()}\r\nContent-Type: {self.content_type}\r\n"
            f"Content-Length: {len(self.body) if self.length is None else self.length}\r\n"
        )
        for name, value in self.headers:
            head += f"{name}: {value}\r\n"
        return f"{head}{_CLOSE if is_last else ''}\r\n".encode("latin-1") + self.body


def plain(text: str, status: int = 200) -> Answer:
    """Answer in one sentence for people."""
    return Answer(status, f"{text}\n".encode(errors="backslashreplace"))  # of a path that is not UTF-8


@cache
def _status_line(status: int) -> str:
    return f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n"


def _date() -> str:
    return _date_at(int(time.time()))


@lru_cache(maxsize=1)
def _date_at(seconds: int) -> str:
    return formatdate(seconds, usegmt=True)


class RequestParser:
    """
    Takes what a connection receives, and keeps the requests that are complete.

    What comes after a request that is rejected, or is the last, is not read.
    """

    def __init__(self) -> None:
        self.requests: deque[Request] = deque()
        self.rejection: Answer | None = None  # of the request after these
        self.awaits_continue = False  # the caller wants to be asked for the body
        self.is_over = False  # no other request is read
        self.has_begun = False  # the first byte of a request is here, and not yet the last
        self.has_head = False
        self._parser = HttpRequestParser(self)
        self._body: bytes | bytearray
        self._untold_bytes = 0  # since the parser has told of anything
        self.on_message_begin()
        self.has_begun = False

    @property
    def held_bytes(self) -> int:
        """Size of the body so far."""
        return len(self._body)

    def feed(self, data: memoryview) -> None:
        """Take what was received."""
        self._was_told = False
        try:
            self._parser.feed_data(data)
        except HttpParserUpgrade:  # which servers may pass over; what follows would be in the other protocol
            self.is_over = True
        except HttpParserError as error:
            if not self.is_over:
                self.reject(400, f"The request is malformed: {error}")
        # What has no end yet: a name or a value, which httptools keeps, or the extension of a chunk.
        self._untold_bytes = 0 if self._was_told else self._untold_bytes + len(data)
        if self._untold_bytes > MAX_HEAD_BYTES:
            self._reject_head()

    def end(self) -> None:
        """
        Read nothing more, and keep nothing but the rejection.

        Parser and callbacks hold each other, and would wait for the garbage collector.
        """
        self.is_over = True
        self.requests.clear()
        self._body = b""
        vars(self).pop("_parser", None)

    def reject(self, status: int, sentence: str) -> None:
        """Answer the request that has begun with this, and read no other one."""
        if not self.is_over:
            self.rejection = plain(sentence, status)
            self.is_over = True
            self._body = b""

    def on_message_begin(self) -> None:
        """Expect the head of the next request."""
        self._was_told = True
        self.has_begun, self.has_head = True, False
        self._url = b""
        self._head_bytes = 0
        self._body = b""
        self._has_body = False  # as far as the head says
        self._is_last = False
        self._expects = b""
        self.awaits_continue = False

    def on_url(self, part: bytes) -> None:
        """Take the target, or a part of it."""
        self._was_told = True
        self._url += part
        self._count_head(len(part))

    def on_header(self, name: bytes, value: bytes) -> None:
        """Look for what concerns the body; a trailer is a header too."""
        self._was_told = True
        self._count_head(len(name) + len(value) + _BESIDE_HEADER_BYTES)
        match name.lower():
            case b"content-length" if int(value) > MAX_BODY_BYTES:  # llhttp has seen that they are digits
                self._reject_length()
            case b"content-length":
                self._has_body = int(value) > 0
            case b"transfer-encoding":
                self._has_body = self._is_last = True
            case b"expect":
                self._expects = value.lower()

    def on_headers_complete(self) -> None:
        """Decide on the request as far as its head says what it is."""
        self._was_told = True
        self.has_head = True
        version = self._parser.get_http_version()
        if version not in ("1.1", "1.0"):
            self.reject(400, "The request is malformed: expected HTTP/1.1")
        # What follows a request for another protocol is not parsed, although we answer in this one.
        if version == "1.0" or not self._parser.should_keep_alive() or self._parser.should_upgrade():
            self._is_last = True
            if self._parser.should_upgrade() and self._has_body:  # which httptools leaves out
                self.reject(400, "A body beside Upgrade or CONNECT is not read: send the request without them.")
        if self._expects and self._expects != b"100-continue":
            self.reject(417, "Of the expectations, 100-continue can be met.")
        self.awaits_continue = bool(self._expects) and version == "1.1"

    def on_chunk_header(self) -> None:
        """Count what stands beside a chunk, so that chunks have a bound: one of a byte takes a microsecond."""
        self._was_told = True
        self._count_head(_BESIDE_CHUNK_BYTES)

    def on_body(self, part: bytes) -> None:
        """Take the body, or a part of it."""
        self._was_told = True
        if self.is_over:
            return
        if not self._body:
            self._body = part
        else:
            if isinstance(self._body, bytes):
                self._body = bytearray(self._body)
            self._body += part
            if len(self._body) > MAX_BODY_BYTES:
                self._reject_length()
        self.awaits_continue = False

    def on_message_complete(self) -> None:
        """Keep the request."""
        self._was_told = True
        self.has_begun = False
        if len(self.requests) >= MAX_WAITING_REQUESTS:
            self.reject(400, f"More than {MAX_WAITING_REQUESTS} requests came before they could be answered.")
        if not self.is_over:
            method = self._parser.get_method().decode("ascii")
            self.requests.append(Request(method, self._url, self._body, self._is_last))
            self.is_over = self._is_last
        self._body = b""

    def _count_head(self, count: int) -> None:
        self._head_bytes += count
        if self._head_bytes > MAX_HEAD_BYTES:
            self._reject_head()

    def _reject_head(self) -> None:
        self.reject(
            400, f"The head of the request, or what stands beside its body, is longer than {MAX_HEAD_BYTES} bytes."
        )

    def _reject_length(self) -> None:
        self.reject(413, f"The body is longer than {MAX_BODY_BYTES} bytes.")
