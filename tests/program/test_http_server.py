"""The server for scrapers over real sockets: what it answers, and that nobody can keep it from answering others."""

import socket
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from itertools import count

import pytest

from program import http_server
from program.http_server import (
    KEPT_SECONDS,
    LARGEST_HEAD_BYTES,
    MOST_A_SECOND,
    MOST_CONNECTIONS,
    Answer,
    HttpServer,
    KeptAnswer,
    serve_beside,
)
from tests.plugin.waiting import wait_until


def broken(_query: str) -> Answer:
    raise ValueError("a secret")


ROUTES = {
    "/metrics": lambda _query: Answer(b"up 1\n", "text/plain; version=0.0.4"),
    "/echo": lambda query: Answer(query.encode()),
    "/large": lambda _query: Answer(b"x" * 30_000_000),
    "/broken": broken,
}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[HttpServer]:
    monkeypatch.setattr(http_server, "DEADLINE_SECONDS", 0.6)
    made = HttpServer(("127.0.0.1", 0), ROUTES)
    made.start()
    yield made
    made.close()


@pytest.fixture
def no_deadline(server: HttpServer, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: ARG001 - its own is set before
    """What ends nevertheless ends for another reason."""
    monkeypatch.setattr(http_server, "DEADLINE_SECONDS", 60)


def get(server: HttpServer, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{server.port}{path}", timeout=5) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def connected(server: HttpServer) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), timeout=5)


def read_to_the_end(connection: socket.socket) -> int:
    """Read until the server hangs up, which the socket's timeout bounds; the number of bytes."""
    received = 0
    with suppress(ConnectionError):
        while part := connection.recv(1 << 20):
            received += len(part)
    return received


def test_a_path_is_answered_with_its_type_and_no_more_is_told_of_the_server(server: HttpServer) -> None:
    with urllib.request.urlopen(f"http://127.0.0.1:{server.port}/metrics", timeout=5) as answer:
        assert (answer.status, answer.read()) == (200, b"up 1\n")
        assert answer.headers["Content-Type"] == "text/plain; version=0.0.4"
        assert answer.headers["Server"].strip() == "gpu-share"


def test_the_query_reaches_the_route(server: HttpServer) -> None:
    assert get(server, "/echo?pod=1") == (200, "pod=1")


def test_another_path_says_which_there_are(server: HttpServer) -> None:
    assert get(server, "/") == (404, "expected GET /broken or /echo or /large or /metrics\n")


def test_a_route_that_fails_tells_the_caller_nothing_of_why(server: HttpServer) -> None:
    assert get(server, "/broken") == (500, "no answer: the log says why\n")
    assert get(server, "/metrics") == (200, "up 1\n")


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"POST /metrics HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc", b"501"),
        (b"GET /metrics HTTP/9.9\r\n\r\n", b"505"),
        (b"\x16\x03\x01\x02\x00\x01\r\n\r\n", b"400"),
        (b"GET  \r\n\r\n", b"400"),
    ],
)
def test_what_is_not_a_get_is_rejected_in_plain_text(server: HttpServer, request_bytes: bytes, status: bytes) -> None:
    with connected(server) as connection:
        connection.sendall(request_bytes)
        answered = b"".join(iter(lambda: connection.recv(65536), b""))
    assert status in answered[:200]
    assert b"<" not in answered
    assert get(server, "/metrics")[0] == 200


def test_a_caller_who_is_silent_or_slow_is_left_at_the_deadline_whatever_each_byte_takes(server: HttpServer) -> None:
    with connected(server) as silent, connected(server) as slow:

        def is_left() -> bool:
            try:
                slow.sendall(b"G")
            except ConnectionError:
                return True
            return False

        wait_until(is_left)
        read_to_the_end(silent)


def test_an_answer_that_nobody_takes_ends_with_the_deadline(server: HttpServer) -> None:
    with connected(server) as connection:
        connection.sendall(b"GET /large HTTP/1.1\r\n\r\n")
        connection.recv(1, socket.MSG_PEEK)
        wait_until(lambda: not server._open)
        assert read_to_the_end(connection) < 30_000_000


@pytest.mark.usefixtures("no_deadline")
def test_a_head_without_end_is_not_kept(server: HttpServer) -> None:
    with connected(server) as connection:
        with suppress(ConnectionError):
            for _ in range(100):
                connection.sendall(b"GET /metrics HTTP/1.1\r\nX: " + b"x" * LARGEST_HEAD_BYTES)
        read_to_the_end(connection)


@pytest.mark.usefixtures("no_deadline")
def test_who_holds_all_connections_and_says_nothing_keeps_no_scraper_away(server: HttpServer) -> None:
    with ExitStack() as stack:
        first, *_ = [stack.enter_context(connected(server)) for _ in range(2 * MOST_CONNECTIONS)]
        assert get(server, "/metrics") == (200, "up 1\n")
        read_to_the_end(first)


def test_who_calls_without_a_pause_is_answered_at_a_pace(server: HttpServer) -> None:
    calls = MOST_CONNECTIONS + 20
    began = time.monotonic()
    assert [get(server, "/metrics")[0] for _ in range(calls)] == [200] * calls
    assert time.monotonic() - began > 19 / MOST_A_SECOND


def test_an_answer_is_made_once_for_all_who_ask_within_a_moment() -> None:
    number, now = count(1), [100.0]

    def make() -> Answer:
        time.sleep(0.05)
        return Answer(b"%d" % next(number))

    kept = KeptAnswer(make, clock=lambda: now[0])
    with ThreadPoolExecutor(8) as callers:
        assert {one.body for one in callers.map(lambda _: kept(), range(8))} == {b"1"}
    now[0] += KEPT_SECONDS
    assert kept().body == b"2"


def test_a_failure_is_not_kept() -> None:
    known: dict[str, Answer] = {}
    kept = KeptAnswer(lambda: known["/metrics"])
    with pytest.raises(KeyError):
        kept()
    known["/metrics"] = Answer(b"up 1\n")
    assert kept().body == b"up 1\n"


def test_an_address_that_is_taken_is_logged_and_costs_nothing_else(
    server: HttpServer, caplog: pytest.LogCaptureFixture
) -> None:
    assert serve_beside(("127.0.0.1", server.port), ROUTES, what="metrics") is None
    (record,) = caplog.records
    assert record.getMessage() == "metrics not served"
    assert f"127.0.0.1:{server.port}: Address already in use" in vars(record)["reason"]


@pytest.mark.parametrize("host", ["\u00df..", "a..b", f"{'a' * 70}.x"])
def test_a_host_that_can_be_no_name_is_logged_and_costs_nothing_else(
    host: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert serve_beside((host, 0), ROUTES, what="metrics") is None
    (record,) = caplog.records
    assert f"{host}:0: Name or service not known: give another" in vars(record)["reason"]


@pytest.mark.parametrize(("has_both", "callers"), [(True, ["127.0.0.1", "[::1]"]), (False, ["127.0.0.1"])])
def test_all_hosts_are_those_of_both_families_as_far_as_the_system_has_them(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, *, has_both: bool, callers: list[str]
) -> None:
    monkeypatch.setattr(socket, "has_dualstack_ipv6", lambda: has_both)
    caplog.set_level("INFO")
    server = serve_beside(("::", 0), ROUTES, what="metrics")
    assert server is not None
    (record,) = caplog.records
    assert vars(record)["address"].startswith("http://[::]:") == has_both
    for host in callers:
        with urllib.request.urlopen(f"http://{host}:{server.port}/metrics", timeout=5) as answer:
            assert answer.read() == b"up 1\n"
    server.close()


def test_nothing_is_served_without_an_address() -> None:
    assert serve_beside(None, ROUTES, what="metrics") is None


def test_it_serves_over_ipv6_and_ipv4_at_once() -> None:
    try:
        made = HttpServer(("::", 0), ROUTES)
    except OSError:
        pytest.skip("there is no IPv6 here")
    made.start()
    with closing(made):
        assert get(made, "/metrics") == (200, "up 1\n")
