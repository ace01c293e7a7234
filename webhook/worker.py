"""gunicorn's worker: a process that runs the event loop until it is told to end."""

import os
import signal
import sys
import time
from typing import Any, Final

from gunicorn.workers.base import Worker as GunicornWorker

from webhook.deadlines import LoopTime
from webhook.event_loop import EventLoop
from webhook.settings import ACCEPT_SHUTDOWN_SECONDS, IDLE_SHUTDOWN_SECONDS, SHUTDOWN_SECONDS

_NOTIFY_SECONDS: Final = 1.0  # far below the time after which gunicorn kills a worker
_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT, signal.SIGUSR1)


class Worker(GunicornWorker):  # type: ignore[misc] # gunicorn is published without types
    """Serves the connections of one process."""

    def init_signals(self) -> None:
        """Leave what reaches the whole process group, such as Ctrl-C, to the master, which passes on what is for us."""
        super().init_signals()
        for one in (signal.SIGINT, signal.SIGHUP, signal.SIGUSR2):
            signal.signal(one, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)

    def load_wsgi(self) -> None:
        """Make all that the system can deny: to the master, a worker that fails in `run` has begun."""
        super().load_wsgi()
        self._loop = EventLoop(
            [one.sock for one in self.sockets],
            answer=self.wsgi,
            certificate=self.app.certificate,
            most_connections=self.cfg.worker_connections,
            clock=LoopTime(),
        )
        self._loop.wake_by(self.PIPE[0])

    def run(self) -> None:
        """Serve until SIGTERM, or until the master is no more; then answer what is there."""
        while self.alive and self.ppid == os.getppid():
            self._turn()
        self._end()

    def pause(self) -> None:
        """Wait a second before something is tried again that the start needs; the process ends if it is to end."""
        if not self.alive or self.ppid != os.getppid():
            sys.exit(0)
        self.notify()
        time.sleep(_NOTIFY_SECONDS)

    def _turn(self) -> None:
        self._loop.turn()
        now = time.monotonic()
        if now >= self._next_notify:
            self._next_notify = now + _NOTIFY_SECONDS
            self.notify()

    _next_notify = 0.0  # seconds on the monotonic clock

    def _end(self) -> None:
        """Shut down gracefully: answer what is there or on its way, and close each connection with its answer."""
        self._loop.is_ending = True
        began = time.monotonic()
        self._turn_until(began + ACCEPT_SHUTDOWN_SECONDS, is_accepting=True)
        self._loop.stop_accepting()
        # Not at once: a caller may be about to use one, and the API server does not repeat a POST.
        self._turn_until(began + IDLE_SHUTDOWN_SECONDS)
        self._loop.end_idle()
        self._turn_until(began + SHUTDOWN_SECONDS - 1)  # before the master kills us

    def _turn_until(self, moment: float, *, is_accepting: bool = False) -> None:
        while time.monotonic() < moment and (is_accepting or not self._loop.is_empty):
            self._turn()


def hold_signals() -> Any:
    """Keep the signals that end a worker until it can hear them; for the time of a fork. Returns the mask that was."""
    return signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
