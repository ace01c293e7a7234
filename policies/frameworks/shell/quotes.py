"""What a shell reads in quotes, and in the braces of `${NAME:-x}`. What dash and bash read in different ways is not."""

import re
from typing import Final

from policies.frameworks.allowance import UnreadableError
from policies.frameworks.expansion import ANYTHING
from policies.frameworks.shell.arithmetic import JOINED, ArithmeticReader
from policies.frameworks.shell.script import Literal, Part, Reference

_IN_QUOTES = re.compile(r'[^"\\$`]+')
_IN_BRACES = re.compile(r"[^\\'\"$`}]+")
_QUOTED = re.compile(r"'[^'\"\\$`}]*+'")  # which ends the same whether a shell sees quotes in double quotes or not
# In braces, a backslash in double quotes that dash and bash read in different ways.
_ODD_IN_BRACES = re.compile(r"\\}")
_ODD_IN_QUOTED_BRACES = re.compile(r'\\[^$`"\\\n]')
_TOKENS_OF_QUOTES: Final = 4  # beside those of what is in them: the word has to be put together of several parts
_APART: Final = frozenset(" \t\n=/:,.-+?")  # which are of no name
_ENDS: Final = _APART | {"}"}


class QuoteReader(ArithmeticReader):
    """Reads quotes and braces in one text."""

    def _in_double_quotes(self, odd: re.Pattern[str] | None = None) -> list[Part]:
        self._at += 1
        self._count(_TOKENS_OF_QUOTES)
        parts = self._quoted(_IN_QUOTES, '"', '$`"\\', odd)
        self._at += 1
        return parts or [Literal("")]

    def _quoted(self, plain: re.Pattern[str], end: str, escaped: str, odd: re.Pattern[str] | None = None) -> list[Part]:
        """Read up to *end*, where a backslash counts only before one of *escaped*; an *odd* one is not read."""
        parts: list[Part] = []
        text = self._text
        while self._at < len(text):
            self._count()
            sign = text[self._at]
            if match := plain.match(text, self._at):
                parts.append(Literal(match[0]))
                self._at = match.end()
            elif sign == end:
                return parts
            elif text.startswith(JOINED, self._at):
                self._at += len(JOINED)
            elif sign == "\\":
                if odd is not None and odd.match(text, self._at):
                    raise UnreadableError
                parts.append(Literal(self._escaped(escaped)))
            else:
                parts += self._expansion(is_quoted=True)
        if end:
            raise UnreadableError
        return parts

    def _escaped(self, escaped: str) -> str:
        """Read a backslash and the sign behind it, before which it is dropped if that is one of *escaped*."""
        following = self._text[self._at + 1 : self._at + 2]
        self._at += 2
        return following if following and following in escaped else f"\\{following}"

    def _up_to_brace(self, *, is_quoted: bool, is_pattern: bool) -> tuple[Part, ...]:
        parts: list[Part] = []
        text = self._text
        while self._at < len(text):
            self._count()
            sign = text[self._at]
            if match := _IN_BRACES.match(text, self._at):
                parts += [Literal(match[0], is_quoted)] if parts or is_quoted else self._at_home(match[0])
                self._at = match.end()
            elif sign == "}":
                self._at += 1
                return tuple(parts)
            elif text.startswith(JOINED, self._at):
                self._at += len(JOINED)
            elif sign == "\\":
                escaped = self._escaped('$`"\\}')
                parts.append(Literal(escaped if is_quoted and not is_pattern else escaped[-1:], is_quoted))
            elif sign == '"':
                parts += self._in_quotes_again(is_quoted=is_quoted, is_pattern=is_pattern)
            elif sign == "'":
                parts.append(self._in_single_quotes(is_quoted=is_quoted))
            else:
                parts += self._expansion(is_quoted=is_quoted)
        raise UnreadableError

    def _in_single_quotes(self, *, is_quoted: bool) -> Literal:
        """Read single quotes in braces, which are text in double quotes."""
        text, at = self._text, self._at
        if is_quoted:
            match = _QUOTED.match(text, at)
            if match is None:
                raise UnreadableError
            self._at = match.end()
            return Literal(match[0])
        end = text.find("'", at + 1)
        if end < 0:
            raise UnreadableError
        self._at = end + 1
        return Literal(text[at + 1 : end], is_quoted)

    def _in_quotes_again(self, *, is_quoted: bool, is_pattern: bool) -> list[Part]:
        """Read double quotes in braces; where those are in such quotes, bash joins names to what is behind a quote."""
        if is_pattern:
            return self._in_double_quotes()
        if not is_quoted:
            return self._in_double_quotes(_ODD_IN_BRACES)
        text, begin = self._text, self._at
        if text.endswith(JOINED, 0, begin):
            raise UnreadableError
        parts = self._in_double_quotes(_ODD_IN_QUOTED_BRACES)
        if text[begin - 1] not in _APART or text[self._at - 2] == "$" or text[self._at : self._at + 1] not in _ENDS:
            raise UnreadableError
        return parts

    def _at_home(self, text: str) -> list[Part]:
        """Read HOME at the beginning of a word that is not quoted."""
        if not text:
            return []
        if text[:2] in ("~+", "~-"):
            return [Literal(ANYTHING, is_quoted=False)]
        if text[:1] != "~" or text[1:2] not in ("", "/", ":"):
            return [Literal(text, is_quoted=False)]
        return [Reference("HOME", is_quoted=True), Literal(text[1:], is_quoted=False)]
