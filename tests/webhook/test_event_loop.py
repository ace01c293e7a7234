"""The loop by itself, where a process of its own would hide what it does."""

import socket
import ssl
import time

from webhook.event_loop import EventLoop
from webhook.http1 import plain


def test_a_listener_that_others_still_have_does_not_wake_who_has_closed_it() -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    with listener.dup() as kept:  # as the master does, while it replaces its workers
        loop = EventLoop(
            [listener],
            answer=lambda _: plain("ok"),
            new_tls_context=lambda: ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER),
            most_connections=4,
        )
        loop.stop_accepting()
        with socket.create_connection(kept.getsockname()):
            began = time.monotonic()
            loop.turn()
            assert time.monotonic() - began > 0.2
