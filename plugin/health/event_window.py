"""
Events that repeat: the first of its kind goes on at once, and those like it are counted and go on together.

So a program that causes thousands neither fills the queue nor holds up the one event behind them that matters.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from plugin.health.nvml_events import Told


@dataclass(slots=True)
class _Repeated:
    told: Told
    times: int = 0  # since the first one


class EventWindow:
    """What came since the window was opened; it lasts *seconds*."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._until_seconds = 0.0
        self._repeated: dict[tuple[str | int | None, ...], _Repeated] = {}

    def is_first(self, told: Told, now_seconds: float) -> bool:
        """Take an event; whether none like it has come in this window."""
        kind = (told.gpu_uuid, told.what, told.gpu_instance, told.compute_instance)
        found = self._repeated.get(kind)
        if found:
            found.times += 1
            return False
        if not self._repeated:
            self._until_seconds = now_seconds + self._seconds
        self._repeated[kind] = _Repeated(told)
        return True

    def is_over(self, now_seconds: float) -> bool:
        """Whether it is time to `close` it."""
        return bool(self._repeated) and now_seconds >= self._until_seconds

    def close(self) -> Iterator[tuple[Told, int]]:
        """Give the events that were held back, with their numbers; the next event opens a new window."""
        repeated, self._repeated = self._repeated, {}
        return ((one.told, one.times) for one in repeated.values() if one.times)
