"""What is left of a value by `${NAME#pattern}` and `${NAME%pattern}`, as far as it can be told."""

import re
from typing import Final

from policies.frameworks.expansion import A_NAME, A_NUMBER, A_VALUE, ANYTHING, UNREAD
from policies.frameworks.shell.rest import SPACE
from policies.frameworks.shell.several import PLAIN

DASHED: Final = "\0\6"  # a part of a value that is one word, so that it is one too, and may begin with a dash
_WITHOUT_SIGNS: Final = re.compile(f"{A_VALUE}|{A_NAME}|{A_NUMBER}")
_BEGINS = re.compile(r"[\w./]", re.ASCII)
_KEEPS_NUMBER = re.compile(r"%%?[/:@=,]")  # since none of these signs is in one
_CUT = re.compile(r"(##?|%%?)(\*?)([\w./:@,=-]+?)(\*?)", re.ASCII)  # a text, or all up to it, or all behind it


def part_of(values: list[str], patterns: list[str], *, is_number: bool) -> list[str]:
    """Return what *patterns* leave of *values*; one that is unread may be a *number* below 0."""
    return list(dict.fromkeys(_left(one, pattern, is_number=is_number) for one in values for pattern in patterns))


def _left(value: str, pattern: str, *, is_number: bool) -> str:
    if pattern[:1] in ("[", "@") or SPACE.search(value + pattern) or UNREAD in _WITHOUT_SIGNS.sub("", value + pattern):
        return ANYTHING
    match = _CUT.fullmatch(pattern)
    if match and UNREAD not in value:
        return _cut(value, *match.groups())
    if _KEEPS_NUMBER.match(pattern) and PLAIN.fullmatch(value):
        return A_VALUE
    if pattern == "##*-" or (
        pattern.startswith(("%", ",", "^", ":0:"))
        and (_BEGINS.match(value) or (value in (A_VALUE, A_NAME, A_NUMBER) and not is_number))
    ):
        return A_VALUE  # what is behind the last dash has none; and what a value begins with stays
    return DASHED


def _cut(value: str, operator: str, before: str, text: str, behind: str) -> str:
    """Cut *text* off, with all that is before or behind it if the pattern has a star there."""
    from_begin = operator.startswith("#")
    if (behind if from_begin else before) or text not in value:
        return value if text not in value else DASHED
    if not (before if from_begin else behind):
        return value.removeprefix(text) if from_begin else value.removesuffix(text)
    if from_begin:
        return (value.rpartition(text) if len(operator) > 1 else value.partition(text))[2]
    return (value.partition(text) if len(operator) > 1 else value.rpartition(text))[0]
