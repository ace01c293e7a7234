"""
A small HTTP server beside the work of a program: for scrapers and probes, in threads of its own, by GET alone.

Nobody who connects can keep it for long: each connection has one request and one deadline, from its beginning to the
last byte of the answer that is taken, and there are a few at a time, of which the oldest makes room for a new one.
The answers come from what is known already. Nor can many callers keep the program from its work: so many connections
a second are taken, and the others wait.
"""

import logging
import socket
import socketserver
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from io import BytesIO
from threading import BoundedSemaphore, Lock
from typing import Any, Final

from program.closing import close_when_taken, limit_untaken
from program.listening import family_and_host, written
from program.threads import start_beside

DEADLINE_SECONDS: Final = 5.0
MOST_CONNECTIONS: Final = 16  # at a time; for one more the first of them ends
MOST_A_SECOND: Final = 50  # connections, after as many at once as there may be at a time
KEPT_SECONDS: Final = 1.0
LARGEST_HEAD_BYTES: Final = 16 * 1024

_END_SECONDS: Final = 0.2  # that a connection may take to end, if it has to make room

_PLAIN: Final = "text/plain; charset=utf-8"
_END: Final = (b"\r\n\r\n", b"\n\n")

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a path is answered with."""

    body: bytes
    content_type: str = _PLAIN
    status: HTTPStatus = HTTPStatus.OK


Routes = Mapping[str, Callable[[str], Answer]]  # by path; each is given the query, the text behind "?"


class KeptAnswer:
    """An answer that is made by one caller at a time, and given to all who ask within the next second."""

    def __init__(self, make: Callable[[], Answer], *, clock: Callable[[], float] = time.monotonic) -> None:
        self._make = make
        self._clock = clock
        self._lock = Lock()
        self._kept: tuple[float, Answer] | None = None  # until when, and what

    def __call__(self) -> Answer:
        """Give the answer; what *make* raises passes through."""
        with self._lock:
            if self._kept is None or self._clock() >= self._kept[0]:
                answer = self._make()
                self._kept = (self._clock() + KEPT_SECONDS, answer)
            return self._kept[1]


def serve_beside(bind: tuple[str, int] | None, routes: Routes, *, what: str) -> "HttpServer | None":
    """
    Serve *routes* on an address in the background, if there is one; None if nothing is served.

    An address that cannot be had is logged, and no more: nothing else of the program depends on who looks at it.
    """
    if bind is None:
        return None
    try:
        server = HttpServer(bind, routes)
    except OSError as error:
        reason = f"{written(*bind)}: {error.strerror or error}: give another address or port"
        _log.warning("%s not served", what, extra={"reason": reason})
        return None
    try:
        server.start()
    except RuntimeError as error:  # no more threads can be had
        server.server_close()
        _log.warning("%s not served", what, extra={"reason": str(error)})
        return None
    address = f"http://{written(*server.server_address[:2])}"
    _log.info("%s served", what, extra={"address": address, "paths": sorted(routes)})
    return server


class HttpServer(socketserver.ThreadingTCPServer):
    """Answers *routes* from `start` to `close`; listens from the beginning."""

    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True
    request_queue_size = 64

    def __init__(self, bind: tuple[str, int], routes: Routes) -> None:
        """
        Listen.

        Raises:
            OSError: If the address is taken, or not ours.
        """
        self.address_family, host = family_and_host(bind[0])
        self.routes = routes
        self._free = BoundedSemaphore(MOST_CONNECTIONS)
        self._open: dict[Any, float] = {}  # connections in their order, and until when on the monotonic clock
        self._next_seconds = 0.0  # on the monotonic clock: when one more would be on time
        super().__init__((host, bind[1]), _Handler)

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return int(self.server_address[1])

    def server_bind(self) -> None:
        """Take connections over IPv4 as well, where the address is that of all hosts."""
        if self.address_family == socket.AF_INET6:
            with suppress(OSError):
                self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        limit_untaken(self.socket, DEADLINE_SECONDS)
        super().server_bind()

    def start(self) -> None:
        """Answer in a thread, which does not keep the process alive."""
        start_beside(self.serve_forever, name="http")

    def close(self) -> None:
        """Answer nobody any more; for a server that was started."""
        self.shutdown()
        self.server_close()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer one connection in a thread, when it is its turn, unless there are too many."""
        self._wait_for_its_turn()
        if not self._free.acquire(blocking=False) and not self._makes_room():
            self.shutdown_request(request)
            return
        self._open[request] = time.monotonic() + DEADLINE_SECONDS
        try:
            super().process_request(request, client_address)
        except RuntimeError:  # no more threads can be had
            self._forget(request)
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer, and make room for another connection."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._forget(request)

    def shutdown_request(self, request: Any) -> None:
        """End a connection when its caller has taken the answer, at the deadline, or when it has to make room."""
        close_when_taken(request, may_wait=lambda: time.monotonic() < self._open.get(request, 0))

    def _wait_for_its_turn(self) -> None:
        now = time.monotonic()
        self._next_seconds = max(self._next_seconds, now - MOST_CONNECTIONS / MOST_A_SECOND) + 1 / MOST_A_SECOND
        time.sleep(max(0.0, self._next_seconds - now))

    def _forget(self, request: Any) -> None:
        self._open.pop(request, None)
        self._free.release()

    def _makes_room(self) -> bool:
        """End the connection that is the oldest, so that nobody keeps others away by silence; False if that fails."""
        with suppress(OSError, RuntimeError, StopIteration):  # one has ended at this moment
            oldest = next(iter(self._open))
            self._open.pop(oldest, None)
            oldest.shutdown(socket.SHUT_RDWR)
        return self._free.acquire(timeout=_END_SECONDS)

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002 - the signature is socketserver's
        """Say nothing of callers that are gone or too slow, and log what is our fault."""
        if not isinstance(sys.exc_info()[1], OSError):
            _log.exception("connection failed")


class _Handler(BaseHTTPRequestHandler):
    """Answers one request."""

    server: HttpServer
    server_version = "gpu-share"
    sys_version = ""
    error_content_type = _PLAIN
    error_message_format = "%(code)d %(message)s\n"

    def handle(self) -> None:
        """Read the head of a request as far as the deadline allows, and answer it."""
        self._deadline = time.monotonic() + DEADLINE_SECONDS
        self.close_connection = True
        head = self._head()
        if head is not None:
            self.rfile = BytesIO(head)
            self.handle_one_request()

    def do_GET(self) -> None:
        """Answer what is known."""
        path, _, query = self.path.partition("?")
        route = self.server.routes.get(path)
        if route is None:
            known = " or ".join(sorted(self.server.routes))
            self._send(Answer(f"expected GET {known}\n".encode(), status=HTTPStatus.NOT_FOUND))
            return
        try:
            answer = route(query)
        except Exception:  # noqa: BLE001 - whatever it was, the next scrape may find all in order
            _log.exception("no answer", extra={"path": path})
            answer = Answer(b"no answer: the log says why\n", status=HTTPStatus.INTERNAL_SERVER_ERROR)
        self._send(answer)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the signature is http.server's
        """Log no requests."""

    def _head(self) -> bytes | None:
        """Read up to the empty line; None if it does not come in time, or is too far away."""
        head = b""
        while not any(end in head for end in _END):
            left_seconds = self._deadline - time.monotonic()
            if left_seconds <= 0 or len(head) > LARGEST_HEAD_BYTES:
                return None
            self.connection.settimeout(left_seconds)
            received = self.connection.recv(4096)
            if not received:
                return None
            head += received
        # Both of these bound one call each, so that an answer which nobody takes ends with the deadline as well.
        self.connection.settimeout(max(0.1, self._deadline - time.monotonic()))
        return head

    def _send(self, answer: Answer) -> None:
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.content_type)
        self.send_header("Content-Length", str(len(answer.body)))
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(answer.body)
