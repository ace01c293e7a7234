"""Texts to which the words of a list were joined, as by `NAME=$*`, where a `shift` may have taken the first of them."""

import re
from collections.abc import Callable, Iterable
from typing import Final

from policies.frameworks.allowance import CHARACTERS_OF_STEP
from policies.frameworks.expansion import KINDS, UNREAD
from policies.frameworks.shell.script import Literal, Word
from policies.frameworks.shell.several import PLAIN

_MOST_GONE: Final = 7  # words of a text; with all of them it is half of what a word may become (MOST_VALUES)
_BEGIN_OF_WORD: Final = "'\"\\({["  # in a text within a text
_STEPS_OF_TEXT: Final = 2  # beside those of the characters in which it is looked for
_ANYWHERE = re.compile(rf"-[\w./:@%+,={UNREAD}{KINDS}-]*|{PLAIN.pattern}", re.ASCII)  # it means the same, evaluated


class Shortened:
    """Those of one command line."""

    __slots__ = ("_asked", "_changing", "_texts")

    def __init__(self) -> None:
        """Begin with none."""
        self._texts: set[str] = set()
        self._changing: set[str] = set()  # which may mean something else to a shell without their first words
        self._asked: set[str] = set()  # values that were none of them, so that it is news if one is

    def add(self, texts: Iterable[str], *, is_changing: bool) -> bool:
        """Take note of *texts*; returns whether one of them is news."""
        some = {one for one in map(_with_single_blanks, texts) if " " in one}
        is_news = not self._asked.isdisjoint(some - self._texts)
        self._texts |= some
        self._changing |= some if is_changing else set()
        return is_news

    def steps(self, text: str) -> int:
        """Count the steps in which they are looked for in a *text*."""
        return len(self._changing) * (_STEPS_OF_TEXT + len(text) // CHARACTERS_OF_STEP)

    def may_change(self, text: str) -> bool:
        """Whether a *text* may mean something else to a shell, since one of them is in it."""
        if not self._changing:
            return False
        one = _with_single_blanks(text)
        return any(some in one for some in self._changing)

    def with_later(self, values: list[str]) -> list[str]:
        """Return *values*, and beside each that is one of them what may be left of it."""
        texts = [_with_single_blanks(one) for one in values if " " in one]
        if not texts:
            return values
        self._asked.update(texts)
        later = [left for one in texts if one in self._texts for left in _without_first(one)]
        return list(dict.fromkeys([*values, *later]))


def stands_apart(word: Word, place: int, opens: Callable[[str], bool]) -> bool:
    """
    Whether the part at *place* makes words of its own in a text, and is no part and no value of an option there.

    *opens*: whether a word is an option that takes the next word.
    """
    if place == 0:
        return isinstance(behind := word[1], Literal) and behind.text[:1].isspace()
    text = ""
    while place and isinstance(before := word[place - 1], Literal):
        text, place = before.text + text, place - 1
    text = text.rstrip(_BEGIN_OF_WORD)
    last = next(reversed(text.split()), "").lstrip(_BEGIN_OF_WORD)
    if text[-1:].isspace():
        return not opens(last)
    return bool(last) and not last.startswith("-") and "=" not in last


def means_the_same(word: str) -> bool:
    """Whether a *word* is an option or a plain one, so that a shell that evaluates it does nothing else with it."""
    return _ANYWHERE.fullmatch(word) is not None


def _without_first(text: str) -> list[str]:
    """List what may be left of a *text* without its first words, of which few are taken away as a rule."""
    words = text.split(" ")
    return [" ".join(words[first:]) for first in range(1, min(len(words), _MOST_GONE + 1))]


def _with_single_blanks(text: str) -> str:
    return " ".join(text.split())
