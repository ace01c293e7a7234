"""gunicorn's gevent worker, with deadlines for callers and a last answer that says so."""

import contextlib
import logging
import signal
import socket
import ssl
from collections.abc import Iterable
from typing import Any

import gevent

# These five are imported by gunicorn's worker after the fork: imported before, they are shared (1 MiB).
import gevent.selectors
import gevent.signal
import gevent.subprocess
import gevent.threading
import gevent.threadpool
from gevent import GreenletExit, Timeout
from gunicorn.workers.ggevent import GeventWorker

from webhook.connection import Connection
from webhook.settings import HANDSHAKE_SECONDS, IDLE_SHUTDOWN_SECONDS, MAX_BODY_BYTES
from webhook.tls import ServingCertificate

log = logging.getLogger(__name__)


class Handshakes:
    """Stands where gevent's server takes an SSLContext: makes a Connection of each socket it accepted."""

    def __init__(self, certificate: ServingCertificate) -> None:
        self._certificate = certificate

    def wrap_socket(self, accepted: Any, **_: object) -> Connection:
        """
        Shake hands, with the certificate that is newest when the caller begins.

        Raises:
            GreenletExit: If the caller does not, in time; it ends the caller's greenlet silently.
        """
        try:
            with Timeout(HANDSHAKE_SECONDS, TimeoutError):
                # Until its first byte a caller costs a socket and no TLS state; a TCP probe never sends one.
                if accepted.recv(1, socket.MSG_PEEK):
                    connection: Connection = self._certificate.newest().wrap_socket(accepted, server_side=True)
                    return connection
        except ssl.SSLEOFError:
            pass
        except ssl.SSLError as error:
            # The API server with a caBundle that does not fit is seen here and nowhere else.
            log.warning("handshake failed", extra={"reason": error.reason})
        except OSError:
            pass
        raise GreenletExit


class Worker(GeventWorker):  # type: ignore[misc] # gunicorn is published without types
    """Serves the connections of one process."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._connections: set[Connection] = set()
        self._requests: set[Any] = set()

    def init_signals(self) -> None:
        """Leave Ctrl-C, which reaches the whole process group, to the master, which passes it on once."""
        super().init_signals()
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    def handle(self, listener: Any, client: Connection, addr: Any) -> None:
        """Serve one connection until it ends."""
        self._connections.add(client)
        try:
            super().handle(listener, client, addr)
        finally:
            self._connections.discard(client)

    def handle_request(self, listener_name: Any, req: Any, sock: Connection, addr: Any) -> None:
        """Serve one request."""
        if not _is_bounded(req.headers):
            req.force_close()
        self._requests.add(req)
        try:
            super().handle_request(listener_name, req, sock, addr)
        finally:
            self._requests.discard(req)
            sock.request_is_over()

    def handle_exit(self, sig: int, frame: Any) -> None:
        """Shut down gracefully, on SIGTERM: answer what is there, and close each connection with its answer."""
        super().handle_exit(sig, frame)
        for request in self._requests:
            request.force_close()
        gevent.spawn_later(IDLE_SHUTDOWN_SECONDS, self._end_idle_connections)

    def _end_idle_connections(self) -> None:
        # Not at once: a caller may be about to use one, and the API server does not repeat a POST.
        for connection in list(self._connections):
            if connection.idle:
                connection.hang_up()

    def handle_error(self, _req: Any, client: Connection, _addr: Any, exc: BaseException) -> None:
        """Answer malformed HTTP; gunicorn's own answer is HTML, and its log line quotes the caller."""
        if isinstance(exc, GreenletExit):
            return
        log.warning("request rejected", extra={"error": type(exc).__name__})
        text = f"The request is malformed: {type(exc).__name__}.\n".encode()
        head = b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Type: text/plain\r\n"
        with contextlib.suppress(OSError):
            client.sendall(b"%sContent-Length: %d\r\n\r\n%s" % (head, len(text), text))


def _is_bounded(headers: Iterable[tuple[str, str]]) -> bool:
    """Whether the end of the body is known and near: else the connection is not used again."""
    for name, value in headers:
        if name == "CONTENT-LENGTH":
            return int(value) <= MAX_BODY_BYTES
        if name == "TRANSFER-ENCODING":
            return False
    return True
