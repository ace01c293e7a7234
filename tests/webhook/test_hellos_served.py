"""Handshakes of real clients, and of callers for whom OpenSSL would take much memory."""

import hashlib
import ssl
from collections.abc import Callable
from contextlib import ExitStack, suppress
from itertools import product
from pathlib import Path

import pytest

from tests.webhook.hellos import (
    Caller,
    caller,
    client_context,
    hello,
    hello_of_openssl,
    names,
    of_tls13,
    record_after_handshake,
    records,
    served_context,
)
from tests.webhook.key_updates import CIPHER, HANDSHAKE, Sender
from tests.webhook.serving import Server, review_of, wait_for

VERSIONS = [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3]
NINE_BYTES = bytes.fromhex("16 0301 0004 01020140")  # of a hello with 131,392 bytes
SPLIT = bytes.fromhex("16 0301 0001 01  16 0301 0003 020140")
NAMES = records(hello(names(1000)))
IDS = ["declared", "split", "names"]
RETRY = hashlib.sha256(b"HelloRetryRequest").digest()  # in place of a ServerHello's random (RFC 8446, 4.1.3)


@pytest.mark.parametrize(
    ("version", "curve", "most"), list(product(VERSIONS, [None, "prime256v1"], [1, 5, 100, 65536]))
)
def test_hands_are_shaken_in_pieces_of_any_size(
    certificates: Path, version: ssl.TLSVersion, curve: str | None, most: int
) -> None:
    with caller(certificates) as one:
        client = one.shake_hands(client_context(version, curve=curve), most=most)
        assert client.version() == {version.TLSv1_2: "TLSv1.2", version.TLSv1_3: "TLSv1.3"}[version]
        assert (one.received[11:43] == RETRY) == (version is version.TLSv1_3 and curve is None)


def test_a_session_of_tls_1_2_is_resumed_in_pieces_of_single_bytes(certificates: Path) -> None:
    ours, theirs = served_context(certificates), client_context(ssl.TLSVersion.TLSv1_2)
    with caller(certificates, ours) as first:
        session = first.shake_hands(theirs).session
        first.secured.say_goodbye()
    with caller(certificates, ours) as second:
        assert second.shake_hands(theirs, most=1, session=session).session_reused


@pytest.mark.parametrize("offence", [NINE_BYTES, SPLIT, NAMES], ids=IDS)
def test_a_caller_with_an_offence_is_sent_nothing(certificates: Path, offence: bytes) -> None:
    with caller(certificates) as one:
        with pytest.raises(ConnectionAbortedError):
            one.send(offence)
        assert one.receive() == b""


@pytest.mark.parametrize("offence", [NINE_BYTES, SPLIT, NAMES], ids=IDS)
def test_an_offence_after_a_hello_retry_request_ends_the_connection(certificates: Path, offence: bytes) -> None:
    with caller(certificates) as one:
        one.send(hello_of_openssl(client_context(ssl.TLSVersion.TLSv1_3)))
        assert one.receive()
        with pytest.raises(ConnectionAbortedError):
            one.send(offence)
        assert one.receive() == b""


def test_so_does_one_that_comes_with_the_first_hello(certificates: Path) -> None:
    with caller(certificates) as one, pytest.raises(ConnectionAbortedError):
        one.send(hello_of_openssl(client_context(ssl.TLSVersion.TLSv1_3)) + NINE_BYTES)


@pytest.mark.parametrize("most", [1, 65536])
@pytest.mark.parametrize("curve", [None, "prime256v1"])
def test_a_change_of_cipher_may_come_with_a_hello(certificates: Path, curve: str | None, most: int) -> None:
    with caller(certificates) as one:
        client = one.shake_hands(
            client_context(ssl.TLSVersion.TLSv1_3, curve=curve), most=most, behind=b"\x14\3\3\0\1\1"
        )
        assert client.version() == "TLSv1.3"


def reading(one: Caller) -> Callable[[], int]:
    buffer = memoryview(bytearray(16 * 1024))
    return lambda: one.secured.read_into(buffer)


@pytest.mark.parametrize("message", [b"\1\2\1\x40", b"\1\0\1\0", hello()[:-1]], ids=["large", "small", "short"])
def test_a_part_of_a_hello_after_the_handshake_of_tls_1_2_ends_the_connection(
    certificates: Path, tmp_path: Path, message: bytes
) -> None:
    with caller(certificates) as one:
        one.shake_hands(client_context(ssl.TLSVersion.TLSv1_2, keys=tmp_path / "keys"))
        one.plain.sendall(record_after_handshake(tmp_path / "keys", one.received, message))
        with pytest.raises(ConnectionAbortedError):
            reading(one)()


def test_a_part_of_a_key_update_ends_the_connection(certificates: Path, tmp_path: Path) -> None:
    with caller(certificates) as one:
        client = one.shake_hands(client_context(ssl.TLSVersion.TLSv1_3, curve="prime256v1", keys=tmp_path / "keys"))
        assert client.cipher() is not None
        assert client.cipher()[0] == CIPHER  # type: ignore[index]
        lines = (tmp_path / "keys").read_text().splitlines()
        (line,) = [line for line in lines if line.startswith("CLIENT_TRAFFIC_SECRET_0")]
        one.plain.sendall(Sender(bytes.fromhex(line.split()[2])).record(b"\x18\0\0\1", HANDSHAKE))
        with pytest.raises(ConnectionAbortedError):
            reading(one)()


def test_a_whole_hello_after_the_handshake_of_tls_1_2_is_answered_with_a_warning(
    certificates: Path, tmp_path: Path
) -> None:
    with caller(certificates) as one:
        one.shake_hands(client_context(ssl.TLSVersion.TLSv1_2, keys=tmp_path / "keys"))
        one.plain.sendall(record_after_handshake(tmp_path / "keys", one.received, hello()))
        for _ in range(2):
            with pytest.raises(BlockingIOError):
                reading(one)()
        assert one.receive()[0] == 21  # an alert


def private_bytes(pid: int) -> int:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return 1024 * sum(int(line.split()[1]) for line in lines if line.startswith("Private_"))


@pytest.mark.parametrize("offence", [NINE_BYTES, SPLIT, records(hello(*of_tls13(), names(3500)))], ids=IDS)
def test_callers_of_whom_openssl_would_keep_much_cost_little(
    start: Callable[..., Server], policies: Path, certificates: Path, offence: bytes
) -> None:
    server = start(policies, certificates)
    before = private_bytes(server.workers[0])
    with ExitStack() as stack:
        for _ in range(150):
            stack.enter_context(server.tcp()).sendall(offence)
        with server.caller() as usual:  # whoever came before it was served before it
            assert usual.allowed(review_of())
        assert private_bytes(server.workers[0]) - before < 150 * 64 * 1024


@pytest.mark.parametrize("version", VERSIONS)
def test_a_review_is_answered_whose_caller_shakes_hands_in_single_bytes(
    server: Server, version: ssl.TLSVersion
) -> None:
    context = client_context(version)
    with server.tcp() as connection:
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        client = context.wrap_bio(incoming, outgoing, server_hostname="localhost")

        def send() -> None:
            data = outgoing.read()
            for at in range(len(data)):
                connection.sendall(data[at : at + 1])

        while client.version() is None:
            try:
                client.do_handshake()
            except ssl.SSLWantReadError:
                send()
                incoming.write(connection.recv(65536))
        client.write(b"GET /healthz HTTP/1.1\r\nHost: l\r\n\r\n")
        send()
        incoming.write(connection.recv(65536))
        assert client.read(12) == b"HTTP/1.1 200"


def test_the_log_says_why_what_is_no_hello_was_rejected(server: Server) -> None:
    sent = {
        "HTTP_REQUEST": b"GET / HTTP/1.1\r\n\r\n",
        "WRONG_VERSION_NUMBER": b"\xff" + bytes(20),
        "UNEXPECTED_MESSAGE": records(b"\2\0\0\0"),
        "a ClientHello must have at most 8192 bytes, got 131396": NINE_BYTES,
    }
    for data in sent.values():
        with server.tcp() as connection:
            connection.sendall(data)
            with suppress(ConnectionResetError):
                while connection.recv(100):
                    pass
    wait_for(lambda: [line["reason"] for line in server.lines("handshake failed")][-len(sent) :] == [*sent])
