"""The loop in each worker that puts new policies and certificates in force."""

import logging
import sys
import time
from threading import Thread

from policies.reading.store import PolicyStore
from policies.reading.troubles import TroubleLog
from webhook.tls import ServingCertificate

log = logging.getLogger(__name__)

LOOK_EVERY_SECONDS = 1.0


def watch(store: PolicyStore, certificate: ServingCertificate) -> None:
    """
    Look for new files now, and from now on in the background for as long as the process lives.

    Now, because a worker that takes the place of another one has what was there when the master started.
    """
    troubles = TroubleLog(log)
    look(store, certificate, troubles)
    # Not in the thread that serves: to parse a thousand files takes 200 ms, in which others want answers. Of the
    # interpreter it keeps half a millisecond at a time, where 5 are usual.
    sys.setswitchinterval(0.0005)
    Thread(target=_keep_looking, args=(store, certificate, troubles), name="watch", daemon=True).start()


def look(store: PolicyStore, certificate: ServingCertificate, troubles: TroubleLog) -> None:
    """Put new files in force, and log what is new."""
    try:
        certificate.refresh()
        changed = store.refresh()
    except Exception:  # whatever it was, the next look may find the files in order
        log.exception("looking for new files failed")
        return
    if changed:
        log.info("new policies in force")
    troubles.tell(store.troubles)


def _keep_looking(store: PolicyStore, certificate: ServingCertificate, troubles: TroubleLog) -> None:
    while True:
        time.sleep(LOOK_EVERY_SECONDS)
        look(store, certificate, troubles)
