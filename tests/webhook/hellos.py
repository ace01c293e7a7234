"""ClientHellos made by hand and by OpenSSL, and a caller of a secured socket that sends its bytes as it likes."""

import contextlib
import hmac
import os
import socket
import ssl
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from webhook.secured_socket import SecuredSocket
from webhook.tls import ServingCertificate

CIPHER_OF_12 = "ECDHE-ECDSA-AES256-GCM-SHA384"
CERTIFICATE_AUTHORITIES, STATUS_REQUEST, PADDING = 47, 5, 21


def uint16(number: int) -> bytes:
    return number.to_bytes(2, "big")


def vector(content: bytes) -> bytes:
    return uint16(len(content)) + content


def records(message: bytes, sizes: tuple[int, ...] = ()) -> bytes:
    """A message of the handshake, in records of those sizes and one with the rest."""
    made, at = b"", 0
    for size in (*sizes, len(message) - sum(sizes)):
        made += b"\x16\x03\x01" + vector(message[at : at + size])
        at += size
    return made


def hello(*extensions: tuple[int, bytes], ciphers: bytes = b"\x13\x02\xc0\x2c") -> bytes:
    """A ClientHello of TLS 1.2, and of 1.3 with the extensions for that; without a record around it."""
    extensions = ((10, vector(uint16(23))), (13, vector(b"\x04\x03")), *extensions)
    body = b"\3\3" + os.urandom(32) + b"\0" + vector(ciphers) + b"\1\0"
    body += vector(b"".join(uint16(kind) + vector(content) for kind, content in extensions))
    return b"\1" + len(body).to_bytes(3, "big") + body


def of_tls13() -> tuple[tuple[int, bytes], ...]:
    """Extensions without a key, for which the answer is a HelloRetryRequest."""
    return (43, b"\2\3\4"), (51, vector(b""))


def names(count: int) -> tuple[int, bytes]:
    """CAs without a name, each of which OpenSSL takes 200 bytes for."""
    return CERTIFICATE_AUTHORITIES, vector(vector(b"\x30\0") * count)


def responders(count: int) -> tuple[int, bytes]:
    """OCSP responders without a name."""
    return STATUS_REQUEST, b"\1" + vector(vector(b"\xa1\2\x30\0") * count) + vector(b"")


def client_context(version: ssl.TLSVersion, *, curve: str | None = None, keys: Path | None = None) -> ssl.SSLContext:
    """Of a client that speaks this version alone, and has keys for X25519 first where it is given no curve."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.minimum_version = context.maximum_version = version
    context.set_ciphers(CIPHER_OF_12)  # of TLS 1.2; those of 1.3 stay
    if curve:
        context.set_ecdh_curve(curve)
    if keys:
        context.keylog_filename = str(keys)
    return context


def hello_of_openssl(context: ssl.SSLContext) -> bytes:
    """The first bytes of a client."""
    outgoing = ssl.MemoryBIO()
    with contextlib.suppress(ssl.SSLWantReadError):
        context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="localhost").do_handshake()
    return outgoing.read()


def served_context(certificates: Path) -> ssl.SSLContext:
    """What the webhook shakes hands with."""
    return ServingCertificate(certificates / "tls.crt", certificates / "tls.key").newest()


@dataclass
class Caller:
    """One end of a socket, and the secured socket at the other."""

    plain: socket.socket
    secured: SecuredSocket
    context: ssl.SSLContext  # of the webhook
    has_begun: bool = False
    received: bytes = b""

    def send(self, data: bytes, *, most: int = 65536) -> bool:
        """Send *data*, so much at *most* at a time; whether the handshake is over then."""
        is_over = False
        for start in range(0, len(data), most):
            self.plain.sendall(data[start : start + most])
            self.has_begun = self.has_begun or self.secured.begin(lambda: self.context)
            with contextlib.suppress(BlockingIOError):
                self.secured.shake_hands()
                is_over = True
        return is_over

    def receive(self) -> bytes:
        """Take what was sent, if anything was."""
        piece = b""
        with contextlib.suppress(BlockingIOError):
            piece = self.plain.recv(65536, socket.MSG_DONTWAIT)
        self.received += piece
        return piece

    def shake_hands(
        self, context: ssl.SSLContext, *, most: int = 65536, session: ssl.SSLSession | None = None, behind: bytes = b""
    ) -> ssl.SSLObject:
        """Shake hands as a client of OpenSSL's does, so much at *most* at a time, with what is *behind* each hello."""
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        client = context.wrap_bio(incoming, outgoing, server_hostname="localhost", session=session)
        is_over = False
        for _ in range(5):
            with contextlib.suppress(ssl.SSLWantReadError):
                client.do_handshake()
            made = outgoing.read()
            is_over = self.send(made + behind * (made[5:6] == b"\1"), most=most) or is_over
            incoming.write(self.receive())
        client.do_handshake()
        assert is_over
        return client


@contextlib.contextmanager
def caller(certificates: Path, context: ssl.SSLContext | None = None) -> Iterator[Caller]:
    """A caller that has sent nothing yet."""
    theirs, ours = socket.socketpair()
    with theirs, ours:
        ours.settimeout(0)
        yield Caller(theirs, SecuredSocket(ours), context or served_context(certificates))


def record_after_handshake(keys: Path, flight: bytes, message: bytes) -> bytes:
    """The first record of a client of TLS 1.2 after its handshake: a *message* of another one (RFC 5246, 6.3)."""
    (line,) = [line for line in keys.read_text().splitlines() if line.startswith("CLIENT_RANDOM")]
    client_random, secret = (bytes.fromhex(word) for word in line.split()[1:])
    seed = b"key expansion" + flight[11:43] + client_random
    chain, block = seed, b""
    while len(block) < 72:
        chain = hmac.digest(secret, chain, "sha384")
        block += hmac.digest(secret, chain + seed, "sha384")
    head = struct.pack("!QBHH", 1, 22, 0x0303, len(message))  # with the number of the record
    explicit = os.urandom(8)
    sealed = AESGCM(block[:32]).encrypt(block[64:68] + explicit, message, head)
    return b"\x16\3\3" + vector(explicit + sealed)
