"""An answer that is the last of its connection: all of it for who takes it in time, and nothing kept of the rest."""

import os
import socket
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.kernel_sockets import orphans
from tests.webhook.raw_http import post
from tests.webhook.served_loop import Served, serving
from tests.webhook.serving import Server, review_of, wait_for
from webhook.http1 import Answer, Request, plain
from webhook.settings import HURRY_SECONDS, MAX_HELD_BYTES, REQUEST_SECONDS

LENGTH = 100_000  # more than a deaf caller has room for, and less than the kernel takes of us
LAST = b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n"
MOST_CONNECTIONS = 4
SIZE = 2 * 1024 * 1024


def answer(_: Request) -> Answer:
    return plain("x" * LENGTH)


@pytest.fixture
def served(certificates: Path) -> Iterator[Served]:
    with serving(certificates, answer, most_connections=MOST_CONNECTIONS) as made:
        yield made


def received(caller: socket.socket) -> bytes:
    return b"".join(iter(lambda: caller.recv(4096), b""))


def end_of(caller: socket.socket) -> None:
    """Say TCP's end and not TLS's: Python would give up TLS with it."""
    with socket.socket(fileno=os.dup(caller.fileno())) as own:
        own.shutdown(socket.SHUT_WR)


def send_no_tls(caller: socket.socket) -> None:
    with socket.socket(fileno=os.dup(caller.fileno())) as own:
        own.sendall(b"\x17\3\3\0\x20" + bytes(32))


@pytest.mark.parametrize("says_its_end", [False, True])
def test_a_slow_caller_gets_the_whole_of_a_last_answer(served: Served, *, says_its_end: bool) -> None:
    caller = served.deaf_caller()
    served.send(caller, LAST)
    if says_its_end:
        end_of(caller)
    served.pass_by(REQUEST_SECONDS - 0.5)
    assert LENGTH < served.loop.held_bytes < 3 * LENGTH
    assert len(served.meanwhile(lambda: received(caller)).partition(b"\r\n\r\n")[2]) == LENGTH + 1
    served.await_the_end()
    assert served.loop.held_bytes == 0


def test_who_ends_its_side_behind_a_request_gets_the_whole_answer(served: Served) -> None:
    caller = served.deaf_caller()
    served.send(caller, b"GET / HTTP/1.1\r\n\r\n")
    end_of(caller)
    served.turn()
    assert len(served.meanwhile(lambda: received(caller)).partition(b"\r\n\r\n")[2]) == LENGTH + 1
    served.await_the_end()


def test_a_last_answer_that_is_not_taken_in_time_is_kept_no_longer(served: Served) -> None:
    served.send(served.deaf_caller(), LAST)
    served.pass_by(REQUEST_SECONDS - 0.5)
    assert not served.loop.is_empty
    served.pass_by(1)
    served.await_the_end()
    assert orphans(served.port) == []


def test_last_answers_that_are_not_taken_have_a_bound_together(
    served: Served, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("webhook.event_loop.MAX_HELD_BYTES", 3 * LENGTH)
    for _ in range(MOST_CONNECTIONS - 1):
        served.send(served.deaf_caller(), LAST)
        served.turn()
        assert served.loop.held_bytes <= 3 * LENGTH
    assert caplog.messages == ["answer not taken"] * (MOST_CONNECTIONS - 2)
    assert orphans(served.port) == []


@pytest.mark.parametrize("ends_by", [end_of, send_no_tls], ids=["its end", "what is not TLS"])
def test_half_a_body_is_not_kept_behind_an_answer_that_is_not_taken(
    served: Served, ends_by: Callable[[socket.socket], None]
) -> None:
    half = post(bytes(2 * SIZE))[:-SIZE]
    caller = served.deaf_caller()
    served.send(caller, b"GET / HTTP/1.1\r\n\r\n")
    tracemalloc.start()
    try:
        served.meanwhile(lambda: caller.sendall(half))
        served.go_on_until(lambda: served.loop.held_bytes >= SIZE)
        ends_by(caller)
        served.go_on_until(lambda: len(served.loop.drains) == 1)
        assert tracemalloc.get_traced_memory()[0] < SIZE
    finally:
        tracemalloc.stop()


def test_who_does_not_take_its_last_answer_makes_room_for_another(served: Served) -> None:
    for _ in range(MOST_CONNECTIONS - 1):
        served.send(served.deaf_caller(), LAST)
    served.pass_by(HURRY_SECONDS)
    served.caller(secured=True)
    served.caller(secured=True)
    assert len(served.loop.drains) < MOST_CONNECTIONS - 1
    assert orphans(served.port) == []


def test_a_caller_of_which_too_much_is_kept_is_ended_with_all_that_it_did_not_take(
    policies: Path, certificates: Path, start: Callable[..., Server]
) -> None:
    server = start(policies, certificates)
    review = post(review_of(uid="u" * 60_000))
    with ExitStack() as stack:
        for _ in range(MAX_HELD_BYTES // 225_000 + 30):  # what each such answer counts as
            caller = stack.enter_context(socket.socket())
            caller.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
            caller.settimeout(10)
            caller.connect(("localhost", server.port))
            secured = stack.enter_context(server.context().wrap_socket(caller, server_hostname="localhost"))
            secured.sendall(review)
        wait_for(lambda: len(server.lines("answer not taken")) >= 20)
        assert orphans(server.port) == []
