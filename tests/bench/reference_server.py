"""
An empty Flask route under gunicorn's own threads: what a review is compared with, on every machine.

It is what one gets without a server of one's own. It decides nothing, logs nothing, and has no deadline for a caller.
"""

import logging
import ssl
import sys
from typing import Any

from flask import Flask, Response, request
from gunicorn.app.base import BaseApplication


class ReferenceServer(BaseApplication):  # type: ignore[misc] # gunicorn is published without types
    """gunicorn as it comes, with TLS and threads."""

    def __init__(self, descriptor: int, certificate: str, key: str, workers: int) -> None:
        self._configuration = {
            "bind": f"fd://{descriptor}",
            "worker_class": "gthread",
            "workers": workers,
            "threads": 64,
            "keepalive": 120,
            "certfile": certificate,
            "keyfile": key,
            "preload_app": True,
            "control_socket_disable": True,
            "ssl_context": _tls,
        }
        super().__init__()

    def load_config(self) -> None:
        for name, value in self._configuration.items():
            self.cfg.set(name, value)

    def load(self) -> Flask:
        app = Flask(__name__, static_folder=None)

        @app.post("/mutate")
        def mutate() -> Response:
            request.get_data()
            return Response(b"{}", content_type="application/json")

        @app.get("/readyz")
        def readyz() -> Response:
            return Response("ready\n")

        return app


def _tls(configuration: Any, _default: object) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(configuration.certfile, configuration.keyfile)
    context.num_tickets = 0
    return context


def main() -> None:
    descriptor, certificate, key, workers = sys.argv[1:]
    logging.disable(logging.CRITICAL)
    ReferenceServer(int(descriptor), certificate, key, int(workers)).run()


if __name__ == "__main__":
    main()
