"""The loop in each worker that puts new policies and certificates in force."""

import logging
import sys
import time
from collections.abc import Callable
from functools import partial
from threading import Thread

from policies.reading.store import PolicyStore
from policies.reading.troubles import TroubleLog
from program.log import write_at_once
from webhook.tls import ServingCertificate

log = logging.getLogger(__name__)

LOOK_EVERY_SECONDS = 1.0
_LONGEST_PAUSE_SECONDS = 10.0
_PART_OF_A_CORE = 0.005  # that looking may take; what is found may take more


def pause_seconds(spent_seconds: float, *, has_changed: bool) -> float:
    """
    Say how long to wait before the next look, by what the last one has taken of the processor.

    A second, as long as looking is cheap: a ConfigMap's volume takes one system call. A directory of thousands of files
    takes one for each of them, and is looked at less often.
    """
    if has_changed:  # then most of the time went into reading
        return LOOK_EVERY_SECONDS
    return min(max(spent_seconds / _PART_OF_A_CORE, LOOK_EVERY_SECONDS), _LONGEST_PAUSE_SECONDS)


def _nothing() -> None:
    """Tell nobody."""


def _a_second() -> None:
    time.sleep(1)


def watch(
    store: PolicyStore,
    certificate: ServingCertificate,
    tell: Callable[[], None] = _nothing,
    *,
    pause: Callable[[], None] = _a_second,
) -> None:
    """
    Look for new files now, and from now on in the background for as long as the process lives; *tell* after each look.

    Now, because a worker that takes the place of another one has what was there when the master started. As long as no
    thread can be had for it, this waits, with a *pause* before it tries again: nobody serves by files that may be old.
    """
    troubles = TroubleLog(log)
    look(store, certificate, troubles)
    tell()
    # Not in the thread that serves: to parse a thousand files takes 200 ms, in which others want answers. Of the
    # interpreter it keeps half a millisecond at a time, where 5 are usual.
    sys.setswitchinterval(0.0005)
    keep_looking = partial(_keep_looking, store, certificate, troubles, tell)
    if _begins(keep_looking):
        return
    # The log's thread cannot be had either.
    write_at_once("worker waits", {"reason": "no thread can be started: tried again every second"})
    pause()
    while not _begins(keep_looking):
        pause()


def _begins(keep_looking: Callable[[], None]) -> bool:
    try:
        Thread(target=keep_looking, name="watch", daemon=True).start()
    except RuntimeError:
        return False
    return True


def look(store: PolicyStore, certificate: ServingCertificate, troubles: TroubleLog) -> bool:
    """Put new files in force, log what is new, and say whether other policies hold."""
    try:
        certificate.refresh()
        changed = store.refresh()
    except Exception:  # whatever it was, the next look may find the files in order
        log.exception("looking for new files failed")
        return False
    if changed:
        log.info("new policies in force")
    troubles.tell(store.troubles)
    return changed


def _keep_looking(
    store: PolicyStore, certificate: ServingCertificate, troubles: TroubleLog, tell: Callable[[], None]
) -> None:
    while True:
        before, began = store.troubles, time.thread_time()
        has_changed = look(store, certificate, troubles) or store.troubles is not before
        tell()
        time.sleep(pause_seconds(time.thread_time() - began, has_changed=has_changed))
