"""What the built-in commands that declare variables set: `export NAME=value`, `local NAME`, `unset NAME`."""

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from policies.frameworks.expansion import UNREAD, UnreadableError
from policies.frameworks.shell.script import Word

DECLARING: Final = frozenset(
    {"declare", "export", "float", "integer", "local", "nameref", "readonly", "typeset", "unset"}
)
_NAMED_BY_TYPE: Final = frozenset({"float", "integer", "nameref"})  # of ksh
_KEEPING: Final = frozenset("-AFafgprtvx")  # options with which a variable holds what it is set to
_OPERAND = re.compile(r"([A-Za-z_]\w*+)(?:(\[)[^]]*+\])?(\+?)=(.*)", re.ASCII | re.DOTALL)

_GIVEN = re.compile(r"([A-Za-z_]\w*+)=(.*)", re.ASCII | re.DOTALL)


def sets_in_every_shell(words: Sequence[Word], wrappers: Sequence[Word]) -> bool:
    """Whether all shells set what a command of DECLARING says: others have no `declare`, and `-f` sets none."""
    is_plain = not wrappers and words[0].text in ("export", "unset")
    return is_plain and not any(one.text.startswith(("-", "+")) for one in words[1:])


def makes_read_only(words: Sequence[Word]) -> bool:
    """Whether a command of DECLARING keeps variables from being set again."""
    return words[0].text == "readonly" or any(one.text.startswith("-") and "r" in one.text for one in words[1:])


class Declared(NamedTuple):
    """A variable, and what it is set to."""

    name: str
    value: Word
    appends: bool = False


def given(words: Sequence[Word]) -> Iterator[Declared]:
    """Yield the variables that a command is given by words: `env NAME=value sh -c ...`."""
    for one in words:
        if match := _GIVEN.match(one.text):
            yield Declared(match[1], Word(match[2], one.splits))


def declared(words: Sequence[Word]) -> Iterator[Declared]:
    """
    Yield what a command of DECLARING sets; a variable without a value may be empty from here on.

    Raises:
        UnreadableError: If a name is computed, or a variable will hold something else: -l writes it in small letters.
    """
    program = words[0].text
    if program in _NAMED_BY_TYPE:
        raise UnreadableError
    for one in words[1:]:
        match = _OPERAND.match(one.text)
        if match:
            yield Declared(f"{match[1]}{match[2] or ''}", Word(match[4], one.splits), bool(match[3]))
        elif UNREAD in one.text or (one.text.startswith("-") and not _KEEPING.issuperset(one.text)):
            raise UnreadableError
        elif program != "export" and not one.text.startswith("-"):
            yield Declared(one.text, Word(""))
