"""The routes, and what each error is over HTTP."""

import logging
import time
import traceback
from collections.abc import Callable
from typing import Final

from httptools import HttpParserInvalidURLError

from policies.contract import MUTATE_PATH, MUTATE_RESTRICTED_PATH
from policies.reading.store import PolicyStore
from program.log import lost_lines, write_event
from webhook.counters import Labels, Page
from webhook.http1 import Answer, Request, plain
from webhook.review import BadCall, review
from webhook.tls import ServingCertificate
from webhook.validity import as_utc

log = logging.getLogger(__name__)

_INVALID: Final[Labels] = ("invalid", "", "")
_FAILED: Final[Labels] = ("failed", "", "")
_MOST_TOLD: Final = 20  # problems in policy files; the log has more of them

_RESTRICTED: Final = {MUTATE_PATH.encode(): False, MUTATE_RESTRICTED_PATH.encode(): True}  # the routes of reviews
_HEALTH: Final = b"/healthz"
_READINESS: Final = b"/readyz"
_METHODS: Final = {
    **dict.fromkeys(_RESTRICTED, ("POST",)),
    **dict.fromkeys((_HEALTH, _READINESS), ("GET", "HEAD")),
}
_HERE: Final = "POST /mutate, GET /healthz and GET /readyz are here."


class Application:
    """Answers each request, by its path and its method."""

    def __init__(self, store: PolicyStore, certificate: ServingCertificate) -> None:
        self._store = store
        self._certificate = certificate
        self.page = Page()  # where reviews are counted; each worker has another

    def __call__(self, called: Request) -> Answer:
        """Answer; whatever fails is an answer too."""
        try:
            answer = self._answer(called)
        except HttpParserInvalidURLError:  # such as that of CONNECT
            answer = plain("The target of the request is malformed.", 400)
        except Exception as error:  # noqa: BLE001 - the last resort
            answer = _unexpected(error)
        return answer._replace(body=b"", length=len(answer.body)) if called.method == "HEAD" else answer

    def _answer(self, called: Request) -> Answer:
        path = called.target.partition(b"?")[0]
        if path not in _METHODS:
            path = called.path  # of a target in another form
        methods = _METHODS.get(path)
        if methods is None:
            return plain(f"Not Found: {_HERE}", 404)
        if called.method not in methods:
            return plain(f"Method Not Allowed: {_HERE}", 405)._replace(headers=(("Allow", ", ".join(methods)),))
        restricted = _RESTRICTED.get(path)
        if restricted is not None:
            return answer_review(called.body, self._store, restricted=restricted, count=self.page.add)
        return plain("ok") if path == _HEALTH else self._readiness()

    def _readiness(self) -> Answer:
        return plain("\n".join(["ready", *_troubles(self._store, self._certificate)]))


def answer_review(
    body: bytes | bytearray, store: PolicyStore, *, restricted: bool, count: Callable[[Labels, float], None]
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


def _troubles(store: PolicyStore, certificate: ServingCertificate) -> list[str]:
    """What an administrator should mend although reviews go on."""
    # Whoever reaches the port may ask: a policy's words are in the log alone.
    broken = [*dict.fromkeys(f"{one.problem.place}: the log says why; {one.effect}" for one in store.troubles)]
    troubles = [f"policy file broken: {one}" for one in broken[:_MOST_TOLD]]
    if len(broken) > _MOST_TOLD:
        troubles.append(f"and {len(broken) - _MOST_TOLD} more problems in policy files: run gpu-share policy check")
    if certificate.newest_error is not None:
        troubles.append(f"the newest certificate is unusable, an older one is served: {certificate.newest_error}")
    validity, now = certificate.validity, time.time()
    if validity.is_over(now):
        troubles.append(f"the certificate that is served expired at {as_utc(validity.ends)}")
    elif validity.is_ahead(now):
        troubles.append(f"the certificate that is served is not valid before {as_utc(validity.begins)}")
    if lost := lost_lines():
        troubles.append(lost)
    return troubles


def _unexpected(error: Exception) -> Answer:
    """Deny what made us fail: the pod is not admitted, and the log says where, in none of the pod's words."""
    where = [f"{frame.filename}:{frame.lineno}" for frame in traceback.extract_tb(error.__traceback__)]
    log.error("request failed", extra={"error": type(error).__name__, "where": where})
    return plain("The webhook failed on this request; its log says where.", 400)
