"""The words that `env -S` makes of a text, by rules of its own."""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import product
from math import prod
from typing import Final

from policies.frameworks.allowance import CHARACTERS_OF_STEP
from policies.frameworks.expansion import A_NAME, A_NUMBER, A_VALUE, ANYTHING, TOLD, UNREAD

_WORD: Final = re.compile(
    r"""(?>[^\s"'\\]++|\\.|"(?>[^"\\]++|\\.)*+"|'(?>[^'\\]++|\\.)*+'|["'\\])++""",
    re.DOTALL,
)
_QUOTING: Final = re.compile(r"""["'\\](?:(?<=\\)(.))?""", re.DOTALL)
_ESCAPES_OF_STEP: Final = 2
_STEPS_OF_WAYS: Final = 10
_REFERENCE: Final = re.compile(r"\$\{(\w+)\}", re.ASCII)
_NO_OPTION: Final = (A_VALUE, A_NAME, A_NUMBER, TOLD)  # a number below 0 is none either
_ANY_OPTION: Final = "-i"  # in place of one that is unread
_ENDS: Final = f"-{ANYTHING}"  # where the string ends early, and nobody says where the words behind it begin
_MOST_WAYS: Final = 16


def split_by_env(text: str, most: int, work: Callable[[int], None]) -> Iterator[str]:
    """Yield its words, at *most* so many, to where it ends; *work* takes the steps beside those of a word."""
    if not (_QUOTING.search(text) or "#" in text):
        yield from text.split(maxsplit=most)[:most]
        return
    for match in _WORD.finditer(text):
        work(sum(map(match[0].count, "\"'\\")) // _ESCAPES_OF_STEP)
        if match[0].startswith("#") or "\\c" in match[0]:
            yield _ENDS
            return
        yield _QUOTING.sub(r"\1", match[0])


def ways_of_word(word: str, values_of: Callable[[str], list[str]], work: Callable[[int], None]) -> list[str]:
    """List what a *word* may be, by the values of the variables that `env` puts into it; *work* takes the steps."""
    names = Counter(_REFERENCE.findall(word))
    if not names:
        return [word]
    values = [values_of(name) or [""] for name in names]
    ways = prod(map(len, values))
    if ways > _MOST_WAYS:
        return [_ANY_OPTION if word.startswith(("-", "$")) else word]
    longest = len(word) + sum(times * max(map(len, some)) for times, some in zip(names.values(), values, strict=True))
    work(_STEPS_OF_WAYS + ways * (names.total() + longest // CHARACTERS_OF_STEP))
    made = []
    for way in product(*values):
        chosen = dict(zip(names, way, strict=True))
        made.append(_REFERENCE.sub(lambda match, chosen=chosen: chosen[match[1]], word))  # type: ignore[misc]
    return [_ANY_OPTION if _may_be_option(one) else one for one in made]


def _may_be_option(word: str) -> bool:
    if UNREAD not in word:
        return False
    return word.startswith("-") or (word.startswith(UNREAD) and not word.startswith(_NO_OPTION))
