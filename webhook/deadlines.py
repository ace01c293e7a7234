"""How long a connection may be in one state."""

import time
from typing import Protocol


class Expiring(Protocol):
    """What is in a state."""

    deadline: "Deadline | None"  # of the state that it is in

    def expire(self) -> None:
        """Hear that it was in its state for too long."""


class Deadline:
    """Those in one state, in which each may be for so many *seconds*; entering it again begins them anew."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._since: dict[Expiring, float] = {}  # on the monotonic clock; who is in it longest comes first

    def enter(self, one: Expiring) -> None:
        """Put *one* into this state, and take it out of the one it was in."""
        leave(one)
        self._since[one] = time.monotonic()
        one.deadline = self

    def has(self, one: Expiring) -> bool:
        """Whether *one* is in this state."""
        return one.deadline is self

    def drop(self, one: Expiring) -> None:
        """Forget *one*."""
        self._since.pop(one, None)

    def expire(self) -> None:
        """Tell those that were in this state for too long."""
        latest = time.monotonic() - self._seconds
        overdue = []
        for one, since in self._since.items():
            if since > latest:
                break
            overdue.append(one)
        for one in overdue:
            one.expire()


def leave(one: Expiring) -> None:
    """Take *one* out of the state it is in."""
    if one.deadline is not None:
        one.deadline.drop(one)
        one.deadline = None
