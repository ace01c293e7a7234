"""Bodies of requests: in chunks, too long, not complete, and announced before they are sent."""

import contextlib
import socket
import struct
import time

import pytest

from tests.webhook.raw_http import MEBIBYTE, answer, post
from tests.webhook.serving import Server, review_of
from webhook.settings import HURRY_SECONDS, MAX_HELD_BYTES


def test_a_chunked_review_is_answered_as_the_last_of_its_connection(server: Server) -> None:
    body = review_of()
    with server.tls() as connection:
        connection.sendall(b"POST /mutate HTTP/1.1\r\nHost: l\r\nTransfer-Encoding: chunked\r\n\r\n")
        connection.sendall(b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body))
        status, head, _ = answer(connection)
        assert (status, "Connection: close" in head) == (200, True)


def test_a_body_in_chunks_of_a_byte_is_a_400_that_says_what_is_too_long(server: Server) -> None:
    with server.tls() as connection:
        connection.sendall(b"POST /mutate HTTP/1.1\r\nHost: l\r\nTransfer-Encoding: chunked\r\n\r\n")
        connection.sendall(b"1\r\n \r\n" * 50_000)
        status, _, body = answer(connection)
        assert (status, "what stands beside its body" in body) == (400, True)
        assert connection.recv(1) == b""


def test_broken_chunks_are_a_400(server: Server) -> None:
    with server.tls() as connection:
        connection.sendall(b"POST /mutate HTTP/1.1\r\nHost: l\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n")
        assert answer(connection)[0] == 400


def test_a_long_body_gets_a_413_before_it_is_sent(server: Server) -> None:
    with server.tls() as connection:
        connection.sendall(post(b"{", length=9 * MEBIBYTE))
        status, head, body = answer(connection)
        assert (status, "Connection: close" in head) == (413, True)
        assert "8388608 bytes" in body


@pytest.mark.parametrize("mebibytes", [9, 40])
def test_a_long_body_gets_a_413_after_all_of_it_was_sent(server: Server, mebibytes: int) -> None:
    with server.tls() as connection:
        connection.sendall(post(b" " * mebibytes * MEBIBYTE))
        assert answer(connection)[0] == 413
        assert connection.recv(1) == b""


def test_a_long_chunked_body_gets_a_413_while_its_caller_still_sends(server: Server) -> None:
    chunk = b"%x\r\n%s\r\n" % (MEBIBYTE, b" " * MEBIBYTE)
    with server.tls() as connection:
        connection.sendall(b"POST /mutate HTTP/1.1\r\nHost: l\r\nTransfer-Encoding: chunked\r\n\r\n")
        for _ in range(20):
            connection.sendall(chunk)
        status, head, _ = answer(connection)
        assert (status, "Connection: close" in head) == (413, True)
        connection.sendall(chunk)


def test_a_body_of_just_the_limit_is_read(server: Server) -> None:
    body = review_of()
    with server.caller() as caller:
        assert caller.allowed(body + b" " * (8 * MEBIBYTE - len(body)))


def test_a_caller_that_goes_away_in_the_middle_of_a_body_is_no_error(server: Server) -> None:
    for linger in (False, True):  # with a FIN, with a RST
        with server.tls() as connection:
            connection.sendall(post(b"{", length=100))
            if linger:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    with server.caller() as caller:
        assert caller.allowed(review_of())
    assert not server.all_lines("Socket error processing request.")
    assert not [line for line in server.lines() if line["level"] == "error"]


def test_bodies_that_are_not_complete_have_a_bound_together(server: Server) -> None:
    with contextlib.ExitStack() as stack:
        connections = [stack.enter_context(server.tls()) for _ in range(12)]
        for connection in connections:
            with contextlib.suppress(OSError):  # rejected while it sends
                connection.sendall(post(b" " * 7 * MEBIBYTE, length=8 * MEBIBYTE))
        statuses = []
        for connection in connections:
            connection.settimeout(0.5)
            with contextlib.suppress(TimeoutError):
                statuses.append(answer(connection)[0])
        assert 10 <= statuses.count(503) == len(statuses) <= 11
        with server.tls() as usual:  # in two pieces, so that it is held as well
            usual.sendall(post(review_of())[:-100])
            usual.settimeout(0.2)
            with pytest.raises(TimeoutError):
                usual.recv(1)
            usual.settimeout(15)
            usual.sendall(post(review_of())[-100:])
            assert answer(usual)[0] == 200
        with server.caller() as caller:
            assert caller.allowed(review_of())


def test_bodies_that_are_slow_give_way_to_a_longer_one_that_is_not(server: Server) -> None:
    values = [{"name": f"A{number}", "value": "x" * 200_000} for number in range(15)]
    with contextlib.ExitStack() as stack:
        for _ in range(MAX_HELD_BYTES // MEBIBYTE - 1):
            slow = stack.enter_context(server.tls())
            slow.sendall(post(b" " * MEBIBYTE, length=2 * MEBIBYTE))
        time.sleep(HURRY_SECONDS + 0.3)
        with server.caller() as usual:
            assert usual.allowed(review_of(env=values))


def test_a_caller_that_asks_first_is_told_to_send_its_body(server: Server) -> None:
    body = review_of()
    with server.tls() as connection:
        head = b"POST /mutate HTTP/1.1\r\nHost: l\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n"
        connection.sendall(head % len(body))
        assert connection.recv(65536) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(body)
        assert answer(connection)[0] == 200
