"""A proxy that leads to this machine by CONNECT (RFC 9110, 9.3.6), by itself over TLS or not."""

import socket
import socketserver
import ssl
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread


@contextmanager
def tunnel(pair: tuple[Path, Path] | None) -> Iterator[tuple[int, list[str]]]:
    """Serve, over TLS with a certificate and its key; yield the port, and for what was asked."""
    asked: list[str] = []

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            asked.append(self.rfile.readline().split()[1].decode())
            while self.rfile.readline().strip():
                pass
            with socket.create_connection(("127.0.0.1", int(asked[-1].rpartition(":")[2]))) as server:
                self.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")
                answers = Thread(target=_copied, args=[server, self.connection])
                answers.start()
                _copied(self.connection, server)
                answers.join()

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        if pair:
            tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            tls.load_cert_chain(*pair)
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server.server_address[1], asked
        finally:
            server.shutdown()
            thread.join()


def _copied(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
