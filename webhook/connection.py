"""A caller's connection: TLS that never waits, one answer for each request, and a deadline for every state."""

import logging
import select
import socket
import ssl
from typing import TYPE_CHECKING, Final

from webhook.http1 import CONTINUE, Answer, RequestParser
from webhook.secured_socket import SecuredSocket
from webhook.settings import MAX_DRAIN_BYTES, REQUEST_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable

    from webhook.deadlines import Deadline
    from webhook.loop import Loop

log = logging.getLogger(__name__)

_RECORD_BYTES: Final = 16 * 1024  # of TLS, at most
_TURN_RECORDS: Final = 16  # read for one connection before the others have their turn
_KERNEL_SHARE: Final = 2  # about as many bytes the kernel takes for each that is not acknowledged
# Each change once: that a caller has taken all is no event of its own, and one that has ended could be read for ever.
_ANY_CHANGE: Final = select.EPOLLIN | select.EPOLLOUT | select.EPOLLET

BUFFER: Final = memoryview(bytearray(_RECORD_BYTES))  # of all connections: what is in it is used at once


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

    def __init__(self, accepted: socket.socket, loop: "Loop") -> None:
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
        except ssl.SSLError:  # what the caller sends is not TLS, and an alert tells it so
            self.hang_up()
        except OSError:  # the caller has gone
            self.close()

    def expire(self) -> None:
        """End it, because it was in one state for too long; who has sent half a body is told so."""
        if self._loop.requests.has(self) and self._parser.has_head:
            self._parser.reject(408, f"The body did not arrive within {REQUEST_SECONDS} seconds.")
            self._step = Connection._serve
            self.proceed()
        elif self._is_answered:
            self.close()
        else:
            self.hang_up()

    def give_up(self) -> None:
        """Let go of what it holds, because all of them together hold too much."""
        if not self._is_answered:
            self._parser.reject(503, "The webhook has too many long requests at once: try again.")
            self._step = Connection._serve
            self.proceed()
            if self._step is not Connection._send:  # what is not sent at once is more than many a body
                return
        log.warning("answer not taken", extra={"bytes": self.held_bytes})
        self.close()

    def hang_up(self) -> None:
        """End it as the protocol wants it; close it when the caller has taken all, for which it has so long."""
        self._parser.end()
        self._socket.say_goodbye()
        self._step = Connection._drain
        self._loop.drains.enter(self)
        self.proceed()

    def cut_off(self) -> None:
        """End it in favour of another: it is told, and closed at once."""
        self._socket.say_goodbye()
        self.close()

    def close(self) -> None:
        """End it at once; what the caller has not taken is lost to it."""
        self._account(0)
        self._step = Connection._stay_closed
        self._loop.forget(self)
        self._parser.end()
        self._socket.close()

    @property
    def _is_answered(self) -> bool:
        return self._step in (Connection._send, Connection._drain)

    def _begin(self) -> None:
        if not self._socket.begin(self._loop.certificate.newest):
            self.hang_up()
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
        except ConnectionAbortedError as error:  # OpenSSL is not to read what the caller sends
            log.warning("handshake failed", extra={"reason": str(error)})
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
                self.hang_up()
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
        else:
            self.hang_up()

    def _drain(self) -> None:
        """Throw away what comes: to close on that, or on what is not taken yet, would cost the caller its answer."""
        has_ended = False
        for _ in range(_TURN_RECORDS):
            try:
                count = self._socket.discard()
            except BlockingIOError:
                break
            self._drained_bytes += count
            if not count:
                has_ended = True
                break
        else:
            self._loop.proceed_later(self)
        is_over = has_ended or not self._parser.rejection  # else the caller may be in the midst of its request
        untaken_bytes = self._socket.untaken_bytes
        if self._drained_bytes > MAX_DRAIN_BYTES or (is_over and not untaken_bytes):
            self.close()
        else:
            self._account(_KERNEL_SHARE * untaken_bytes)
            self._loop.wait_for(self, _ANY_CHANGE)

    def _stay_closed(self) -> None:
        """Do nothing: whoever calls had not heard of the end."""


_NOTHING: Final = Answer(400, b"")
