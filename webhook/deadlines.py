"""How long a connection may be in one state."""

import time
from collections.abc import Callable, Iterator
from typing import Any, Final, Generic, Protocol, TypeVar

_MOST_SECONDS: Final = 1.0  # that count of a turn of the loop, which waits a quarter of that at most


class LoopTime:
    """
    Seconds in which the loop has run, by a clock that it asks in every turn; most of a longer pause does not count.

    While the process stands still, such as on a node that gives it no time, callers wait for it and not it for them.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._asked = clock()
        self._seconds = 0.0

    def __call__(self) -> float:
        """Seconds until now."""
        now = self._clock()
        self._seconds += min(now - self._asked, _MOST_SECONDS)
        self._asked = now
        return self._seconds


class Staying(Protocol):
    """What is in a state, or in none."""

    deadline: Any  # of that state: a Deadline


T = TypeVar("T", bound=Staying)


class Deadline(Generic[T]):
    """Those in one state, in which each may stay for so many *seconds* of *clock*; to enter it again begins anew."""

    def __init__(self, seconds: float, clock: Callable[[], float]) -> None:
        self._seconds = seconds
        self._clock = clock
        self._since: dict[T, float] = {}  # who has been in it longest comes first

    def __len__(self) -> int:
        """Count those in this state."""
        return len(self._since)

    def enter(self, one: T) -> None:
        """Put *one* into this state, and take it out of the one it was in."""
        leave(one)
        self._since[one] = self._clock()
        one.deadline = self

    def has(self, one: T) -> bool:
        """Whether *one* is in this state."""
        return one.deadline is self

    def drop(self, one: T) -> None:
        """Forget *one*."""
        self._since.pop(one, None)

    def staying(self, *, at_least_seconds: float) -> Iterator[T]:
        """Yield those that have stayed for so long, the longest first."""
        latest = self._clock() - at_least_seconds
        for one, since in self._since.items():
            if since > latest:
                return
            yield one

    def longest(self, *, at_least_seconds: float) -> T | None:
        """The one that has stayed longest; None if that is less than so long, or there is none."""
        return next(self.staying(at_least_seconds=at_least_seconds), None)

    def overdue(self) -> list[T]:
        """Those that have stayed for too long."""
        return [*self.staying(at_least_seconds=self._seconds)]


def leave(one: Staying) -> None:
    """Take *one* out of the state it is in."""
    if one.deadline is not None:
        one.deadline.drop(one)
        one.deadline = None
