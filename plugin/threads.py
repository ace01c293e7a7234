"""Threads of a process. None may die unseen: what it did would be missing and nobody would know."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock, Thread

_log = logging.getLogger(__name__)

_END_SECONDS = 1.5  # for threads that may hang in a driver


@dataclass(frozen=True, slots=True)
class _Started:
    thread: Thread
    stop: Callable[[], None]


class Threads:
    """Runs threads until `end`; *on_death* is called, in the thread, when one dies of an exception."""

    def __init__(self, *, on_death: Callable[[], None]) -> None:
        self._on_death = on_death
        self._lock = Lock()
        self._started: list[_Started] = []
        self._ending = False
        self.died = False

    def start(self, name: str, run: Callable[[], None], *, stop: Callable[[], None], may_hang: bool = False) -> None:
        """Start a thread that *stop* ends; one that *may_hang* does not keep the process alive."""
        with self._lock:
            if self._ending:
                return
            thread = Thread(target=self._run, args=[run], name=name, daemon=may_hang)
            self._started.append(_Started(thread, stop))
            thread.start()

    def end(self) -> bool:
        """Stop all; False if one still hangs."""
        with self._lock:
            self._ending = True
        for started in self._started:
            started.stop()
        for started in self._started:
            started.thread.join(_END_SECONDS if started.thread.daemon else None)
        return not any(started.thread.is_alive() for started in self._started)

    def _run(self, run: Callable[[], None]) -> None:
        try:
            run()
        except Exception:  # noqa: BLE001 - whatever it was
            _log.exception("the plugin failed")
            self.died = True
            self._on_death()
