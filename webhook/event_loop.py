"""One process, one thread, all connections: epoll says which of them can go on."""

import errno
import logging
import os
import select
import socket
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Final

from program.log import WarnOnce
from webhook.connection import Connection
from webhook.deadlines import Deadline, leave
from webhook.http1 import Answer, Request
from webhook.listener import widen
from webhook.settings import (
    HANDSHAKE_SECONDS,
    HURRY_SECONDS,
    IDLE_SECONDS,
    MAX_HELD_BYTES,
    REQUEST_SECONDS,
    WIDE_CONNECTIONS,
)
from webhook.tls import ServingCertificate

log = logging.getLogger(__name__)

_LOOK_SECONDS: Final = 0.25  # how often deadlines are looked at
_EXHAUSTED: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})


class EventLoop:
    """Accepts, lets connections go on, and ends those that are overdue."""

    def __init__(
        self,
        listeners: Iterable[socket.socket],
        *,
        answer: Callable[[Request], Answer],
        certificate: ServingCertificate,
        most_connections: int,
        clock: Callable[[], float],
    ) -> None:
        self.answer = answer
        self.certificate = certificate
        self.handshakes: Deadline[Connection] = Deadline(HANDSHAKE_SECONDS, clock)
        self.idle: Deadline[Connection] = Deadline(IDLE_SECONDS, clock)
        self.requests: Deadline[Connection] = Deadline(REQUEST_SECONDS, clock)
        self.answers: Deadline[Connection] = Deadline(REQUEST_SECONDS, clock)
        self.drains: Deadline[Connection] = Deadline(REQUEST_SECONDS, clock)
        self.held_bytes = 0
        self.is_ending = False
        self._states = (self.handshakes, self.idle, self.requests, self.answers, self.drains)
        self._clock = clock
        self._next_look = 0.0  # by the clock
        self._connections: dict[int, Connection] = {}
        self._most_connections = most_connections
        self._had_places = 0.0  # likewise; when a look found two, and nobody waiting for one
        self._later: dict[Connection, None] = {}  # in their order, each once
        self._wakers: set[int] = set()
        self._listeners = {one.fileno(): one for one in listeners}
        self._is_accepting = True
        self._warn = WarnOnce(log)
        self._epoll = select.epoll()
        for descriptor, listener in self._listeners.items():
            listener.settimeout(0)
            self._epoll.register(descriptor, select.EPOLLIN)

    @property
    def is_empty(self) -> bool:
        """Whether there is no connection."""
        return not self._connections

    def wake_by(self, descriptor: int) -> None:
        """End a turn at once when a pipe can be read."""
        self._wakers.add(descriptor)
        self._epoll.register(descriptor, select.EPOLLIN)

    def turn(self) -> None:
        """Let every connection go on that can; if none can, wait for one, but not for long."""
        found = self._epoll.poll(0 if self._later else _LOOK_SECONDS)
        later, self._later = self._later, {}
        for descriptor, _ in found:
            connection = self._connections.get(descriptor)
            if connection is not None:
                later.pop(connection, None)  # twice now would be three times in the next turn
                self._do(connection, connection.proceed)
            elif descriptor in self._listeners:
                self._accept(self._listeners[descriptor])
            elif descriptor in self._wakers:
                _empty(descriptor)
        for connection in later:
            self._do(connection, connection.proceed)
        now = self._clock()
        if now >= self._next_look:
            self._next_look = now + _LOOK_SECONDS
            for overdue in (one for state in self._states for one in state.overdue()):
                self._do(overdue, overdue.expire)
            if len(self._connections) < self._most_connections - 1 and not self._is_awaited():
                self._had_places = now
            if not self._is_accepting:
                self._end_one()
                self._accept_or_not(is_accepting=len(self._connections) < self._most_connections)

    def stop_accepting(self) -> None:
        """Accept what is waiting, and close the listeners of this process."""
        for listener in self._listeners.values():
            while self._accept(listener):
                pass
            # Other processes have it too, so that epoll would go on to tell of it, by a number that is another's then.
            self._epoll.unregister(listener)
            listener.close()
        self._listeners.clear()

    def end_idle(self) -> None:
        """Hang up where no request has come."""
        for connection in [*self._connections.values()]:
            if self._stays_idle(connection):
                connection.hang_up()

    def wait_for(self, connection: Connection, events: int) -> None:
        """Let *connection* go on when one of the *events* has come."""
        if connection.events != events:
            connection.events = events
            self._epoll.modify(connection.descriptor, events)

    def proceed_later(self, connection: Connection) -> None:
        """Let *connection* go on in the next turn."""
        self._later[connection] = None

    def forget(self, connection: Connection) -> None:
        """Keep nothing of *connection*, which is about to be closed; epoll forgets what is closed by itself."""
        leave(connection)
        if self._connections.get(connection.descriptor) is connection:
            del self._connections[connection.descriptor]
        if not self._is_accepting:
            self._accept_or_not(is_accepting=True)

    def _make_room(self) -> None:
        for one in self._dispensable():
            if self.held_bytes <= MAX_HELD_BYTES:
                return
            if one.held_bytes:
                self._guarded(one, one.give_up)

    def _dispensable(self) -> Iterator[Connection]:
        """
        Yield answers that are not taken, and requests that are not complete: those that are slow, then the longest.

        A usual review's is neither. The longest alone could be, beside as many callers as there may be with less each.
        """
        for state in (self.drains, self.requests, self.answers):
            yield from [*state.staying(at_least_seconds=HURRY_SECONDS)]
        yield from sorted(self._connections.values(), key=lambda one: one.held_bytes, reverse=True)

    def _stays_idle(self, connection: Connection) -> bool:
        if self.idle.has(connection):  # a request may have come at this moment
            self._do(connection, connection.proceed)
        return self.idle.has(connection)

    def _end_one(self) -> None:
        """
        Make room for another connection: by the end of one that is slow, else idle where half are, else any other.

        Else whoever connects often enough would keep everybody else away, and no state ends soon. One that is idle may
        be the API server's, which is about to use it. Who holds most places and is neither, such as by the end of a
        request and the beginning of the next at once, is in the state that most of the others are in; who is new or
        sends a review is seldom in that, and not for longest. Before one of these ends a burst has had its second.
        """
        others = (self.drains, self.handshakes, self.requests, self.answers)
        for state in others:
            if (slow := state.longest(at_least_seconds=HURRY_SECONDS)) is not None:
                self._guarded(slow, slow.cut_off)
                return
        before = len(self._connections)
        while 2 * len(self.idle) >= len(self._connections) and (idle := self.idle.longest(at_least_seconds=0)):
            if self._stays_idle(idle):
                idle.cut_off()
            if len(self._connections) < before:
                return
        if self._clock() - self._had_places >= HURRY_SECONDS and self._is_awaited():
            fullest = max(others, key=len)
            patience_seconds = _LOOK_SECONDS if fullest is self.handshakes else 0  # we may not have read its beginning
            if (longest := fullest.longest(at_least_seconds=patience_seconds)) is not None:
                self._guarded(longest, longest.cut_off)

    def _is_awaited(self) -> bool:
        """Whether somebody waits to be accepted."""
        waiting = select.poll()
        for descriptor in self._listeners:
            waiting.register(descriptor, select.POLLIN)
        return bool(waiting.poll(0))

    def _do(self, connection: Connection, step: Callable[[], None]) -> None:
        """Do a step of *connection*; the bound of all is kept after it, and not within: giving up is a step as well."""
        self._guarded(connection, step)
        if self.held_bytes > MAX_HELD_BYTES:
            self._make_room()

    def _guarded(self, connection: Connection, step: Callable[[], None]) -> None:
        try:
            step()
        except Exception:  # a fault of ours ends one connection, and not all
            log.exception("connection failed")
            connection.close()

    def _accept(self, listener: socket.socket) -> bool:
        """Accept one connection, not all: they have their turns in between, and other workers their chance."""
        try:
            accepted, _ = listener.accept()
        except OSError as error:  # another worker has it, or it has gone
            if error.errno in _EXHAUSTED:  # epoll would tell of it again at once
                self._warn("connections wait", str(error.strerror))
                self._accept_or_not(is_accepting=False)
            return False
        with suppress(OSError):  # it has gone: its first step finds that out
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if len(self._connections) < WIDE_CONNECTIONS:
            widen(accepted)
        accepted.settimeout(0)
        self._connections[accepted.fileno()] = connection = Connection(accepted, self)
        try:
            self._epoll.register(accepted.fileno(), select.EPOLLIN)
        except OSError as error:  # no more can be watched
            self._warn("connections are closed", str(error.strerror))
            connection.close()
        if len(self._connections) >= self._most_connections:
            self._accept_or_not(is_accepting=False)
            self._end_one()
        return True

    def _accept_or_not(self, *, is_accepting: bool) -> None:
        self._is_accepting = is_accepting
        for descriptor in self._listeners:
            self._epoll.modify(descriptor, select.EPOLLIN if is_accepting else 0)


def _empty(descriptor: int) -> None:
    with suppress(OSError):
        os.read(descriptor, 4096)
