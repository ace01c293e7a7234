"""HTTP to the webhook, as bytes over TLS."""

import socket

MEBIBYTE = 1024 * 1024


def answer(connection: socket.socket) -> tuple[int, str, str]:
    """Read one response; returns status, head and body."""
    received = b""
    while b"\r\n\r\n" not in received:
        piece = connection.recv(65536)
        assert piece, f"closed after {received!r}"
        received += piece
    head, _, body = received.partition(b"\r\n\r\n")
    length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
    while len(body) < length:
        body += connection.recv(65536)
    return int(head.split()[1]), head.decode(), body.decode()


def post(body: bytes, *, length: int | None = None) -> bytes:
    size = len(body) if length is None else length
    return b"POST /mutate?timeout=3s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s" % (size, body)
