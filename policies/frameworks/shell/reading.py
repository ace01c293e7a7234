"""How a text is read that a shell runs, or may."""

from typing import NamedTuple


class Reading(NamedTuple):
    """Which shells read a text."""

    reads: bool = True  # by what POSIX says
    is_bash: bool = False  # and no other one
    is_new: bool = True  # started for it
