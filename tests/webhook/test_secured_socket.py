"""A secured socket by itself: who takes much of the processor's time is read in small pieces, and nobody else is."""

import contextlib
import ssl
from pathlib import Path

import pytest

from tests.webhook.hellos import Caller, caller, served_context
from tests.webhook.key_updates import Sender


def connected(certificates: Path, keys: Path, stack: contextlib.ExitStack) -> tuple[Caller, Sender]:
    """Shake hands; give both sides, and the maker of the caller's records."""
    context = ssl.create_default_context(cafile=str(certificates / "ca.crt"))
    context.keylog_filename = str(keys)
    both = stack.enter_context(caller(certificates))
    both.shake_hands(context)
    (secret,) = [
        line.split()[2] for line in keys.read_text().splitlines() if line.startswith("CLIENT_TRAFFIC_SECRET_0")
    ]
    return both, Sender(bytes.fromhex(secret))


def test_who_sends_key_updates_is_slow_and_who_sends_requests_is_not(certificates: Path, tmp_path: Path) -> None:
    buffer = memoryview(bytearray(16 * 1024))
    with contextlib.ExitStack() as stack:
        usual, maker = connected(certificates, tmp_path / "usual", stack)
        for _ in range(200):
            usual.plain.sendall(maker.record(b"x" * 8192))
            assert usual.secured.read_into(buffer) == 8192
        other, maker = connected(certificates, tmp_path / "other", stack)
        other.plain.sendall(b"".join(maker.key_update(asks=False) for _ in range(850)))
        with pytest.raises(BlockingIOError):
            other.secured.read_into(buffer)
        assert (usual.secured.is_slow, other.secured.is_slow) == (False, True)


def last_record(certificates: Path, ours: ssl.SSLContext, theirs: ssl.SSLContext) -> bytes:
    """Connect, let the server end it, and give what it sends then."""
    with caller(certificates, ours) as both:
        both.shake_hands(theirs)
        both.secured.say_goodbye()
        both.secured.close()
        return both.plain.recv(65536)


@pytest.mark.parametrize(
    ("version", "kept", "goodbyes"), [(ssl.TLSVersion.TLSv1_2, 3, 3), (ssl.TLSVersion.TLSv1_3, 0, 6)]
)
def test_sessions_that_can_be_resumed_are_kept_up_to_a_number(
    certificates: Path, monkeypatch: pytest.MonkeyPatch, version: ssl.TLSVersion, kept: int, goodbyes: int
) -> None:
    monkeypatch.setattr("webhook.secured_socket.MAX_SESSIONS", 3)
    ours, theirs = served_context(certificates), ssl.create_default_context(cafile=str(certificates / "ca.crt"))
    theirs.maximum_version = version
    last = [last_record(certificates, ours, theirs) for _ in range(6)]
    assert ours.session_stats()["number"] == kept
    assert [bool(record) for record in last] == [True] * goodbyes + [False] * (6 - goodbyes)
