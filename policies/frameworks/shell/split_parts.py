"""The parts of a shell's word as they are written into it: quoted, or split into words where that is to be."""

from typing import Final

import msgspec

from policies.frameworks.allowance import UnreadableError
from policies.frameworks.expansion import ANYTHING
from policies.frameworks.shell.rest import SPACE
from policies.frameworks.shell.script import ALL, POSITIONAL, Literal, Number, Part, Reference

SPLIT: Final = "\0\5"  # where a value is split into words
QUOTED: Final = "\0\7"  # a part of a word that is one, even if nothing stands in it
MOST_PIECES: Final = 512  # words that one word becomes
_MOST_BLANKS: Final = 8 * MOST_PIECES  # between them


def key_of(part: Part, place: int) -> tuple[Part, int]:
    """Tell the values of a word apart: those of one variable, wherever it stands, are the same."""
    if isinstance(part, Reference) and not part.operator and not part.name.endswith((ALL, POSITIONAL)):
        return msgspec.structs.replace(part, is_quoted=False), 0
    return part, place


def written_part(part: Part, value: str, *, splits: bool) -> str:
    """
    Split a value that is not quoted; one that may be anything may be several words.

    Raises:
        UnreadableError: If it has more blanks than any real one that is split.
    """
    if not splits:
        return value
    if part.is_quoted:
        return value if _is_several(part) else f"{QUOTED}{value}"
    if sum(map(value.count, " \t\n")) > _MOST_BLANKS:
        raise UnreadableError
    if ANYTHING in value:
        value = value.replace(ANYTHING, f"{ANYTHING}{SPLIT}{ANYTHING}")
    return value if isinstance(part, Literal) else SPACE.sub(SPLIT, value)


def has_quotes(part: Part) -> bool:
    """Whether a part that is split has quotes in its default, of which nobody knows what they keep together."""
    if not isinstance(part, Reference) or part.is_quoted:
        return False
    return any(not isinstance(one, Number) and one.is_quoted for one in part.operand)


def _is_several(part: Part) -> bool:
    return isinstance(part, Reference) and part.is_all
