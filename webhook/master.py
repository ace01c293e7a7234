"""The process that starts workers: it ends those that hang, starts others, and goes on with those that it has."""

import logging
import os
import signal
import time
from collections.abc import Callable
from math import inf
from typing import Final

from gunicorn.app.base import BaseApplication
from gunicorn.arbiter import Arbiter
from gunicorn.errors import HaltServer

from program.log import WarnOnce
from webhook.listener import begin_nothing_more
from webhook.worker import hold_signals

log = logging.getLogger(__name__)

_MOST_SECONDS: Final = 2.0  # from one look at the workers to the next, which is one later
_AGAIN_SECONDS: Final = 5.0  # after a worker could not be started


class Master(Arbiter):  # type: ignore[misc] # gunicorn is published without types
    """The process that starts workers; each begins with the policies and the certificate that this one has."""

    def __init__(self, app: BaseApplication, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._looked = clock()
        self._has_forked = False
        self._is_ending = False
        self._next_start = -inf  # seconds on the clock
        self._warn = WarnOnce(log, clock=clock)
        super().__init__(app)

    def murder_workers(self) -> None:
        """End the workers that hang. They hardly ran either while this process stood still, so that does not count."""
        now = self._clock()
        stood_still = now - self._looked - _MOST_SECONDS
        self._looked = now
        if stood_still > 0:
            for worker in self.WORKERS.values():
                heard = min(worker.tmp.last_update() + stood_still, now)
                os.utime(worker.tmp.fileno(), (heard, heard))
        super().murder_workers()

    def manage_workers(self) -> None:
        """Look for new files, about once a second, so that a later worker knows which were the last good ones."""
        self.app.refresh()
        self.app.pages.keep({*self.WORKERS})
        super().manage_workers()

    def spawn_workers(self) -> None:
        """Start what is missing, unless that has failed just now and others serve."""
        if not self.WORKERS or self._clock() >= self._next_start:
            super().spawn_workers()

    def spawn_worker(self) -> int:
        """
        Fork a worker; a signal that reaches it before it can hear it is kept, and ends it then.

        Returns its PID; 0 if there can be none now, as for want of processes or descriptors.
        """
        page = self.app.pages.free(alive={*self.WORKERS})
        self.app.application.page = page
        master, before = os.getpid(), hold_signals()
        try:
            pid = int(super().spawn_worker())  # from which the worker does not return
        except OSError as error:
            if os.getpid() != master:
                raise
            self._put_off(f"no process can be started ({error.strerror})")
            return 0
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        self._has_forked = True
        self.app.pages.give(page, pid)
        return pid

    def reap_workers(self) -> None:
        """Take note of the workers that have ended. One that could not begin is no reason to end the others."""
        while True:
            try:
                super().reap_workers()
            except HaltServer:
                if self._is_ending:
                    continue
                if not self.WORKERS:
                    raise
                self._put_off("the last one could not begin, as the log says")
            else:
                return

    def _put_off(self, reason: str) -> None:
        """
        Try again later to start what is missing, and say so once.

        Raises:
            HaltServer: If there was no worker yet.
        """
        if not self._has_forked:
            raise HaltServer(f"{reason}: make room for one", 1)
        self._next_start = self._clock() + _AGAIN_SECONDS
        self._warn("worker not started", f"{reason}: tried again every {_AGAIN_SECONDS:.0f} seconds")

    def handle_usr2(self) -> None:
        """Start no second master beside this one, as gunicorn does for its own way to upgrade."""
        log.warning("SIGUSR2 ignored", extra={"reason": "another version is started as another process"})

    def stop(self, graceful: bool = True) -> None:  # noqa: FBT001, FBT002 - the signature is gunicorn's
        """End the workers, after no connection begins any more that one of them would have to accept."""
        self._is_ending = True
        for listener in self.LISTENERS:
            begin_nothing_more(listener.sock)
        super().stop(graceful)
