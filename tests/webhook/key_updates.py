"""A caller who sends TLS 1.3 key updates, which Python's ssl cannot: their records are made by hand."""

import hmac
import socket
import ssl
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha384
from pathlib import Path

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from tests.webhook.serving import Server

CIPHER = "TLS_AES_256_GCM_SHA384"
HANDSHAKE, APPLICATION = 22, 23  # types of what is in a record
_KEY_UPDATE = 24


def _expanded(secret: bytes, label: bytes, length: int) -> bytes:
    """HKDF-Expand-Label of RFC 8446, 7.1, without a context."""
    label = b"tls13 " + label
    return hmac.digest(secret, struct.pack("!HB", length, len(label)) + label + b"\0\1", sha384)[:length]


class Sender:
    """Makes the records of a client whose *secret* is its first one for application data."""

    def __init__(self, secret: bytes) -> None:
        self._take(secret)

    def _take(self, secret: bytes) -> None:
        self._secret, self._number = secret, 0
        self._key, self._iv = AESGCM(_expanded(secret, b"key", 32)), _expanded(secret, b"iv", 12)

    def record(self, content: bytes, kind: int = APPLICATION) -> bytes:
        head = struct.pack("!BHH", 23, 0x0303, len(content) + 1 + 16)
        nonce = (int.from_bytes(self._iv, "big") ^ self._number).to_bytes(12, "big")
        self._number += 1
        return head + self._key.encrypt(nonce, content + bytes([kind]), head)

    def key_update(self, *, asks: bool) -> bytes:
        """One of 27 bytes; *asks* the other side for one as well."""
        made = self.record(struct.pack("!BBHB", _KEY_UPDATE, 0, 1, asks), HANDSHAKE)
        self._take(_expanded(self._secret, b"traffic upd", 48))
        return made


@contextmanager
def sender(server: Server, keys: Path) -> Iterator[tuple[socket.socket, Sender]]:
    """Connect, and give the socket and the maker of records for it; *keys* is a file that does not exist yet."""
    with server.tcp() as connection, taken_over(connection, server.context(), keys) as taken:
        yield taken


@contextmanager
def taken_over(
    connection: socket.socket, context: ssl.SSLContext, keys: Path
) -> Iterator[tuple[socket.socket, Sender]]:
    """Shake hands on *connection*, and give its socket and the maker of records for it."""
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.keylog_filename = str(keys)
    secured = context.wrap_socket(connection, server_hostname="localhost")
    assert secured.cipher() is not None
    assert secured.cipher()[0] == CIPHER  # type: ignore[index]
    (line,) = [line for line in keys.read_text().splitlines() if line.startswith("CLIENT_TRAFFIC_SECRET_0")]
    with socket.socket(fileno=secured.detach()) as plain:
        plain.settimeout(15)
        yield plain, Sender(bytes.fromhex(line.split()[2]))
