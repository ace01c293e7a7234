"""The webhook's own server with nothing behind it: what a request costs before anything is decided."""

import sys
from collections.abc import Callable
from pathlib import Path

from policies.reading.store import PolicyStore
from program import log as logs
from webhook.http1 import Answer, Request, plain
from webhook.listener import listen
from webhook.server import Server
from webhook.settings import Settings
from webhook.tls import ServingCertificate

_EMPTY = Answer(200, b"{}", "application/json")


class EmptyServer(Server):
    """The same server; what it loads answers every request alike."""

    def load(self) -> Callable[[Request], Answer]:  # type: ignore[override] # it has no more than is called
        return lambda request: _EMPTY if request.method == "POST" else plain("ready")


def main() -> None:
    policies, cert, key = map(Path, sys.argv[1:4])
    settings = Settings(policies=policies, cert=cert, key=key, bind="127.0.0.1:0", workers=int(sys.argv[4]))
    logs.start_logging()
    certificate = ServingCertificate(cert, key)
    EmptyServer(settings, listener=listen(settings), store=PolicyStore(policies), certificate=certificate).run()


if __name__ == "__main__":
    main()
