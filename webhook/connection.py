"""A caller's connection: TLS that never waits, one answer for each request, and a deadline for every state."""

import logging
import select
import socket
import ssl
from typing import TYPE_CHECKING, Final, Protocol

from webhook.http1 import CONTINUE, Answer, Request, RequestParser
from webhook.secured_socket import SecuredSocket
from webhook.settings import MAX_DRAIN_BYTES, REQUEST_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable

    from webhook.deadlines import Deadline
    from webhook.tls import ServingCertificate

log = logging.getLogger(__name__)

_RECORD_BYTES: Final = 16 * 1024  # of TLS, at most
_TURN_RECORDS: Final = 16  # read for one connection before the others have their turn

BUFFER: Final = memoryview(bytearray(_RECORD_BYTES))  # of all connections: what is in it is used at once


class Loop(Protocol):
    """What a connection needs of the loop that it is in."""

    handshakes: "Deadline[Connection]"
    idle: "Deadline[Connection]"
    requests: "Deadline[Connection]"
    answers: "Deadline[Connection]"
    drains: "Deadline[Connection]"
    held_bytes: int  # of all bodies that are not complete, and all answers that are not taken
    is_ending: bool  # no connection gets a second answer
    certificate: "ServingCertificate"

    def answer(self, request: Request) -> Answer:
        """Answer a request."""

    def wait_for(self, connection: "Connection", events: int) -> None:
        """Call `proceed` when one of the *events* of epoll has come."""

    def proceed_later(self, connection: "Connection") -> None:
        """Call `proceed` when the others had their turn."""

    def forget(self, connection: "Connection") -> None:
        """Keep nothing of a connection that is closed."""


class Connection:
    """One caller, from the first byte to the last. A step waits for nothing: it is done as far as it goes."""

    __slots__ = (
        "_drained_bytes",
        "_is_last",
        "_loop",
        "_parser",
        "_socket",
        "_step",
        "deadline",
        "descriptor",
        "events",
        "held_bytes",
    )

    def __init__(self, accepted: socket.socket, loop: Loop) -> None:
        self.descriptor = accepted.fileno()  # for as long as it is open
        self._socket = SecuredSocket(accepted)
        self._loop = loop
        self._parser = RequestParser()
        self._is_last = False  # is the answer
        self.held_bytes = 0  # of a body that is not complete, or an answer that is not taken
        self._drained_bytes = 0
        self.deadline: Deadline[Connection] | None = None
        self.events = select.EPOLLIN  # that the loop waits for
        self._step: Callable[[Connection], None] = Connection._begin  # of the class: no cycle of references
        loop.handshakes.enter(self)

    def proceed(self) -> None:
        """Go on, after something has come or gone; an error ends this connection alone."""
        try:
            self._step(self)
        except (ssl.SSLWantReadError, BlockingIOError):
            self._loop.wait_for(self, select.EPOLLIN)
        except ssl.SSLWantWriteError:
            self._loop.wait_for(self, select.EPOLLOUT)
        except OSError:  # the caller has gone, or what it sends is not TLS
            self.close()

    def expire(self) -> None:
        """End it, because it was in one state for too long; who has sent half a body is told so."""
        if self._loop.requests.has(self) and self._parser.has_head:
            self._parser.reject(408, f"The body did not arrive within {REQUEST_SECONDS} seconds.")
            self._step = Connection._serve
            self.proceed()
        else:
            self.hang_up()

    def give_up(self) -> None:
        """Let go of what it holds, because all of them together hold too much."""
        if self._step is not Connection._send:
            self._parser.reject(503, "The webhook has too many long requests at once: try again.")
            self._step = Connection._serve
            self.proceed()
        if self._step is Connection._send:  # what is not taken at once is more than many a body that it stands for
            log.warning("answer not taken", extra={"bytes": self.held_bytes})
            self.close()

    def hang_up(self) -> None:
        """End it as the protocol wants it, with nothing more to come from either side."""
        self._socket.say_goodbye()
        self.close()

    def close(self) -> None:
        """End it at once."""
        self._account(0)
        self._step = Connection._stay_closed
        self._loop.forget(self)
        self._parser.end()
        self._socket.close()

    def _begin(self) -> None:
        if not self._socket.begin(self._loop.certificate.newest):
            self.close()
            return
        self._step = Connection._shake_hands
        self._shake_hands()

    def _shake_hands(self) -> None:
        try:
            self._socket.shake_hands()
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise
        except ssl.SSLError as error:
            # The API server with a caBundle that does not fit is seen here and nowhere else.
            log.warning("handshake failed", extra={"reason": error.reason})
            self._loop.certificate.was_rejected(self._socket.context, error.reason)
            raise
        self._await_request()
        self._receive()

    def _await_request(self) -> None:
        self._step = Connection._receive
        self._loop.idle.enter(self)
        self._loop.wait_for(self, select.EPOLLIN)
        if self._socket.has_more:
            self._loop.proceed_later(self)
        if self._parser.has_begun:
            self._hold()

    def _receive(self) -> None:
        parser = self._parser
        for _ in range(_TURN_RECORDS):
            count = self._socket.read_into(BUFFER)
            if not count:
                self.close()
                return
            parser.feed(BUFFER[:count])
            if parser.requests or parser.rejection:
                self._serve()
                return
            self._hold()
            if self._socket.is_slow:
                break
        if self._socket.has_more:
            self._loop.proceed_later(self)

    def _hold(self) -> None:
        """Keep a request that is not complete, for as long as one may take."""
        if self._loop.idle.has(self):
            self._loop.requests.enter(self)
        self._account(self._parser.held_bytes)
        if self._parser.awaits_continue:
            self._parser.awaits_continue = False
            self._socket.write(CONTINUE)
            self._socket.send()

    def _account(self, held_bytes: int) -> None:
        """Count what it holds; the loop keeps the bound of all, once this step is over."""
        self._loop.held_bytes += held_bytes - self.held_bytes
        self.held_bytes = held_bytes

    def _serve(self) -> None:
        """Answer the request that is first."""
        parser = self._parser
        self._account(0)
        if parser.requests:
            request = parser.requests.popleft()
            answer = self._loop.answer(request)
            self._is_last = request.is_last or (self._loop.is_ending and not parser.requests)
        else:
            answer = parser.rejection or _NOTHING
            self._is_last = True
            log.warning("request rejected", extra={"status": answer.status, "reason": answer.body.decode().strip()})
        self._step = Connection._send
        self._loop.answers.enter(self)
        self._socket.write(answer.written(is_last=self._is_last))
        self._send()

    def _send(self) -> None:
        try:
            self._socket.send()
        except ssl.SSLWantWriteError:
            self._account(self._socket.kept_bytes)
            raise
        self._account(0)
        if not self._is_last:
            if self._parser.requests or self._parser.rejection:
                self._step = Connection._serve
                self._loop.proceed_later(self)
            else:
                self._await_request()
        elif self._parser.rejection:
            self._drain_from_now_on()
        else:
            self.hang_up()

    def _drain_from_now_on(self) -> None:
        # To close on what the caller still sends would reset the connection, and the answer with it.
        self._socket.say_goodbye()
        self._step = Connection._drain
        self._loop.drains.enter(self)
        self._loop.wait_for(self, select.EPOLLIN)

    def _drain(self) -> None:
        for _ in range(_TURN_RECORDS):
            count = self._socket.discard()
            self._drained_bytes += count
            if not count or self._drained_bytes > MAX_DRAIN_BYTES:
                self.close()
                return

    def _stay_closed(self) -> None:
        """Do nothing: whoever calls had not heard of the end."""


_NOTHING: Final = Answer(400, b"")
