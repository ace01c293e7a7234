"""A loop and its callers in one thread, by a clock that the test moves."""

import socket
import ssl
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from tests.webhook.serving import wait_for
from webhook.event_loop import EventLoop
from webhook.http1 import Answer, Request
from webhook.tls import ServingCertificate

T = TypeVar("T")


@dataclass
class Served:
    """A loop and what its callers need."""

    loop: EventLoop
    address: tuple[str, int]
    trusted: ssl.SSLContext
    stack: ExitStack
    seconds: float = 0.0

    def turn(self) -> None:
        for _ in range(2):
            self.loop.turn()

    @property
    def port(self) -> int:
        return self.address[1]

    def meanwhile(self, act: Callable[[], T]) -> T:
        """Let the loop go on until a caller's step, which waits for it, is done."""
        with ThreadPoolExecutor(1) as pool:
            made = pool.submit(act)
            while not made.done():
                self.loop.turn()
        return made.result()

    def caller(self, *, secured: bool) -> socket.socket:
        connection = self.meanwhile(self.new_caller) if secured else self.silent_caller()
        self.turn()
        return connection

    def new_caller(self) -> socket.socket:
        return self.stack.enter_context(self.trusted.wrap_socket(self.silent_caller(), server_hostname="localhost"))

    def silent_caller(self) -> socket.socket:
        return self.stack.enter_context(socket.create_connection(self.address, timeout=10))

    def deaf_caller(self) -> socket.socket:
        """One with as little room for what it is sent as Linux lets it have."""
        connection = self.stack.enter_context(socket.socket())
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
        connection.settimeout(10)
        connection.connect(self.address)

        def shake_hands() -> socket.socket:
            return self.stack.enter_context(self.trusted.wrap_socket(connection, server_hostname="localhost"))

        return self.meanwhile(shake_hands)

    def send(self, connection: socket.socket, data: bytes) -> None:
        connection.sendall(data)
        self.turn()

    def pass_by(self, seconds: float) -> None:
        self.seconds += seconds
        self.turn()

    def go_on_until(self, condition: Callable[[], bool]) -> None:
        """Let the loop go on until a *condition* holds, by its clock at once."""

        def is_over() -> bool:
            self.loop.turn()
            return condition()

        wait_for(is_over)

    def await_the_end(self) -> None:
        """Let the loop go on until the callers' kernels have taken the end of each connection."""
        self.go_on_until(lambda: self.loop.is_empty)


@contextmanager
def serving(certificates: Path, answer: Callable[[Request], Answer], *, most_connections: int) -> Iterator[Served]:
    listener = socket.create_server(("127.0.0.1", 0))
    certificate = ServingCertificate(certificates / "tls.crt", certificates / "tls.key")
    with ExitStack() as stack:
        loop = EventLoop(
            [listener],
            answer=answer,
            certificate=certificate,
            most_connections=most_connections,
            clock=lambda: made.seconds,
        )
        trusted = ssl.create_default_context(cafile=str(certificates / "ca.crt"))
        made = Served(loop, listener.getsockname(), trusted, stack)
        yield made
        loop.stop_accepting()
    while not loop.is_empty:  # the callers have gone
        loop.turn()
