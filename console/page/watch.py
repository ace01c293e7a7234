"""One look at the cluster for all who ask: anew while somebody does, and at rest while nobody does."""

import logging
import time
from collections import deque
from collections.abc import Callable
from threading import Condition, Thread
from typing import Final

import msgspec

from console.page.change import Change
from console.page.differences import differences
from console.rest import rest_seconds
from console.seen import Seen, Unseen
from console.top.rows import Top, top
from console.words import Shown

EVERY_SECONDS: Final = 2.0  # between two looks, or longer where a look takes long
IDLE_SECONDS: Final = 15.0  # without a question, after which it rests; a page asks every 2 seconds
_OLD_SECONDS: Final = 10.0  # a question waits for a new look where the last one is older
_WAIT_SECONDS: Final = 3.0  # that it waits at most
_MOST_CHANGES: Final = 1000

_log = logging.getLogger(__name__)


class Sight(msgspec.Struct, frozen=True, kw_only=True):
    """The cluster at one moment."""

    number: int  # of the look; 0 before the first one has ended
    seen: Seen
    shown: Top
    observed: tuple[Change, ...] = ()  # between looks, since the watch began

    @property
    def is_first_due(self) -> bool:
        """Whether nothing has been seen yet."""
        return self.number == 0


class Watch:
    """Looks from `start` to `close`, in a thread of its own."""

    def __init__(self, see: Callable[[], Seen], *, context: str) -> None:
        """Look by *see*."""
        self._see = see
        self._condition = Condition()
        self._is_over = False
        self._asked = 0.0  # when somebody did last, of the monotonic clock
        self._looked = 0.0  # when the last look ended
        self._observed: deque[Change] = deque(maxlen=_MOST_CHANGES)
        self._sight = _sight(0, Seen(context=context, at=""), ())
        self._thread = Thread(target=self._go_on, name="watch", daemon=True)

    def start(self) -> None:
        """Look once somebody asks."""
        self._thread.start()

    def close(self, timeout_seconds: float) -> bool:
        """End; whether that happened in time, since a look may hang for as long as its deadlines allow."""
        with self._condition:
            self._is_over = True
            self._condition.notify_all()
        self._thread.join(timeout_seconds)
        return not self._thread.is_alive()

    def newest(self) -> Sight:
        """Give what was seen last; where that is old, what is seen now if it comes soon."""
        with self._condition:
            self._asked = time.monotonic()
            self._condition.notify_all()
            before = self._sight.number
            if before == 0 or self._asked - self._looked > _OLD_SECONDS:
                self._condition.wait_for(lambda: self._is_over or self._sight.number > before, _WAIT_SECONDS)
            return self._sight

    def _go_on(self) -> None:
        while True:
            with self._condition:
                self._condition.wait_for(lambda: self._is_over or self._is_asked)
                if self._is_over:
                    return
            began = time.monotonic()
            seen = self._look()
            now = time.monotonic()
            with self._condition:
                self._publish(seen, now)
                self._condition.wait_for(lambda: self._is_over, rest_seconds(now - began, every_seconds=EVERY_SECONDS))

    @property
    def _is_asked(self) -> bool:
        return self._asked > 0 and time.monotonic() - self._asked < IDLE_SECONDS

    def _look(self) -> Seen:
        try:
            return self._see()
        except Exception as error:  # noqa: BLE001 - whatever it was, the next look may find all in order
            _log.debug("no look", exc_info=True)
            why = Shown(f"{type(error).__name__}: {error}")
            return msgspec.structs.replace(self._sight.seen, unseen=(Unseen(what="the cluster", why=why),))

    def _publish(self, seen: Seen, now: float) -> None:
        if self._sight.number:
            self._observed.extend(differences(self._sight.seen, seen))
        self._sight = _sight(self._sight.number + 1, seen, tuple(self._observed))
        self._looked = now
        self._condition.notify_all()


def _sight(number: int, seen: Seen, observed: tuple[Change, ...]) -> Sight:
    return Sight(number=number, seen=seen, shown=top(seen), observed=observed)
