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
