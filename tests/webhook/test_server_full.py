"""The real webhook with as many connections as it takes, and one more."""

import contextlib
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.webhook.serving import Server, command, review_of, wait_for

MOST = 32
BODY_BEGINS = b"POST /mutate HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9000\r\n\r\n{"


@pytest.fixture
def small(tmp_path: Path, policies: Path, certificates: Path) -> Iterator[Server]:
    """A webhook with few open files, and so with few connections."""
    log = tmp_path / "log"
    limited = ["sh", "-c", f'ulimit -n {2 * MOST}; exec "$@"', "sh", *command(policies, certificates)]
    with log.open("wb") as stderr:
        server = Server(subprocess.Popen(limited, stderr=stderr), log=log, ca=certificates / "ca.crt")
    try:
        wait_for(lambda: server.lines("serving"))
        (line,) = server.lines("serving")
        assert line["connections"] == MOST
        server.port = int(line["address"].rpartition(":")[2])
        yield server
        assert not [line for line in server.lines() if line["level"] == "error"]
    finally:
        assert server.stop() == 0


def beat(connections: list[ssl.SSLSocket], *, until: threading.Event) -> None:
    """Send the rest of a request and the first byte of the next on each of *connections*, again and again."""
    while not until.wait(0.2):
        for connection in [*connections]:
            with contextlib.suppress(OSError):  # it was ended
                connection.sendall(b"ET /healthz HTTP/1.1\r\n\r\nG")


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


@pytest.mark.parametrize(
    ("sent", "secured"),
    [
        pytest.param(b"", False, id="silent"),
        pytest.param(b"", True, id="idle"),
        pytest.param(BODY_BEGINS, True, id="half a body"),
    ],
)
def test_who_holds_all_connections_keeps_nobody_away(small: Server, sent: bytes, *, secured: bool) -> None:
    with contextlib.ExitStack() as stack:
        for _ in range(MOST):
            connection = stack.enter_context(small.tls() if secured else small.tcp())
            connection.sendall(sent)
        for _ in range(MOST):  # nor do those who still come
            stack.enter_context(small.tcp())
        wait_for(lambda: small.workers)  # which the kernel may list late where the machine is busy
        (worker,) = small.workers
        before, began = cpu_seconds(worker), time.monotonic()
        with small.caller() as caller:
            assert caller.allowed(review_of())
            assert caller.allowed(review_of())
        seconds = time.monotonic() - began
        assert seconds < 4
        assert cpu_seconds(worker) - before < 0.2 + 0.2 * seconds


def test_who_is_slow_makes_room_and_not_who_is_idle_between_two_reviews(small: Server) -> None:
    with contextlib.ExitStack() as stack:
        kept = stack.enter_context(small.caller())
        assert kept.allowed(review_of())
        for _ in range(2 * MOST):
            stack.enter_context(small.tcp())
        with small.caller() as new:
            assert new.allowed(review_of())
        assert kept.allowed(review_of())


def test_who_is_neither_slow_nor_idle_keeps_nobody_away(small: Server) -> None:
    held: list[ssl.SSLSocket] = []
    is_over = threading.Event()
    beating = threading.Thread(target=beat, args=[held], kwargs={"until": is_over})
    with contextlib.ExitStack() as stack:
        kept = stack.enter_context(small.caller())
        assert kept.allowed(review_of())
        beating.start()
        stack.callback(beating.join)
        stack.callback(is_over.set)
        for _ in range(MOST - 1):
            connection = stack.enter_context(small.tls())
            connection.sendall(b"G")
            held.append(connection)
        for _ in range(4):
            began = time.monotonic()
            with small.caller() as new:
                assert new.allowed(review_of())
            assert time.monotonic() - began < 2
            assert kept.allowed(review_of())
