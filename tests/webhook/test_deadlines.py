"""How long a connection may be in each state, by a clock that the test moves, how much it may send, who ends first."""

import socket
import ssl
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from tests.webhook.served_loop import Served, serving
from webhook.http1 import Answer, Request, plain
from webhook.settings import (
    HANDSHAKE_SECONDS,
    HURRY_SECONDS,
    IDLE_SECONDS,
    MAX_DRAIN_BYTES,
    REQUEST_SECONDS,
)

MOST_CONNECTIONS = 4
HELLO_BEGINS = bytes.fromhex("16030102000100")
HEAD_BEGINS = b"POST /mutate HTTP/1.1\r\nHost: localhost\r\n"
BODY_BEGINS = HEAD_BEGINS + b"Content-Length: 9000\r\n\r\n{"
WHOLE = b"GET / HTTP/1.1\r\n\r\n"
LARGE = b"GET /large HTTP/1.1\r\n\r\n"  # its answer is more than the kernel keeps
MALFORMED = b"GET / HTTP/7\r\n\r\n"


def answer(request: Request) -> Answer:
    return plain("x" * (8 << 20) if request.target == b"/large" else "ok")


@pytest.fixture
def served(certificates: Path) -> Iterator[Served]:
    with serving(certificates, answer, most_connections=MOST_CONNECTIONS) as made:
        yield made


@pytest.mark.parametrize(
    ("secured", "sent", "seconds"),
    [
        pytest.param(False, b"", HANDSHAKE_SECONDS, id="silent"),
        pytest.param(False, HELLO_BEGINS, HANDSHAKE_SECONDS, id="half a handshake"),
        pytest.param(True, b"", IDLE_SECONDS, id="idle without a request"),
        pytest.param(True, WHOLE, IDLE_SECONDS, id="idle after a request"),
        pytest.param(True, HEAD_BEGINS, REQUEST_SECONDS, id="half a head"),
        pytest.param(True, WHOLE + HEAD_BEGINS, REQUEST_SECONDS, id="half a head after a request"),
        pytest.param(True, LARGE, REQUEST_SECONDS, id="an answer that is not taken"),
        pytest.param(True, MALFORMED, REQUEST_SECONDS, id="silent after a rejection"),
    ],
)
def test_a_connection_ends_when_it_was_in_one_state_for_too_long(
    served: Served, sent: bytes, seconds: float, *, secured: bool
) -> None:
    served.send(served.caller(secured=secured), sent)
    served.pass_by(seconds - 0.5)
    assert not served.loop.is_empty
    served.pass_by(1)
    served.await_the_end()


def test_half_a_body_is_answered_at_its_deadline_and_may_then_come_for_as_long_again(served: Served) -> None:
    caller = served.caller(secured=True)
    served.send(caller, BODY_BEGINS)
    served.pass_by(REQUEST_SECONDS - 0.5)
    served.send(caller, b"{")  # a byte now and then makes it no longer
    served.pass_by(1)
    assert caller.recv(4096).startswith(b"HTTP/1.1 408")
    assert not served.loop.is_empty
    served.pass_by(REQUEST_SECONDS + 0.5)
    served.await_the_end()


def test_each_request_has_a_deadline_of_its_own(served: Served) -> None:
    caller = served.caller(secured=True)
    for _ in range(3):
        served.send(caller, WHOLE[:5])
        served.pass_by(REQUEST_SECONDS - 0.5)
        served.send(caller, WHOLE[5:])
        assert caller.recv(4096).startswith(b"HTTP/1.1 200")
        served.pass_by(IDLE_SECONDS - 0.5)
    assert not served.loop.is_empty


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(HEAD_BEGINS, id="half a head"),
        pytest.param(MALFORMED, id="silent after a rejection"),
    ],
)
def test_who_is_neither_slow_nor_idle_makes_room_once_all_places_were_kept_for_a_second(
    served: Served, sent: bytes
) -> None:
    held = [served.caller(secured=True) for _ in range(MOST_CONNECTIONS - 1)]
    served.pass_by(HURRY_SECONDS - 0.4)
    for one in held:
        served.send(one, sent)
    served.send(served.caller(secured=True), sent)
    with ThreadPoolExecutor(1) as pool:
        new = pool.submit(served.new_caller)
        served.pass_by(0.3)
        served.turn()
        assert not new.done()
        served.pass_by(0.3)
        served.send(served.meanwhile(new.result), WHOLE)
        assert new.result().recv(4096).startswith(b"HTTP/1.1 200")


def test_places_that_are_free_for_a_moment_are_none_where_others_wait_for_them(served: Served) -> None:
    former = [served.caller(secured=True) for _ in range(MOST_CONNECTIONS - 1)]
    served.pass_by(HURRY_SECONDS - 0.5)
    for one in former:
        one.close()
    first, *_ = [served.silent_caller() for _ in range(MOST_CONNECTIONS)]
    served.pass_by(0.3)  # a look, at which one of them has been accepted
    served.turn()
    served.silent_caller()
    served.pass_by(0.3)
    assert first.recv(1) == b""


def test_who_begins_a_request_when_it_is_to_make_room_leaves_that_to_the_next_idle_one(served: Served) -> None:
    first, second, third = (served.caller(secured=True) for _ in range(MOST_CONNECTIONS - 1))
    new = served.silent_caller()  # the loop hears of it first
    first.sendall(HEAD_BEGINS)
    served.turn()
    assert second.recv(1) == b""
    for caller in (first, third, new):
        caller.settimeout(0)
        with pytest.raises((BlockingIOError, ssl.SSLWantReadError)):
            caller.recv(1)


def test_what_comes_after_a_rejection_is_thrown_away_up_to_a_bound(served: Served) -> None:
    caller = served.caller(secured=True)
    served.send(caller, MALFORMED)
    piece = bytes(1 << 20)

    def flood() -> socket.socket:
        with suppress(OSError):
            for _ in range(2 * MAX_DRAIN_BYTES // len(piece)):
                caller.sendall(piece)
        return caller

    served.meanwhile(flood)
    assert served.loop.is_empty
