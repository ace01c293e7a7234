"""What a variable holds already, where it stands in its own new value."""

import re
from typing import Final

from policies.frameworks.expansion import ANYTHING

REST: Final = "\0\4"  # words that the variable which is set holds already
SPACE: Final = re.compile(r"[ \t\n]+")
_SPACES = re.compile(r" [ \t\n]++|[\t\n][ \t\n]*+")  # that are not one already
_IN_WORD = re.compile(f"{REST}(?:(?<=[^ ]{REST})|(?=[^ ]))")
_QUOTING = re.compile(r"[\"'\\$`]")


def without_joined_rest(value: str) -> str:
    """Return a value in which what a variable holds already is anything, unless it is whole words there, too."""
    if REST not in value:
        return value
    return _IN_WORD.sub(ANYTHING, _SPACES.sub(" ", value))


def is_made_up(text: str) -> bool:
    """Whether the shell around a text makes it up in a way that nobody reads."""
    return ANYTHING in text or (REST in text and _QUOTING.search(text) is not None)
