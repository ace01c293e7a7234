"""An empty Flask route under the webhook's own server: what a request costs before anything is decided."""

import sys
from pathlib import Path

from flask import Flask, Response, request

from policies.reading.store import PolicyStore
from program import log as logs
from webhook.server import Server, listen
from webhook.settings import Settings
from webhook.tls import ServingCertificate

_ANSWER = b"{}"


class EmptyServer(Server):
    """The same server, with nothing behind it."""

    def load(self) -> Flask:
        app = Flask(__name__, static_folder=None)

        @app.post("/mutate")
        def mutate() -> Response:
            request.environ["wsgi.input"].read(int(request.environ["CONTENT_LENGTH"]))
            return Response(_ANSWER, content_type="application/json")

        @app.get("/readyz")
        def readyz() -> Response:
            return Response("ready\n")

        return app


def main() -> None:
    policies, cert, key = map(Path, sys.argv[1:])
    settings = Settings(policies=policies, cert=cert, key=key, bind="127.0.0.1:0")
    logs.start_logging()
    certificate = ServingCertificate(cert, key)
    EmptyServer(settings, listener=listen(settings), store=PolicyStore(policies), certificate=certificate).run()


if __name__ == "__main__":
    main()
