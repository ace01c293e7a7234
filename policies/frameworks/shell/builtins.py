"""Which variables the built-in commands of a shell set, by the words that they get."""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from policies.frameworks.allowance import UnreadableError
from policies.frameworks.expansion import ANYTHING, UNREAD
from policies.frameworks.shell.script import Assignment, Command, Literal, Word
from policies.frameworks.shell.signs import names_of_numbers

DECLARING: Final = frozenset(
    {"declare", "export", "float", "integer", "local", "nameref", "readonly", "typeset", "unset"}
)
CHANGING: Final = DECLARING | {"eval", "getopts", "mapfile", "printf", "read", "readarray", "set", "source", "trap"}
_NAMED_BY_TYPE: Final = frozenset({"float", "integer", "nameref"})  # of ksh
_KEEPING: Final = frozenset("-AFafgiprtvx")  # options with which a variable holds what it is set to, or a number
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_GIVEN = re.compile(r"([A-Za-z_]\w*+)(\[[^]]*+\])?(\+?)=(.*)", re.ASCII | re.DOTALL)
_NAMING: Final = {"compgen": "V", "set": "A", "wait": "p"}  # a variable by an option
_WITH_INDEXES: Final = frozenset(
    {"[", "declare", "local", "printf", "read", "test", "typeset", "unset", "wait"}
)  # which evaluate those of the variables they name
_INDEXED: Final = re.compile(r"(?:-v)?[A-Za-z_]\w*+\[", re.ASCII)
_LONGEST_EXPRESSION: Final = 128  # characters
_HOME = re.compile("~")
_WRITTEN = re.compile(r"([A-Za-z_]\w*+)(\+?)=", re.ASCII)


def written(word: Word) -> Assignment | None:
    """Return what a word of a command sets that is written NAME=value, whatever the value is."""
    first = word[0] if word else None
    if not isinstance(first, Literal) or "=" not in first.text:
        return None
    match = _WRITTEN.match(first.text)
    if match is None:
        return None
    value: Word = (Literal(first.text[match.end() :], first.is_quoted), *word[1:])
    if _HOME.match(first.text, match.end()) or ":~" in first.text:
        value = (Literal(ANYTHING),)
    return Assignment(match[1], value, match[2] == "+")


def given(words: Sequence[str]) -> list[tuple[str, str, bool]]:
    """List what words like NAME=value or NAME[0]=value set: the name, the value, and whether it is an element."""
    matches = [match for one in words if "=" in one and (match := _GIVEN.match(one))]
    return [(match[1], f"{ANYTHING if match[3] else ''}{match[4]}", bool(match[2])) for match in matches]


def joined_to(words: Sequence[str]) -> list[tuple[str, str]]:
    """List the variables that words like NAME+=value join something to, and that."""
    matches = [match for one in words if "+=" in one and (match := _GIVEN.match(one))]
    return [(match[1], match[4]) for match in matches if match[3]]


def emptied(words: Sequence[str]) -> list[str]:
    """
    List the variables that a command which declares some may leave empty: `local NAME`, `unset NAME`.

    Raises:
        UnreadableError: If a name is computed, or a variable will hold something else: -l writes it in small letters.
    """
    program, *operands = words
    if program in _NAMED_BY_TYPE:
        raise UnreadableError
    found = []
    keeping = _KEEPING | {"n"} if program == "export" else _KEEPING
    for one in operands:
        if _GIVEN.match(one):
            continue
        if UNREAD in one or (one.startswith("-") and not keeping.issuperset(one)):
            raise UnreadableError
        if program != "export" and not one.startswith("-"):
            found.append(one)
    return found


def computed(words: Sequence[str]) -> list[str]:
    """List the variables that a tool sets to what it reads or writes; a name may be an element's, or a mark."""
    program, *operands = words
    if program in ("read", "mapfile", "readarray"):
        return [one.partition("a")[2] if one.startswith("-") else one for one in operands]
    if program == "getopts":
        return [*operands[1:2], "OPTARG"]
    if program in _NAMING:
        return list(_behind_option(operands, _NAMING[program]))
    if program != "printf" or not operands or not operands[0].startswith("-v"):
        return []
    return [operands[0].removeprefix("-v")] if operands[0] != "-v" else operands[1:2]


def _behind_option(operands: Sequence[str], letter: str) -> Iterator[str]:
    for one, following in pairwise([*operands, ""]):
        if one.startswith(("-", "+")) and letter in one:
            yield one.partition(letter)[2] or following


def numbers_set(words: Sequence[str]) -> list[str]:
    """
    List the variables that arithmetic in the words of a tool may set: `let A=1`, `test -v 'x[A=1]'`.

    Raises:
        UnreadableError: If there is more of it than in any real text.
    """
    found: list[str] = []
    for one in words[1:]:
        if words[0] == "let" or (words[0] in _WITH_INDEXES and _INDEXED.match(one)):
            if len(one) > _LONGEST_EXPRESSION:
                raise UnreadableError
            found += names_of_numbers(one)
    return found


def keeps(command: Command) -> bool:
    """Whether what a command sets stays in its shell."""
    return not command.words or command.program in DECLARING


def is_name(word: str) -> bool:
    """Whether *word* may name a variable."""
    return _NAME.fullmatch(word) is not None


def positional(words: Sequence[str]) -> Sequence[str]:
    """Return what `set` makes of its words the positional ones, without its options."""
    at = 1
    while at < len(words) and words[at].startswith(("-", "+")) and words[at] not in ("-", "--"):
        at += 1 + words[at].count("o")  # which takes the name of an option
    return words[at + 1 :] if words[at : at + 1] in (["-"], ["--"]) else words[at:]
