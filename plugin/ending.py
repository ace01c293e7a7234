"""SIGTERM and SIGINT, as something to wait for."""

import os
import select
import signal
from contextlib import suppress
from types import FrameType
from typing import Self

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
