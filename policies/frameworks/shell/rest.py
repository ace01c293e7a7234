"""What a variable holds already, where it stands in its own new value."""

import re
from typing import Final

import msgspec

from policies.frameworks.expansion import ANYTHING
from policies.frameworks.shell.script import Assignment, Literal, Reference, Word

REST: Final = "\0\4"  # words that the variable which is set holds already
HELD: Final = "\0\17"  # the same, where a new value begins with it: others are judged where they are set
SPACE: Final = re.compile(r"[ \t\n]+")
_SPACES = re.compile(r" [ \t\n]++|[\t\n][ \t\n]*+")  # that are not one already
_IN_WORD = re.compile(f"{REST}(?:(?<=[^ ]{REST})|(?=[^ ]))")
_QUOTING = re.compile(r"[\"'\\$`]")
_ONE_WORD = re.compile(rf"(?!{ANYTHING}\Z)[^\s*?\[\\]*")  # of a value that is not quoted


def without_joined_rest(value: str) -> str:
    """Return a value in which what a variable holds already is anything, unless it is whole words there, too."""
    if REST not in value:
        return value
    return _IN_WORD.sub(ANYTHING, _SPACES.sub(" ", value))


def is_made_up(text: str) -> bool:
    """Whether the shell around a text makes it up in a way that nobody reads."""
    return ANYTHING in text or (REST in text and _QUOTING.search(text) is not None)


def behind_held(one: Assignment, *, is_filled: bool) -> Word | None:
    """
    Return what stands behind what the variable holds already, where its new value begins with that, else None.

    *is_filled*: it holds something for certain, so that no default counts.
    """
    at = 1 if one.value[:1] in ((Literal(""),), (Literal("", is_quoted=False),)) else 0
    first, behind = next(iter(one.value[at:]), None), one.value[at + 1 :]
    if not isinstance(first, Reference) or first.name != one.name:
        return None
    match first.operator.lstrip(":"):
        case "" | "?":
            return behind
        case "-" if is_filled:
            return behind
        case "+" if is_filled:
            inner = behind_held(msgspec.structs.replace(one, value=first.operand), is_filled=True)
            return None if inner is None else (*inner, *behind)
        case _:
            return None


def is_one_word(value: str) -> bool:
    """Whether a shell makes one word of a *value* that is not quoted: no blanks, and nothing that names files."""
    return _ONE_WORD.fullmatch(value) is not None
