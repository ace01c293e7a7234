"""Arithmetic in a shell's text, `$((expression))`, and which variables it sets to numbers."""

import re
from collections.abc import Iterable
from typing import Final

from policies.frameworks.allowance import UnreadableError
from policies.frameworks.expansion import UNREAD
from policies.frameworks.shell.reading import Counts
from policies.frameworks.shell.script import Assignment, Command, Literal, Number, Part, Script
from policies.frameworks.shell.signs import names_of_numbers, sets_computed

JOINED: Final = "\\\n"  # the end of a line that all shells leave out
DEEPEST: Final = 12  # substitutions and braces in one another
_TOKENS_OF_TEXT: Final = 6  # as many as one that stands in another takes, beside those in it
_CHARACTERS_OF_TOKEN: Final = 32
_IN_ARITHMETIC = re.compile(r"[^`$()'\"\\;\n{}]+")
_IN_LOOP = re.compile(r"[^`$()'\"\\{}]+")  # `for ((A=1; A<9; A++))`


class ArithmeticReader:
    """Reads the expressions of one text."""

    def __init__(self, text: str, count: Counts, depth: int = 0, *, is_bash: bool = False) -> None:
        """
        Read *text*, in which *count* counts the tokens.

        *depth* says in how many others it stands, and *is_bash* that no other shell reads it.
        """
        if depth > DEEPEST:
            raise UnreadableError
        self._text, self._count, self._depth = text, count, depth
        self._count(_TOKENS_OF_TEXT)
        self._is_bash = is_bash
        self._at = 0
        self._substitutions: dict[int, tuple[Script, int]] = {}  # of `$((`, and where they end, by where they begin
        self._command = Command()
        self._script = Script()

    def _count_characters(self) -> None:
        """Count those of a text that is read from its begin; it may be one token."""
        self._count(len(self._text) // _CHARACTERS_OF_TOKEN)

    def _expansion(self, *, is_quoted: bool = False) -> list[Part]:
        raise NotImplementedError

    def _calculates(self, begin: str, *, is_loop: bool = False) -> bool:
        """Read an expression in double parentheses, if there is one that begins with *begin*."""
        self._depth += 1
        if self._depth > DEEPEST:
            raise UnreadableError
        text, at, open_ = self._text, self._at, 0
        parts: list[Part] = []
        self._at += len(begin)
        while self._at < len(text):
            self._count()
            sign = text[self._at]
            if match := (_IN_LOOP if is_loop else _IN_ARITHMETIC).match(text, self._at):
                parts.append(Literal(match[0]))
                self._at = match.end()
            elif text.startswith(JOINED, self._at):
                self._at += len(JOINED)
            elif sign in "$`":
                parts += self._expansion(is_quoted=True)
            elif sign == "(" or (sign == ")" and open_):
                open_ += 1 if sign == "(" else -1
                self._at += 1
            elif text.startswith("))", self._at):
                self._at += 2
                self._depth -= 1
                self._command.beside.append(tuple(parts))
                self._check_names(parts)
                self._set_numbers("".join([one.text for one in parts if isinstance(one, Literal)]))
                return True
            else:
                break
        if text.startswith(f"){JOINED}", self._at):  # it may end there
            raise UnreadableError
        self._at = at
        self._depth -= 1
        return False

    def _check_names(self, expression: Iterable[Part]) -> None:
        """
        See that what an expression sets is named in it.

        Raises:
            UnreadableError: If a name is computed: `$n=95`, `${n}++`.
        """
        if sets_computed("".join([one.text if isinstance(one, Literal) else UNREAD for one in expression])):
            raise UnreadableError

    def _set_numbers(self, arithmetic: str) -> None:
        self._command.calculates |= arithmetic != ""
        for name in names_of_numbers(arithmetic):
            self._count()
            self._command.sets.append(Assignment(name, (Number(),)))
