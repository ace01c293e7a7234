"""The routes, and what each error is over HTTP."""

import logging
import time
import traceback
from functools import partial

from flask import Flask, Response, request
from werkzeug.exceptions import HTTPException

from policies.contract import MUTATE_PATH, MUTATE_RESTRICTED_PATH
from policies.reading.store import PolicyStore
from program.log import lost_lines, write_event
from webhook.body import BodyError, drain, read_body
from webhook.review import BadCall, review
from webhook.tls import ServingCertificate

log = logging.getLogger(__name__)

_MOST_TOLD = 20  # problems in policy files; the log has all of them


def create_app(store: PolicyStore, certificate: ServingCertificate) -> Flask:
    """Make the WSGI application."""
    app = Flask(__name__, static_folder=None)

    @app.post(MUTATE_PATH)
    def mutate(*, restricted: bool = False) -> Response:
        began = time.perf_counter()
        reviewed = review(read_body(request.environ), store.current, restricted=restricted)
        milliseconds = round((time.perf_counter() - began) * 1000, 3)
        write_event("review", reviewed.event | {"milliseconds": milliseconds})
        return Response(reviewed.body, content_type="application/json")

    @app.post(MUTATE_RESTRICTED_PATH)
    def mutate_restricted() -> Response:
        return mutate(restricted=True)

    @app.get("/healthz")
    def healthz() -> Response:
        return _plain("ok")

    @app.get("/readyz")
    def readyz() -> Response:
        return _plain("\n".join(["ready", *_troubles(store, certificate)]))

    app.register_error_handler(BadCall, _bad_call)
    app.register_error_handler(BodyError, _body_error)
    app.register_error_handler(HTTPException, _http_error)
    app.register_error_handler(Exception, _unexpected)
    return app


def _troubles(store: PolicyStore, certificate: ServingCertificate) -> list[str]:
    """What an administrator should mend although reviews go on."""
    broken = store.troubles
    troubles = [f"policy file broken: {one}" for one in broken[:_MOST_TOLD]]
    if len(broken) > _MOST_TOLD:
        troubles.append(f"and {len(broken) - _MOST_TOLD} more problems in policy files: run gpu-share policy check")
    if certificate.newest_error is not None:
        troubles.append(f"the newest certificate is unusable, an older one is served: {certificate.newest_error}")
    if lost := lost_lines():
        troubles.append(lost)
    return troubles


def _plain(text: str, status: int = 200) -> Response:
    return Response(f"{text}\n", status, content_type="text/plain; charset=utf-8")


def _bad_call(error: BadCall) -> Response:
    log.warning("bad call", extra={"reason": str(error)})
    return _plain(str(error), 400)


def _body_error(error: BodyError) -> Response:
    log.warning("bad call", extra={"reason": str(error)})
    response = _plain(str(error), error.status)
    response.call_on_close(partial(drain, request.environ))
    return response


def _http_error(error: HTTPException) -> Response:
    response = _plain(f"{error.name}: POST /mutate, GET /healthz and GET /readyz are here.", error.code or 400)
    response.headers.extend([(name, value) for name, value in error.get_headers() if name == "Allow"])
    return response


def _unexpected(error: Exception) -> Response:
    """Deny what made us fail: the pod is not admitted, and the log says where, in none of the pod's words."""
    where = [f"{frame.filename}:{frame.lineno}" for frame in traceback.extract_tb(error.__traceback__)]
    log.error("request failed", extra={"error": type(error).__name__, "where": where})
    return _plain("The webhook failed on this request; its log says where.", 400)
