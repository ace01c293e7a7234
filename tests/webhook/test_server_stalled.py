import contextlib
import os
import select
import signal
import socket
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.webhook.serving import Server, review_of
from webhook.settings import HANDSHAKE_SECONDS

CLIENT_HELLO_BEGINS = bytes.fromhex("16030102000100")
HEAD_BEGINS = b"POST /mutate HTTP/1.1\r\nHost: localhost\r\n"
BODY_BEGINS = HEAD_BEGINS + b"Content-Length: 9000\r\n\r\n{"


def latencies(server: Server, calls: int) -> list[float]:
    """Seconds of each call on a kept connection, and of each tenth on a new one."""
    seconds = []
    with server.caller() as kept:
        for number in range(calls):
            began = time.perf_counter()
            if number % 10:
                assert kept.allowed(review_of())
            else:
                with server.caller() as fresh:
                    assert fresh.allowed(review_of())
            seconds.append(time.perf_counter() - began)
    return seconds


def stretch(connection: socket.socket, began: float) -> float:
    """Send a body byte by byte until there is an answer; returns the seconds since it began."""
    while not select.select([connection], [], [], 0.1)[0]:
        connection.sendall(b"{")
        assert time.monotonic() - began < 15
    return time.monotonic() - began


def read_to_the_end(connection: socket.socket) -> bytes:
    """All that comes before the server ends *connection*, which must be soon."""
    connection.settimeout(2)
    with contextlib.suppress(ConnectionResetError):
        return b"".join(iter(lambda: connection.recv(4096), b""))
    return b""


def test_500_connections_that_stall_cost_others_nothing_and_are_ended_while_idle_ones_are_kept(
    policies: Path, certificates: Path, start: Callable[..., Server]
) -> None:
    server = start(policies, certificates)
    before = latencies(server, 100)
    with contextlib.ExitStack() as stack:

        def stall(sent: bytes, *, secured: bool) -> socket.socket:
            connection = stack.enter_context(server.tls() if secured else server.tcp())
            connection.sendall(sent)
            return connection

        without_handshake = [stall(b"", secured=False) for _ in range(300)]
        without_handshake += [stall(CLIENT_HELLO_BEGINS, secured=False) for _ in range(100)]
        without_body = [stall(BODY_BEGINS, secured=True) for _ in range(100)]
        without_head = [stall(HEAD_BEGINS, secured=True) for _ in range(20)]
        stretched, began = stall(BODY_BEGINS, secured=True), time.monotonic()

        idle = stack.enter_context(server.caller())
        assert idle.allowed(review_of())
        during = latencies(server, 200)
        assert statistics.median(during) < 2 * statistics.median(before) + 0.002
        assert max(during) < 0.25

        assert 9 < stretch(stretched, began) < 12
        assert {read_to_the_end(connection) for connection in without_handshake + without_head} == {b""}
        for connection in [*without_body, stretched]:
            assert read_to_the_end(connection).startswith(b"HTTP/1.1 408")
        kept = idle.connection.sock
        assert idle.allowed(review_of())
        assert idle.connection.sock is kept
    assert not [line for line in server.all_lines() if line["level"] == "error"]


def test_a_handshake_goes_on_after_the_process_stood_still_for_longer_than_one_may_take(
    policies: Path, certificates: Path, start: Callable[..., Server]
) -> None:
    server = start(policies, certificates)
    (worker,) = server.workers
    with server.tcp() as begun, server.caller() as caller, ThreadPoolExecutor(1) as pool:
        assert caller.allowed(review_of())  # so the connection before it was accepted, too
        os.kill(worker, signal.SIGSTOP)
        try:
            shaken = pool.submit(server.context().wrap_socket, begun, server_hostname="localhost")
            time.sleep(HANDSHAKE_SECONDS + 0.5)
        finally:
            os.kill(worker, signal.SIGCONT)
        with shaken.result() as secured:
            secured.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert secured.recv(4096).startswith(b"HTTP/1.1 200")
