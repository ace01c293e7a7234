"""The loop in each worker that puts new policies and certificates in force."""

import logging

import gevent

from policies.reading.store import PolicyStore
from webhook.tls import ServingCertificate

log = logging.getLogger(__name__)

LOOK_EVERY_SECONDS = 1.0


def watch(store: PolicyStore, certificate: ServingCertificate) -> None:
    """
    Look for new files now, and from now on in the background for as long as the process lives.

    Now, because a worker that takes the place of another one has what was there when the master started.
    """
    error = look(store, certificate, error="")
    gevent.spawn(_keep_looking, store, certificate, error)


def look(store: PolicyStore, certificate: ServingCertificate, *, error: str) -> str:
    """Put new files in force, log what is new since *error*, and return the policies' error now ("" if none)."""
    try:
        certificate.refresh()
        # In a thread of its own: parsing a thousand files takes 100 ms, in which others want answers.
        changed = gevent.get_hub().threadpool.apply(store.refresh)
    except Exception:  # whatever it was, the next look may find the files in order
        log.exception("looking for new files failed")
        return error
    newest = str(store.newest_error or "")
    if changed:
        log.info("new policies in force")
    if newest and newest != error:
        log.error("new policies ignored, older ones stay in force", extra={"error": newest})
    return newest


def _keep_looking(store: PolicyStore, certificate: ServingCertificate, error: str) -> None:
    while True:
        gevent.sleep(LOOK_EVERY_SECONDS)
        error = look(store, certificate, error=error)
