"""The loop in each worker that puts new policies and certificates in force."""

import logging

import gevent

from policies.store import PolicyStore
from webhook.tls import ServingCertificate

log = logging.getLogger(__name__)

LOOK_EVERY_SECONDS = 1.0


def watch(store: PolicyStore, certificate: ServingCertificate) -> None:
    """Look for new files for as long as the process lives."""
    error = ""
    while True:
        gevent.sleep(LOOK_EVERY_SECONDS)
        try:
            error = look(store, error)
            certificate.refresh()
        except Exception:  # whatever it was, the next look may find the files in order
            log.exception("looking for new files failed")


def look(store: PolicyStore, error: str) -> str:
    """Refresh *store*, log what is new since *error*, and return the error there is now ("" if none)."""
    # In a thread of its own: parsing a thousand files takes 100 ms, in which others want answers.
    changed = gevent.get_hub().threadpool.apply(store.refresh)
    newest = str(store.newest_error or "")
    if changed:
        log.info("new policies in force")
    if newest and newest != error:
        log.error("new policies ignored, older ones stay in force", extra={"error": newest})
    return newest
