"""How the webhook ends, and replaces its workers: no request is lost."""

import contextlib
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from http.client import HTTPSConnection
from pathlib import Path

import pytest

from tests.webhook.load import Load
from tests.webhook.serving import Caller, Server, command, review_of, wait_for

Start = Callable[..., Server]


def test_sigterm_lets_a_request_in_flight_finish_and_keeps_no_idle_connection(
    policies: Path, certificates: Path, start: Start
) -> None:
    server = start(policies, certificates)
    body = review_of()
    head = b"POST /mutate HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body)
    with server.tls() as in_flight, server.caller() as idle, server.caller() as used:
        for caller in (idle, used):
            assert caller.allowed(review_of())
        in_flight.sendall(head + body[:100])
        with server.caller() as caller:
            caller.ask("GET", "/healthz")  # the worker has seen the half request by the time it answers this
        server.process.send_signal(signal.SIGTERM)
        began = time.monotonic()
        wait_for(lambda: refuses_connections(server))

        in_flight.sendall(body[100:])
        answer = b"".join(iter(lambda: in_flight.recv(65536), b""))
        assert answer.startswith(b"HTTP/1.1 200")
        assert b"\r\nConnection: close\r\n" in answer
        assert b'"allowed":true' in answer

        used.connection.request("POST", "/mutate", review_of())
        response = used.connection.getresponse()
        assert (response.status, response.headers["Connection"]) == (200, "close")
        response.read()

        assert server.process.wait(10) == 0
        assert time.monotonic() - began < 6
    assert server.lines("Shutting down: Master")
    assert not [line for line in server.lines() if line["level"] in ("warning", "error")]


def test_ctrl_c_ends_it_at_once_and_without_a_traceback(policies: Path, certificates: Path, start: Start) -> None:
    server = start(policies, certificates, workers=2)
    with server.caller() as idle:
        assert idle.allowed(review_of())
        assert server.interrupt() == 0
    assert not [line for line in server.lines() if line["level"] in ("warning", "error")]


@pytest.mark.parametrize("workers", [1, 2])
def test_no_request_is_lost_while_workers_are_replaced_and_the_server_ends(
    policies: Path, certificates: Path, start: Start, workers: int
) -> None:
    server = start(policies, certificates, workers=workers)
    kept = threading.local()
    refused: list[None] = []

    def call_on_a_new_connection() -> None:
        if refused:
            return
        connection = HTTPSConnection("localhost", server.port, context=context, timeout=15)
        try:
            connection.connect()
        except ConnectionRefusedError:  # nobody listens any more: nothing was sent
            refused.append(None)
            return
        assert Caller(connection).allowed(review_of())
        connection.close()

    def call_on_a_kept_connection() -> None:
        if refused:
            return
        if not hasattr(kept, "connection"):
            kept.connection = HTTPSConnection("localhost", server.port, context=context, timeout=15)
        try:
            assert Caller(kept.connection).allowed(review_of())
        except ConnectionRefusedError:
            refused.append(None)

    context = server.context()
    with Load(call_on_a_new_connection, threads=3) as renewing, Load(call_on_a_kept_connection, threads=2) as keeping:
        for _ in range(2):
            before = server.workers
            server.process.send_signal(signal.SIGHUP)
            server.await_workers(workers, without=before, seconds=20)
            made = len(renewing.seconds)
            wait_for(lambda: renewing.has_made(made + 50))  # noqa: B023
        assert not refused
        assert server.stop() == 0
        wait_for(lambda: refused)
    assert renewing.failures + keeping.failures == []
    assert not [line for line in server.lines() if line["level"] in ("warning", "error")]


@pytest.mark.parametrize("milliseconds", [0, 5, 20, 50])
def test_a_signal_just_after_the_start_ends_it_soon(
    tmp_path: Path, policies: Path, certificates: Path, milliseconds: int
) -> None:
    log = tmp_path / "log"
    with log.open("wb") as stderr:
        process = subprocess.Popen(command(policies, certificates), stderr=stderr)
    wait_for(lambda: b'"serving"' in log.read_bytes())
    time.sleep(milliseconds / 1000)
    began = time.monotonic()
    process.send_signal(signal.SIGTERM)
    assert process.wait(20) == 0
    assert time.monotonic() - began < 4
    assert b"raceback" not in log.read_bytes()


def test_workers_end_when_their_master_is_killed(policies: Path, certificates: Path, start: Start) -> None:
    server = start(policies, certificates, workers=2)
    workers = server.workers
    with server.caller() as caller:
        assert caller.allowed(review_of())
    server.process.kill()
    server.process.wait()
    wait_for(lambda: not any(Path(f"/proc/{worker}").exists() for worker in workers), seconds=15)
    assert refuses_connections(server)


def refuses_connections(server: Server) -> bool:
    with contextlib.suppress(ConnectionRefusedError), server.tcp():
        return False
    return True
