"""What time it is on an API server: its clock wrote the times in objects, and that of this machine may be off."""

from collections import deque
from collections.abc import Mapping
from datetime import UTC, datetime
from threading import Lock
from time import monotonic
from typing import Final, NamedTuple

from program.http_date import time_of

_KEPT: Final = 256  # answers, of whose times the newest counts
_YEARS: Final = range(1970, 9999)  # from and to which days and hours can be counted


class Told(NamedTuple):
    """The time, and how the clock here compares with it."""

    at: datetime  # UTC
    ahead_seconds: float  # by which the clock here is ahead of it; below 0 where it is behind


class ServerClock:
    """The clock of one API server, in whole seconds, as its answers say it; for many threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._told: deque[tuple[float, Told]] = deque(maxlen=_KEPT)

    def note(self, headers: Mapping[str, str]) -> None:
        """Note what an answer says that has just come; nothing where it says no time."""
        at = time_of(headers)
        if at is not None and at.year in _YEARS:
            told = Told(at.astimezone(UTC), (datetime.now(UTC) - at).total_seconds())
            with self._lock:
                self._told.append((monotonic(), told))

    def since(self, began_seconds: float) -> Told:
        """
        Give the newest time of the answers that came since a moment of the monotonic clock: an older one was cached.

        It is that of this machine where none says the time.
        """
        with self._lock:
            told = [one for came_seconds, one in self._told if came_seconds >= began_seconds]
        return max(told, default=Told(datetime.now(UTC), 0.0))
