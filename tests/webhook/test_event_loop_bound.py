"""The bound of what all callers together make the loop keep, where many take nothing of what is sent to them."""

import contextlib
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.webhook.key_updates import taken_over
from tests.webhook.raw_http import MEBIBYTE, answer, post
from tests.webhook.serving import wait_for
from webhook.event_loop import EventLoop
from webhook.http1 import plain
from webhook.settings import HURRY_SECONDS, MAX_HELD_BYTES
from webhook.tls import ServingCertificate

DEAF = 180  # callers; each once was given up within the step of another, of which Python takes a thousand calls
HALF_BYTES = MAX_HELD_BYTES // 2 - 64 * 1024
ANSWERED_UPDATES = 200  # fill the kernel's buffers where these are as small as they can be


@contextlib.contextmanager
def looping(certificates: Path, clock: Callable[[], float]) -> Iterator[tuple[EventLoop, tuple[str, int]]]:
    """A loop that goes round, and its address."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=DEAF)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)
    address, is_over = listener.getsockname(), threading.Event()
    loop = EventLoop(
        [listener],
        answer=lambda _: plain("ok"),
        certificate=ServingCertificate(certificates / "tls.crt", certificates / "tls.key"),
        most_connections=2 * DEAF,
        clock=clock,
    )

    def go_round() -> None:
        while not (is_over.is_set() and loop.is_empty):
            loop.turn()

    going = threading.Thread(target=go_round)
    going.start()
    try:
        yield loop, address
    finally:
        is_over.set()
        going.join()
        loop.stop_accepting()


def test_callers_that_take_no_answer_make_room_for_one_that_does(
    certificates: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    now_seconds = 0.0
    with looping(certificates, lambda: now_seconds) as (loop, address), contextlib.ExitStack() as stack:

        def trusted() -> ssl.SSLContext:
            return ssl.create_default_context(cafile=str(certificates / "ca.crt"))

        def connected() -> ssl.SSLSocket:
            connection = stack.enter_context(socket.create_connection(address, timeout=15))
            return stack.enter_context(trusted().wrap_socket(connection, server_hostname="localhost"))

        for number in range(DEAF):
            plain_socket = stack.enter_context(socket.socket())
            plain_socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
            plain_socket.connect(address)
            deaf, maker = stack.enter_context(taken_over(plain_socket, trusted(), tmp_path / f"keys-{number}"))
            deaf.sendall(maker.record(post(b"{", length=MEBIBYTE)))
            deaf.sendall(b"".join(maker.key_update(asks=True) for _ in range(ANSWERED_UPDATES)))
        usual = connected()
        for _ in range(10):  # turns, in which all of that is read
            usual.sendall(post(b"{}"))
            assert answer(usual)[0] == 200
        now_seconds += HURRY_SECONDS
        for _ in range(2):
            connected().sendall(post(b" " * HALF_BYTES, length=HALF_BYTES + 1))
        wait_for(lambda: loop.held_bytes > 2 * HALF_BYTES)
        usual.sendall(post(b"{" * 512 * 1024))
        assert answer(usual)[0] == 200
        assert loop.held_bytes <= MAX_HELD_BYTES
    assert caplog.messages.count("answer not taken") > 0.9 * DEAF
    assert "connection failed" not in caplog.messages
