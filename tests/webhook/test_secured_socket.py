"""A secured socket by itself: who takes much of the processor's time is read in small pieces, and nobody else is."""

import contextlib
import socket
import ssl
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.webhook.key_updates import Sender
from webhook.secured_socket import SecuredSocket
from webhook.tls import ServingCertificate


def steps_of(secured: SecuredSocket, client: ssl.SSLObject) -> list[Callable[[], object]]:
    """Give the steps of a handshake that has begun, with a HelloRetryRequest and with an end of either side."""
    return [secured.shake_hands, client.do_handshake, secured.shake_hands, client.do_handshake, secured.shake_hands]


def step_and_pass_on(
    step: Callable[[], object], theirs: socket.socket, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO
) -> None:
    """Do a *step* as far as it goes, and give each side what the other has sent."""
    with contextlib.suppress(ssl.SSLWantReadError, BlockingIOError):
        step()
    theirs.sendall(outgoing.read())
    with contextlib.suppress(BlockingIOError):
        incoming.write(theirs.recv(65536, socket.MSG_DONTWAIT))


def connected(
    certificates: Path, keys: Path, stack: contextlib.ExitStack
) -> tuple[SecuredSocket, socket.socket, Sender]:
    """Shake hands; give the server's side, the caller's socket, and the maker of its records."""
    theirs, ours = (stack.enter_context(one) for one in socket.socketpair())
    ours.settimeout(0)
    context = ssl.create_default_context(cafile=str(certificates / "ca.crt"))
    context.keylog_filename = str(keys)
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = context.wrap_bio(incoming, outgoing, server_hostname="localhost")
    secured = SecuredSocket(ours)
    certificate = ServingCertificate(certificates / "tls.crt", certificates / "tls.key")
    for step in (client.do_handshake, lambda: secured.begin(certificate.newest), *steps_of(secured, client)):
        step_and_pass_on(step, theirs, incoming, outgoing)
    (secret,) = [
        line.split()[2] for line in keys.read_text().splitlines() if line.startswith("CLIENT_TRAFFIC_SECRET_0")
    ]
    return secured, theirs, Sender(bytes.fromhex(secret))


def test_who_sends_key_updates_is_slow_and_who_sends_requests_is_not(certificates: Path, tmp_path: Path) -> None:
    buffer = memoryview(bytearray(16 * 1024))
    with contextlib.ExitStack() as stack:
        usual, socket_of_usual, maker = connected(certificates, tmp_path / "usual", stack)
        for _ in range(200):
            socket_of_usual.sendall(maker.record(b"x" * 8192))
            assert usual.read_into(buffer) == 8192
        other, socket_of_other, maker = connected(certificates, tmp_path / "other", stack)
        socket_of_other.sendall(b"".join(maker.key_update(asks=False) for _ in range(850)))
        with pytest.raises(BlockingIOError):
            other.read_into(buffer)
        assert (usual.is_slow, other.is_slow) == (False, True)


def last_record(certificate: ServingCertificate, context: ssl.SSLContext) -> bytes:
    """Connect, let the server end it, and give what it sends then."""
    with contextlib.ExitStack() as stack:
        theirs, ours = (stack.enter_context(one) for one in socket.socketpair())
        ours.settimeout(0)
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        client = context.wrap_bio(incoming, outgoing, server_hostname="localhost")
        secured = SecuredSocket(ours)
        for step in (client.do_handshake, lambda: secured.begin(certificate.newest), *steps_of(secured, client)):
            step_and_pass_on(step, theirs, incoming, outgoing)
        secured.say_goodbye()
        secured.close()
        return theirs.recv(65536)


@pytest.mark.parametrize(
    ("version", "kept", "goodbyes"), [(ssl.TLSVersion.TLSv1_2, 3, 3), (ssl.TLSVersion.TLSv1_3, 0, 6)]
)
def test_sessions_that_can_be_resumed_are_kept_up_to_a_number(
    certificates: Path, monkeypatch: pytest.MonkeyPatch, version: ssl.TLSVersion, kept: int, goodbyes: int
) -> None:
    monkeypatch.setattr("webhook.secured_socket.MAX_SESSIONS", 3)
    certificate = ServingCertificate(certificates / "tls.crt", certificates / "tls.key")
    caller = ssl.create_default_context(cafile=str(certificates / "ca.crt"))
    caller.maximum_version = version
    last = [last_record(certificate, caller) for _ in range(6)]
    assert certificate.newest().session_stats()["number"] == kept
    assert [bool(record) for record in last] == [True] * goodbyes + [False] * (6 - goodbyes)
