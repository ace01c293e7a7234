"""How a text is read that a shell runs, or may."""

from typing import NamedTuple, Protocol


class Counts(Protocol):
    """Counts steps; raises UnreadableError where they are too many."""

    def __call__(self, steps: int = 1, /) -> None:
        """Count so many *steps*."""


class Reading(NamedTuple):
    """Which shells read a text."""

    reads: bool = True  # by what POSIX says
    is_bash: bool = False  # and no other one
    is_new: bool = True  # started for it
