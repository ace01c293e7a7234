"""Servers of the standard library that tests talk to, each in a thread of its own for as long as it is wanted."""

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import ThreadingHTTPServer
from socketserver import ThreadingTCPServer
from threading import Thread


@contextmanager
def serving(server: ThreadingTCPServer | ThreadingHTTPServer) -> Iterator[int]:
    """Serve, and yield the port; whoever is still connected at the end is left alone."""
    server.daemon_threads = True
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
