"""Connections of callers who take nothing end, and the kernel keeps nothing of them."""

import socket
import struct
from collections.abc import Iterator
from contextlib import ExitStack, suppress

import pytest

from program import http_server
from program.closing import close, limit_untaken, untaken_bytes
from program.http_server import Answer, HttpServer
from tests.kernel_sockets import orphans
from tests.plugin.waiting import wait_until

ANSWER = b"x" * 100_000  # more than a deaf caller has room for, and less than the kernel takes of us
SMALLEST_BUFFER = 2304  # bytes: Linux has no smaller one
GET = b"GET /answer HTTP/1.1\r\n\r\n"


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as made:
        yield made


@pytest.fixture
def listener(stack: ExitStack) -> socket.socket:
    return stack.enter_context(socket.create_server(("127.0.0.1", 0)))


def deaf_caller(stack: ExitStack, port: int) -> socket.socket:
    caller = stack.enter_context(socket.socket())
    caller.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALLEST_BUFFER)
    caller.settimeout(10)
    caller.connect(("127.0.0.1", port))
    return caller


def unheard(stack: ExitStack, listener: socket.socket) -> tuple[socket.socket, socket.socket]:
    """Send what a caller does not take; give the server's side, and the caller's."""
    caller = deaf_caller(stack, port_of(listener))
    accepted, _ = listener.accept()
    accepted.sendall(ANSWER)
    return accepted, caller


def port_of(listener: socket.socket) -> int:
    return int(listener.getsockname()[1])


def received(caller: socket.socket) -> bytes:
    """All that comes, until the server's end or a reset."""
    taken = bytearray()
    with suppress(ConnectionResetError):
        while part := caller.recv(4096):
            taken += part
    return bytes(taken)


def test_what_was_not_taken_is_gone_with_the_connection(stack: ExitStack, listener: socket.socket) -> None:
    accepted, caller = unheard(stack, listener)
    assert untaken_bytes(accepted) > 0
    close(accepted)
    assert orphans(port_of(listener)) == []
    assert ANSWER.startswith(received(caller))


def test_what_was_taken_is_not_lost_by_the_end(stack: ExitStack, listener: socket.socket) -> None:
    caller = deaf_caller(stack, port_of(listener))
    accepted, _ = listener.accept()
    accepted.sendall(b"taken")
    wait_until(lambda: untaken_bytes(accepted) == 0)
    close(accepted)
    assert received(caller) == b"taken"
    assert orphans(port_of(listener)) == []


def test_the_kernel_itself_ends_what_was_closed_and_is_not_taken(stack: ExitStack, listener: socket.socket) -> None:
    """As where a process is killed."""
    limit_untaken(listener, 0.5)
    accepted, _ = unheard(stack, listener)
    accepted.close()
    assert orphans(port_of(listener)) != []
    wait_until(lambda: orphans(port_of(listener)) == [])


def test_of_a_connection_that_the_caller_has_reset_nothing_is_awaited(
    stack: ExitStack, listener: socket.socket
) -> None:
    accepted, caller = unheard(stack, listener)
    caller.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    caller.close()
    with pytest.raises(ConnectionResetError):
        accepted.recv(1)
    assert untaken_bytes(accepted) == 0
    close(accepted)
    close(accepted)  # again does nothing


@pytest.fixture
def server(stack: ExitStack) -> HttpServer:
    made = HttpServer(("127.0.0.1", 0), {"/answer": lambda _: Answer(ANSWER)})
    made.start()
    stack.callback(made.close)
    return made


def test_an_answer_to_a_scraper_that_is_not_taken_by_its_deadline_is_kept_no_longer(
    stack: ExitStack, server: HttpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_server, "DEADLINE_SECONDS", 0.3)
    callers = [deaf_caller(stack, server.port) for _ in range(10)]
    for caller in callers:
        caller.sendall(GET)
        caller.recv(1, socket.MSG_PEEK)
    wait_until(lambda: not server._open)
    assert orphans(server.port) == []


@pytest.mark.parametrize("says_its_end", [False, True])
def test_a_slow_scraper_gets_its_whole_answer(stack: ExitStack, server: HttpServer, *, says_its_end: bool) -> None:
    caller = deaf_caller(stack, server.port)
    caller.sendall(GET)
    if says_its_end:
        caller.shutdown(socket.SHUT_WR)
    wait_until(lambda: bool(server._open))
    assert received(caller).endswith(b"\r\n\r\n" + ANSWER)
