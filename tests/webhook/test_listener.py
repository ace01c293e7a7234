"""The listening socket by itself."""

import fcntl
import socket
import struct
import termios
from contextlib import suppress
from pathlib import Path
from time import monotonic

import pytest

from webhook.listener import begin_nothing_more, listen, widen
from webhook.settings import RECEIVE_BUFFER_BYTES, UNTAKEN_SECONDS, Settings


@pytest.mark.parametrize("bind", ["127.0.0.1:0", "[::1]:0"])
def test_at_the_end_no_connection_begins_and_those_that_have_begun_are_still_accepted(bind: str) -> None:
    with listen(Settings(Path("policies"), Path("tls.crt"), Path("tls.key"), bind)) as listener:
        address = listener.getsockname()[:2]
        with socket.create_connection(address) as begun:
            begin_nothing_more(listener)
            with pytest.raises(TimeoutError):
                socket.create_connection(address, timeout=0.3)
            begun.sendall(b"x")
            accepted, _ = listener.accept()
            with accepted:
                assert accepted.recv(1) == b"x"


def test_what_waits_unread_of_a_caller_is_little_until_it_is_widened() -> None:
    """It counts as the container's memory, of thousands of callers at once."""
    with listen(Settings(Path("policies"), Path("tls.crt"), Path("tls.key"), "127.0.0.1:0")) as listener:
        assert max(_taken(listener, is_wide=False) for _ in range(3)) <= 2 * RECEIVE_BUFFER_BYTES
        assert _taken(listener, is_wide=True) > 2 * RECEIVE_BUFFER_BYTES


def test_the_kernel_ends_a_caller_that_takes_nothing_of_what_it_is_sent() -> None:
    with (
        listen(Settings(Path("policies"), Path("tls.crt"), Path("tls.key"), "127.0.0.1:0")) as listener,
        socket.create_connection(listener.getsockname()),
        listener.accept()[0] as accepted,
    ):
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == UNTAKEN_SECONDS * 1000


def _taken(listener: socket.socket, *, is_wide: bool) -> int:
    """Count the bytes that come to a socket of which nobody reads."""
    with socket.create_connection(listener.getsockname()) as caller, listener.accept()[0] as accepted:
        if is_wide:
            widen(accepted)
        caller.settimeout(0)
        sent_seconds = monotonic()
        while monotonic() - sent_seconds < 0.5:
            with suppress(BlockingIOError):
                caller.send(b"x" * 4096)
                sent_seconds = monotonic()
        (unread,) = struct.unpack("i", fcntl.ioctl(accepted, termios.FIONREAD, b"\0" * 4))
        return int(unread)


@pytest.mark.parametrize(("has_both", "callers"), [(True, ["127.0.0.1", "::1"]), (False, ["127.0.0.1"])])
def test_all_hosts_are_those_of_both_families_as_far_as_the_system_has_them(
    monkeypatch: pytest.MonkeyPatch, *, has_both: bool, callers: list[str]
) -> None:
    monkeypatch.setattr(socket, "has_dualstack_ipv6", lambda: has_both)
    with listen(Settings(Path("policies"), Path("tls.crt"), Path("tls.key"), "[::]:0")) as listener:
        assert listener.family == (socket.AF_INET6 if has_both else socket.AF_INET)
        for host in callers:
            with socket.create_connection((host, listener.getsockname()[1]), timeout=5):
                listener.accept()[0].close()
