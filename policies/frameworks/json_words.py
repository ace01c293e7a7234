"""
JSON in a word or a variable, as the words and assignments that launchers make of it: `["--port", "80"]`, `{"A": "1"}`.

Argo writes a container's command so, Ray the variables of a job. What a program does with it nobody knows. In plain
text a value would go on to the next space.
"""

import json
import re
from collections.abc import Iterable
from typing import Any, Final

from policies.contract import SHARE_FRACTION
from policies.frameworks.expansion import TOLD, UNREAD
from policies.frameworks.shell.plain_words import BETWEEN

_BEGINS = re.compile(r"\s*[{\[]")
_MOST_VALUES: Final = 4096  # of one document
# Marks are no characters of JSON. Others stand for them meanwhile, which no document may have itself.
_STAND_INS: Final = {number: chr(0xE000 + number) for number in range(8)}
_MARKS: Final = {ord(one): chr(number) for number, one in _STAND_INS.items()}
_TOLD_LATER: Final = f"$({SHARE_FRACTION})"  # which is expanded where these words are a container's own


def json_words(text: str) -> str:
    """Write what is in a JSON document as plain text; *text* itself if it is none, or larger than any real one."""
    if not _BEGINS.match(text):
        return text
    marked = text.translate(_STAND_INS) if UNREAD in text else text
    try:
        # Numbers as they are written, and of equal names all members.
        written = _written(json.loads(marked, parse_int=str, parse_float=str, object_pairs_hook=tuple))
    except (ValueError, RecursionError):
        return text
    if written is None or _count(written, _STAND_INS.values()) != _count(text, map(chr, _STAND_INS)):
        return text
    return written.translate(_MARKS).replace(_TOLD_LATER, TOLD)


def _count(text: str, signs: Iterable[str]) -> int:
    return sum(map(text.count, signs))


def _written(document: Any) -> str | None:
    """
    Write the words of each list behind each other, and each member as NAME=value; None if they are too many.

    What is called value beside a name is that name's, as in a list of variables.
    """
    pieces: list[str] = []
    waiting, left = [document], _MOST_VALUES
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            if (written := json_words(value)) != value:
                pieces.append(written)
            continue
        left -= len(value)
        if left < 0:
            return None
        if isinstance(value, tuple):
            members = dict(value)
            if isinstance(name := members.get("name"), str) and "value" in members:
                pieces.append(f"{name}={_word(members['value'])}")
            pieces += [f"{key}={_word(one)}" for key, one in value]
            inner = [one for _, one in value]
        else:
            pieces.append(" ".join(map(_word, value)))
            inner = value
        waiting += filter(_has_more, inner)
    return f" {BETWEEN} ".join(pieces)


def _has_more(value: Any) -> bool:
    return isinstance(value, (tuple, list)) or (isinstance(value, str) and _BEGINS.match(value) is not None)


def _word(value: Any) -> str:
    return value if isinstance(value, str) else "" if isinstance(value, (tuple, list)) else str(value)
