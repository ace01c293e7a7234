"""gunicorn around the application: one process that starts, workers that serve."""

import gc
import logging
import os
import socket
import sys
import time
from typing import Any, NoReturn

from gunicorn.app.base import BaseApplication
from gunicorn.glogging import Logger

from policies.errors import PolicyError
from policies.reading.store import PolicyStore
from program import metrics
from program.front import failed
from program.http_server import Answer, HttpServer, serve_beside
from program.listening import written
from program.log import JsonHandler, lines_lost, start_logging
from webhook import settings as limits
from webhook.app import Application
from webhook.counters import Pages
from webhook.listener import listen, most_connections
from webhook.master import Master
from webhook.metrics import samples
from webhook.settings import Settings, StartError
from webhook.tls import CertificateError, ServingCertificate
from webhook.watch import pause_seconds, watch
from webhook.worker import Worker

log = logging.getLogger(__name__)


def run(settings: Settings) -> NoReturn:
    """Serve until SIGTERM. Exits with 2 if something given cannot be used, with 1 if the address cannot be had."""
    try:
        server = _server(settings)
    except StartError as error:
        sys.exit(failed("webhook", error, error.exit_code))
    start_logging()
    server.run()
    sys.exit(0)


def _server(settings: Settings) -> "Server":
    """
    Make all that can fail before anything is served.

    Raises:
        StartError: If something of *settings* cannot be used.
    """
    try:
        certificate = ServingCertificate(settings.cert, settings.key)
    except CertificateError as error:
        raise StartError(str(error)) from None
    try:
        store = PolicyStore(settings.policies)
    except PolicyError as error:
        raise StartError(f"--policies: {error}") from None
    return Server(settings, listener=listen(settings), store=store, certificate=certificate)


class GunicornLog(Logger):  # type: ignore[misc] # gunicorn is published without types
    """gunicorn's own lines, in the form of ours."""

    def setup(self, cfg: object) -> None:
        """Put our handler in the place of gunicorn's."""
        super().setup(cfg)
        self.error_log.handlers = [JsonHandler()]


class Server(BaseApplication):  # type: ignore[misc] # gunicorn is published without types
    """gunicorn, configured here alone: no file and no environment of its own."""

    def __init__(
        self, settings: Settings, *, listener: socket.socket, store: PolicyStore, certificate: ServingCertificate
    ) -> None:
        self._settings = settings
        self._listener = listener.detach()  # gunicorn makes a socket of its own from it
        self._store = store
        self._next_look = 0.0  # seconds on the monotonic clock
        self._scraped: HttpServer | None = None
        self.certificate = certificate
        self.application = Application(store, certificate)
        self.pages = Pages()
        super().__init__()

    def run(self) -> None:
        """Serve until a signal."""
        Master(self).run()

    def refresh(self) -> None:
        """Put new files in force in this process, for later workers; those that run do so themselves, and log it."""
        if time.monotonic() < self._next_look:
            return
        before, began = self._store.troubles, time.thread_time()
        has_changed = False
        try:
            self.certificate.refresh(is_logged=False)
            has_changed = self._store.refresh() or self._store.troubles is not before
        except Exception:  # whatever it was, the next look may find the files in order
            log.exception("looking for new files failed")
        # A little less than the second after which the master comes again.
        self._next_look = time.monotonic() + 0.9 * pause_seconds(time.thread_time() - began, has_changed=has_changed)

    def load(self) -> Application:
        """Make the application, once, before the workers are forked."""
        return self.application

    def load_config(self) -> None:
        """Set what differs from gunicorn's defaults."""
        for name, value in self._configuration().items():
            self.cfg.set(name, value)

    def _configuration(self) -> dict[str, Any]:
        return {
            "bind": f"fd://{self._listener}",
            "workers": self._settings.workers,
            "worker_class": Worker,
            "worker_connections": most_connections(),
            "worker_tmp_dir": "/dev/shm" if os.access("/dev/shm", os.W_OK) else None,  # noqa: S108 - in memory
            "backlog": limits.BACKLOG,
            "keepalive": limits.IDLE_SECONDS,
            "graceful_timeout": limits.SHUTDOWN_SECONDS,
            "preload_app": True,
            "control_socket_disable": True,
            "logger_class": GunicornLog,
            "forwarded_allow_ips": "",  # the API server calls directly
            "proc_name": "gpu-share webhook",
            # gunicorn reads neither, and says https in its log where they are set.
            "certfile": str(self._settings.cert),
            "keyfile": str(self._settings.key),
            "when_ready": self._when_ready,
            "post_worker_init": self._begin_watching,
        }

    def _when_ready(self, arbiter: Any) -> None:
        log.info("serving", extra=self._effective(written(*arbiter.LISTENERS[0].getsockname()[:2])))
        routes = {"/metrics": lambda _query: self._metrics()}
        self._scraped = serve_beside(self._settings.metrics_bind, routes, what="metrics")
        # What is there now stays: a collection in a worker would copy its pages.
        gc.collect()
        gc.freeze()

    def _effective(self, address: str) -> dict[str, object]:
        return {
            "address": f"https://{address}",
            "workers": self._settings.workers,
            "policies": str(self._settings.policies),
            "certificate": str(self._settings.cert),
            "key": str(self._settings.key),
            "connections": self.cfg.worker_connections,
            "body_bytes": limits.MAX_BODY_BYTES,
            "request_seconds": limits.REQUEST_SECONDS,
            "idle_seconds": limits.IDLE_SECONDS,
            "shutdown_seconds": limits.SHUTDOWN_SECONDS,
        }

    def _begin_watching(self, worker: Worker) -> None:
        if self._scraped is not None:
            self._scraped.socket.close()  # the master answers
        page = self.application.page
        page.take()
        watch(
            self._store,
            self.certificate,
            tell=lambda: page.tell(certificate_expires=self.certificate.validity.ends, lines_lost=lines_lost()),
            pause=worker.pause,
        )

    def _metrics(self) -> Answer:
        return metrics.answer(samples(self.pages.counted(), self._store))
