"""The HTTP server of the page: on this machine alone, and silent."""

import socket
import sys
from threading import Thread
from typing import Any, Final

from flask import Flask
from werkzeug.serving import ThreadedWSGIServer, WSGIRequestHandler

HOST: Final = "127.0.0.1"
_IDLE_SECONDS: Final = 60.0  # that a connection may be silent


class _Handler(WSGIRequestHandler):
    timeout = _IDLE_SECONDS
    server_version = "gpu-share"
    sys_version = ""

    def log(self, type: str, message: str, *args: Any) -> None:  # noqa: A002 - the signature is werkzeug's
        """Log no requests."""

    def version_string(self) -> str:
        return self.server_version


class _WsgiServer(ThreadedWSGIServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of callers that are gone, or whose requests are malformed."""
        if not isinstance(sys.exc_info()[1], OSError | ValueError):
            super().handle_error(request, client_address)


class Server:
    """Serves an application from `start` to `close`; listens from the beginning."""

    def __init__(self, app: Flask, port: int) -> None:
        """
        Listen.

        Raises:
            OSError: If the port is taken.
        """
        self._socket = socket.create_server((HOST, port), backlog=64)
        self.port = int(self._socket.getsockname()[1])
        # Given a port, it would end the process where that is taken.
        self._server = _WsgiServer(HOST, self.port, app, _Handler, fd=self._socket.fileno())
        self._thread = Thread(target=self._server.serve_forever, name="server", daemon=True)

    def start(self) -> None:
        """Answer, in a thread."""
        self._thread.start()

    def close(self) -> None:
        """Answer nobody any more."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
        self._socket.close()
