"""A proxy that leads to this machine by CONNECT (RFC 9110, 9.3.6), by itself over TLS or not."""

import socket
import socketserver
import ssl
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread

from tests.serving import serving


@contextmanager
def tunnel(pair: tuple[Path, Path] | None) -> Iterator[tuple[int, list[str]]]:
    """Serve, over TLS with a certificate and its key; yield the port, and for what was asked."""
    asked: list[str] = []

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            asked.append(self.rfile.readline().split()[1].decode())
            while self.rfile.readline().strip():
                pass
            lead(self.connection, int(asked[-1].rpartition(":")[2]), said_first=b"HTTP/1.1 200 OK\r\n\r\n")

    server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
    if pair:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(*pair)
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    with serving(server) as port:
        yield port, asked


def lead(client: socket.socket, port: int, *, said_first: bytes) -> None:
    """Lead a client to a port of this machine, once it was answered, until either has ended."""
    with socket.create_connection(("127.0.0.1", port)) as server:
        client.sendall(said_first)
        answers = Thread(target=_copied, args=[server, client])
        answers.start()
        _copied(client, server)
        answers.join()


def _copied(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
