"""The real webhook with callers who keep TLS, and not HTTP, busy."""

import contextlib
import os
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.webhook.key_updates import sender
from tests.webhook.serving import Server, review_of, wait_for
from webhook.settings import MAX_HELD_BYTES

MEBIBYTE = 1024 * 1024

Start = Callable[..., Server]

GET = b"GET /healthz HTTP/1.1\r\nHost: l\r\n\r\n"


@contextlib.contextmanager
def watched(server: Server) -> Iterator[list[float]]:
    """Call on another connection all the while; gives the seconds of each call."""
    seconds: list[float] = []
    over = threading.Event()

    def call() -> None:
        with server.caller() as caller:
            while not over.is_set():
                began = time.perf_counter()
                assert caller.allowed(review_of())
                seconds.append(time.perf_counter() - began)
                over.wait(0.01)

    calling = threading.Thread(target=call)
    calling.start()
    try:
        wait_for(lambda: len(seconds) > 1)
        yield seconds
    finally:
        over.set()
        calling.join()


@pytest.mark.parametrize("asks", [False, True])
def test_key_updates_without_end_hold_up_nobody_and_end_their_connection(
    server: Server, tmp_path: Path, *, asks: bool
) -> None:
    with sender(server, tmp_path / "keys") as (connection, maker):
        updates = b"".join(maker.key_update(asks=asks) for _ in range(30_000))
        with watched(server) as seconds:
            with contextlib.suppress(ConnectionError):
                connection.sendall(updates)
            with contextlib.suppress(ConnectionError):
                while connection.recv(65536):
                    pass
        assert max(seconds) < 0.3
    assert not [line for line in server.all_lines() if line["level"] == "error"]


def test_key_updates_with_a_byte_of_a_request_now_and_then_hold_up_nobody(server: Server, tmp_path: Path) -> None:
    with contextlib.ExitStack() as stack:
        sent = []
        for number in range(8):
            connection, maker = stack.enter_context(sender(server, tmp_path / f"keys-{number}"))
            pieces = [maker.record(b"POST /mutate HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\n")]
            for _ in range(5):  # as many updates in a row as are allowed
                pieces += [*(maker.key_update(asks=False) for _ in range(850)), maker.record(b"{")]
            sent.append((connection, b"".join(pieces)))

        def answer(one: tuple[socket.socket, bytes]) -> bytes:
            connection, data = one
            connection.sendall(data)
            return connection.recv(65536)

        with watched(server) as seconds, ThreadPoolExecutor(len(sent)) as sending:
            before = len(seconds)
            assert all(sending.map(answer, sent))
            assert len(seconds) - before >= 5  # about 20 on any machine, and 1 where each has all that it sends read


def test_key_updates_between_requests_are_taken(server: Server, tmp_path: Path) -> None:
    with sender(server, tmp_path / "keys") as (connection, maker):
        for _ in range(500):
            connection.sendall(maker.record(GET) + maker.key_update(asks=True))
            assert connection.recv(65536)
        connection.sendall(maker.record(GET[:10]) + maker.key_update(asks=False) + maker.record(GET[10:]))
        assert connection.recv(65536)


def test_requests_in_records_of_one_byte_are_answered(server: Server, tmp_path: Path) -> None:
    with sender(server, tmp_path / "keys") as (connection, maker):
        connection.sendall(b"".join(maker.record(GET[at : at + 1]) for at in range(len(GET))))
        assert connection.recv(65536)


def test_a_record_that_was_changed_ends_the_connection_with_an_alert(server: Server, tmp_path: Path) -> None:
    with sender(server, tmp_path / "keys") as (connection, maker):
        record = bytearray(maker.record(GET))
        record[-1] ^= 1  # another byte for sure: a fixed one would be the right one now and then
        connection.sendall(record)
        assert connection.recv(65536)
        assert connection.recv(65536) == b""


def resident_bytes(pid: int) -> int:
    fields = Path(f"/proc/{pid}/statm").read_text().split()
    return int(fields[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.parametrize(("callers", "uid_bytes"), [(200, 128 * 1024), (400, 16 * 1024)])
def test_answers_that_nobody_takes_have_a_bound_together(
    start: Start, policies: Path, certificates: Path, *, callers: int, uid_bytes: int
) -> None:
    server = start(policies, certificates)
    body = review_of("0.9", uid="\1" * uid_bytes)  # six bytes each, in the answer too
    before = resident_bytes(server.workers[0])
    with contextlib.ExitStack() as stack:
        for _ in range(callers):
            plain = stack.enter_context(socket.socket())
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            plain.connect(("127.0.0.1", server.port))
            caller = stack.enter_context(server.context().wrap_socket(plain, server_hostname="localhost"))
            caller.sendall(b"POST /mutate HTTP/1.1\r\nHost: l\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
        with server.caller() as usual:
            assert usual.allowed(review_of())
        assert resident_bytes(server.workers[0]) - before < MAX_HELD_BYTES + 32 * MEBIBYTE
    assert server.all_lines("answer not taken")


@pytest.mark.parametrize("group", ["ffdhe2048", "ffdhe8192", "secp521r1"])
def test_nobody_has_us_make_a_key_of_a_group_that_is_dear(server: Server, group: str) -> None:
    context = server.context()
    context.set_ecdh_curve(group)
    with socket.create_connection(("localhost", server.port)) as connection, pytest.raises(ssl.SSLError, match="alert"):
        context.wrap_socket(connection, server_hostname="localhost")
    assert "handshake failed" in [line["message"] for line in server.all_lines()]


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_caller_who_would_like_another_group_better_is_served(server: Server, version: ssl.TLSVersion) -> None:
    context = server.context()
    context.minimum_version = context.maximum_version = version
    with (
        socket.create_connection(("localhost", server.port)) as connection,
        context.wrap_socket(connection, server_hostname="localhost") as secured,
    ):
        secured.sendall(GET)
        assert secured.recv(100).startswith(b"HTTP/1.1 200 ")
