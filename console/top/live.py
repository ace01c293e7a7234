"""Pictures on a terminal, one after the other, until a signal ends or stops it: the screen is then as it was before."""

import signal
import time
from collections.abc import Iterable
from types import FrameType
from typing import Final

from rich.console import Console, RenderableType
from rich.live import Live

from console.rest import rest_seconds

_BY_SIGNAL: Final = 128  # and its number: how shells write the exit code of what a signal ended
_ENDS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGQUIT)


def live(console: Console, pictures: Iterable[RenderableType], *, began: float, every_seconds: float) -> int:
    """Draw until somebody ends it, with the screen as it was afterwards; return the exit code."""
    terminal = _Terminal(console)
    before = {one: signal.signal(one, terminal.end) for one in _ENDS}
    if signal.getsignal(signal.SIGTSTP) != signal.SIG_IGN:  # as whoever started it wants it
        before[signal.SIGTSTP] = signal.signal(signal.SIGTSTP, terminal.stop)
    try:
        with terminal.live:
            for picture in pictures:
                terminal.draw(picture)
                time.sleep(rest_seconds(time.monotonic() - began, every_seconds=every_seconds))
                if terminal.code is not None:
                    break
                began = time.monotonic()
    except KeyboardInterrupt:  # as one leaves it
        pass
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)
    return terminal.code or 0


class _Terminal:
    """The screen, and the handlers of signals that leave it."""

    def __init__(self, console: Console) -> None:
        self.code: int | None = None  # once it is to end
        self.live = Live(console=console, screen=True, auto_refresh=False)
        self._is_drawing = True  # until the first picture is there
        self._is_to_stop = False

    def draw(self, picture: RenderableType) -> None:
        self._is_drawing = True
        self.live.update(picture, refresh=True)
        self._is_drawing = False
        if self._is_to_stop:
            self._stop()

    def end(self, signal_number: int, _: FrameType | None) -> None:
        # Kept, since Python drops what is raised while it collects garbage.
        self.code = 0 if signal_number == signal.SIGINT else _BY_SIGNAL + signal_number
        self._is_drawing = True  # the screen is left for good
        raise KeyboardInterrupt

    def stop(self, _signal_number: int, _: FrameType | None) -> None:
        # What leaves the screen would wait for the picture that is being written, which comes first.
        if self._is_drawing:
            self._is_to_stop = True
        else:
            self._stop()

    def _stop(self) -> None:
        """Leave the screen, stop as without a handler, and have the screen again after SIGCONT."""
        self._is_to_stop, self._is_drawing = False, True
        self.live.stop()
        handler = signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        signal.raise_signal(signal.SIGTSTP)
        signal.signal(signal.SIGTSTP, handler)
        self.live.start(refresh=True)
        self._is_drawing = False
