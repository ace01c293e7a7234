"""From start to end of a process: the signals that end it, and its threads, none of which may die unseen."""

import logging
import os
import select
import signal
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from threading import Lock, Thread
from types import FrameType
from typing import Self

from plugin.errors import NO_MORE_THREADS, PluginError, ThreadsError

_log = logging.getLogger(__name__)

_ENDING = (signal.SIGTERM, signal.SIGINT)


class Ending:
    """
    Waits for a signal that ends the process; a context manager for the main thread.

    The signals are caught rather than blocked: daemons would inherit a block, and could not be ended by them.
    """

    def __enter__(self) -> Self:
        self._wakes, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._wake = wake
        self._wakeup_before = signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        self._before = {number: signal.signal(number, _noted) for number in _ENDING}
        return self

    def __exit__(self, *error: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._wakeup_before)
        os.close(self._wakes)
        os.close(self._wake)

    def wait(self) -> signal.Signals:
        """Wait for a signal, however long it takes."""
        while (received := self._received(None)) is None:
            pass
        return received

    def within(self, seconds: float) -> signal.Signals | None:
        """Wait so long for a signal; None if none came."""
        return self._received(seconds)

    def _received(self, seconds: float | None) -> signal.Signals | None:
        select.select([self._wakes], [], [], seconds)
        with suppress(BlockingIOError):
            for number in os.read(self._wakes, 64):
                if number in _ENDING:
                    return signal.Signals(number)
        return None


def _noted(_number: int, _frame: FrameType | None) -> None:
    """Do nothing: the number is in the pipe already."""


def started(thread: Thread) -> Thread:
    """
    Start a thread.

    Raises:
        ThreadsError: If there is none to be had.
    """
    try:
        thread.start()
    except RuntimeError as error:
        raise ThreadsError(f"{thread.name}: {error}: {NO_MORE_THREADS}") from error
    return thread


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
        """
        Start a thread that *stop* ends; one that *may_hang* does not keep the process alive.

        Raises:
            ThreadsError: If there is none to be had.
        """
        with self._lock:
            if self._ending:
                return
            thread = started(Thread(target=self._run, args=[run], name=name, daemon=may_hang))
            self._started.append(_Started(thread, stop))

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
        except PluginError as error:
            _log.error("the plugin failed", extra={"reason": str(error)})
            self._die()
        except Exception:  # noqa: BLE001 - whatever it was
            _log.exception("the plugin failed")
            self._die()

    def _die(self) -> None:
        self.died = True
        self._on_death()
