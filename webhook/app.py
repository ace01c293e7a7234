"""The routes, and what each error is over HTTP."""

import logging
import time
import traceback
from collections.abc import Callable
from typing import Final

from flask import Flask, Response, request
from werkzeug.exceptions import HTTPException

from policies.contract import MUTATE_PATH, MUTATE_RESTRICTED_PATH
from policies.reading.store import PolicyStore
from program.log import lost_lines, write_event
from webhook import wsgi
from webhook.counters import Labels, Page
from webhook.http1 import Answer, Request, plain
from webhook.review import BadCall, review
from webhook.tls import ServingCertificate

log = logging.getLogger(__name__)

_INVALID: Final[Labels] = ("invalid", "", "")
_FAILED: Final[Labels] = ("failed", "", "")
_MOST_TOLD = 20  # problems in policy files; the log has all of them
_RESTRICTED = {MUTATE_PATH.encode(): False, MUTATE_RESTRICTED_PATH.encode(): True}  # the routes of reviews


def _uncounted(_labels: Labels, _seconds: float) -> None:
    """Count nothing."""


class Application:
    """Answers reviews itself, which is most of the time of a usual review, and lets Flask answer all else."""

    def __init__(self, store: PolicyStore, certificate: ServingCertificate) -> None:
        self._store = store
        self.page = Page()  # where reviews are counted; each worker has another
        self._flask = create_app(store, certificate, count=self._count)

    def _count(self, labels: Labels, seconds: float) -> None:
        self.page.add(labels, seconds)

    def __call__(self, called: Request) -> Answer:
        """Answer; whatever fails is an answer too."""
        restricted = _RESTRICTED.get(called.target.partition(b"?")[0])
        if restricted is not None and called.method == "POST":
            return answer_review(called.body, self._store, restricted=restricted, count=self.page.add)
        try:
            return wsgi.call(self._flask, called)
        except Exception as error:  # noqa: BLE001 - the last resort; Flask's own handlers come before it
            return _unexpected(error)


def answer_review(
    body: bytes, store: PolicyStore, *, restricted: bool, count: Callable[[Labels, float], None]
) -> Answer:
    """Review, log and count it."""
    began = time.perf_counter()
    try:
        reviewed = review(body, store.current, restricted=restricted)
    except BadCall as error:
        log.warning("bad call", extra={"reason": str(error)})
        count(_INVALID, time.perf_counter() - began)
        return plain(str(error), 400)
    except Exception as error:  # noqa: BLE001 - whatever it is, the pod must not be admitted
        count(_FAILED, time.perf_counter() - began)
        return _unexpected(error)
    seconds = time.perf_counter() - began
    event = reviewed.event
    write_event("review", event | {"milliseconds": round(seconds * 1000, 3)})
    count((event["decision"], event["code"], event["policy"]), seconds)
    return Answer(200, reviewed.body, "application/json")


def create_app(
    store: PolicyStore, certificate: ServingCertificate, *, count: Callable[[Labels, float], None] = _uncounted
) -> Flask:
    """Make the WSGI application."""
    app = Flask(__name__, static_folder=None)

    @app.post(MUTATE_PATH)
    def mutate() -> Response:
        return _response(answer_review(request.get_data(), store, restricted=False, count=count))

    @app.post(MUTATE_RESTRICTED_PATH)
    def mutate_restricted() -> Response:
        return _response(answer_review(request.get_data(), store, restricted=True, count=count))

    @app.get("/healthz")
    def healthz() -> Response:
        return _response(plain("ok"))

    @app.get("/readyz")
    def readyz() -> Response:
        return _response(plain("\n".join(["ready", *_troubles(store, certificate)])))

    app.register_error_handler(HTTPException, _http_error)
    app.register_error_handler(Exception, lambda error: _response(_unexpected(error)))
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


def _response(answer: Answer) -> Response:
    return Response(answer.body, answer.status, content_type=answer.content_type)


def _http_error(error: HTTPException) -> Response:
    response = _response(
        plain(f"{error.name}: POST /mutate, GET /healthz and GET /readyz are here.", error.code or 400)
    )
    response.headers.extend([(name, value) for name, value in error.get_headers() if name == "Allow"])
    return response


def _unexpected(error: Exception) -> Answer:
    """Deny what made us fail: the pod is not admitted, and the log says where, in none of the pod's words."""
    where = [f"{frame.filename}:{frame.lineno}" for frame in traceback.extract_tb(error.__traceback__)]
    log.error("request failed", extra={"error": type(error).__name__, "where": where})
    return plain("The webhook failed on this request; its log says where.", 400)
