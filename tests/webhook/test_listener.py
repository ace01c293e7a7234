"""The listening socket by itself."""

import socket
from pathlib import Path

import pytest

from webhook.listener import begin_nothing_more, listen
from webhook.settings import Settings


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
