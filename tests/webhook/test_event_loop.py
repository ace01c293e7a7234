"""The loop by itself, where a process of its own would hide what it does."""

import errno
import os
import select
import socket
import ssl
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from webhook.event_loop import EventLoop
from webhook.http1 import Answer, Request, plain
from webhook.settings import HURRY_SECONDS
from webhook.tls import ServingCertificate


def loop_on(listener: socket.socket, certificates: Path, *, clock: Callable[[], float] = time.monotonic) -> EventLoop:
    return EventLoop(
        [listener],
        answer=lambda _: plain("ok"),
        certificate=ServingCertificate(certificates / "tls.crt", certificates / "tls.key"),
        most_connections=4,
        clock=clock,
    )


def test_a_listener_that_others_still_have_does_not_wake_who_has_closed_it(certificates: Path) -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    with listener.dup() as kept:  # as the master does, while it replaces its workers
        loop = loop_on(listener, certificates)
        loop.stop_accepting()
        with socket.create_connection(kept.getsockname()):
            began = time.monotonic()
            loop.turn()
            assert time.monotonic() - began > 0.2


def test_a_connection_has_one_turn_in_each_however_many_requests_it_has_sent(certificates: Path) -> None:
    answered = 0

    def answer(_: Request) -> Answer:
        nonlocal answered
        answered += 1
        return plain("ok")

    def flood() -> None:
        trusted = ssl.create_default_context(cafile=str(certificates / "ca.crt"))
        with (
            socket.create_connection(address) as connection,
            trusted.wrap_socket(connection, server_hostname="localhost") as caller,
        ):
            for _ in range(40):
                caller.sendall(b"GET / HTTP/1.1\r\n\r\n" * 30)
            while not is_over.wait(0.01):
                pass

    listener = socket.create_server(("127.0.0.1", 0))
    address, is_over = listener.getsockname(), threading.Event()
    certificate = ServingCertificate(certificates / "tls.crt", certificates / "tls.key")
    loop = EventLoop(
        [listener],
        answer=answer,
        certificate=certificate,
        most_connections=4,
        clock=time.monotonic,
    )
    caller = threading.Thread(target=flood)
    caller.start()
    try:
        turns = []
        while answered < 40 * 30:
            before = answered
            loop.turn()
            turns.append(answered - before)
        assert max(turns) == 1
    finally:
        is_over.set()
        caller.join()
        loop.stop_accepting()
        loop.end_idle()


def test_a_connection_that_cannot_be_watched_is_closed_and_the_next_one_is_heard(
    certificates: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class Full:
        """An epoll with room for the listener alone."""

        def __init__(self) -> None:
            self._epoll = made()
            self.poll, self.modify, self.unregister = self._epoll.poll, self._epoll.modify, self._epoll.unregister
            self._is_full = False

        def register(self, descriptor: int, events: int) -> None:
            if self._is_full:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            self._is_full = True
            self._epoll.register(descriptor, events)

    made = select.epoll
    monkeypatch.setattr(select, "epoll", Full)
    listener = socket.create_server(("127.0.0.1", 0))
    loop = loop_on(listener, certificates)
    for _ in range(2):
        with socket.create_connection(listener.getsockname()) as caller:
            loop.turn()
            assert caller.recv(1) == b""
    assert loop.is_empty
    assert [one.message for one in caplog.records] == ["connections are closed"]
    loop.stop_accepting()


def test_a_connection_that_is_not_slow_stays_where_the_system_can_open_no_more(
    certificates: Path, caplog: pytest.LogCaptureFixture
) -> None:
    class Listener(socket.socket):
        def accept(self) -> tuple[socket.socket, object]:
            if is_exhausted:
                raise OSError(errno.ENFILE, os.strerror(errno.ENFILE))
            return super().accept()

    now_seconds, is_exhausted = 0.0, False
    listener = Listener(fileno=socket.create_server(("127.0.0.1", 0)).detach())
    loop = loop_on(listener, certificates, clock=lambda: now_seconds)
    with socket.create_connection(listener.getsockname()) as begun:
        loop.turn()
        is_exhausted = True
        with socket.create_connection(listener.getsockname()):
            loop.turn()
            now_seconds += HURRY_SECONDS / 2
            loop.turn()
            begun.settimeout(0)
            with pytest.raises(BlockingIOError):
                begun.recv(1)
    assert {one.message for one in caplog.records} == {"connections wait"}
    loop.stop_accepting()
    loop.turn()
    assert loop.is_empty
