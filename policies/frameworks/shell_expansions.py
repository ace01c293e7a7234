"""
What a shell expands: `$NAME`, `${NAME:-x}`, `$(command)`, also in double quotes. What it would compute is a mark.

A text that is not of the grammar, or too long, is not read at all: the caller says what that means. Each token is
looked at once, and counted: there are at most so many of them.
"""

import re
from collections.abc import Callable
from typing import Final, NamedTuple, Protocol

from policies.frameworks.expansion import A_VALUE, ANYTHING, UnreadableError

DASHED: Final = "\0\6"  # a part of a value that is one word, so that it is one too, and may begin with a dash
GIVEN: Final = "\0\4"  # a word that stands elsewhere in the text or on the command line: $1, or a variable set twice
_DEEPEST: Final = 12  # substitutions, quotes and texts in one another


class Word(NamedTuple):
    """One word that a command gets."""

    text: str
    splits: bool = False  # it may become several words, since something unread in it is not quoted


class Shell(Protocol):
    """What the text is read for."""

    depth: int  # how many texts, substitutions and braces stand in one another

    def says(self, text: str) -> None:
        """Take note of a text that may become a word, or not."""

    count: Callable[[], None]  # counts a token; raises UnreadableError if there were too many

    def value(self, name: str) -> str:
        """Return the value of a variable, or a mark."""

    def assign(self, name: str, value: Word, *, appends: bool = False) -> None:
        """Take note of a variable; `name[` is an array."""

    def defines(self, name: str) -> None:
        """Take note of a function."""

    def command(self, words: list[Word]) -> str:
        """Look at a command; returns what it writes, as far as that is known."""

    def here(self, command: list[Word], body: str, *, is_computed: bool) -> None:
        """Look at what a command reads."""


_IN_QUOTES = re.compile(r'[^"\\$`]+')
_IN_HERE = re.compile(r"[^\\$`]+")
_IN_BRACES = re.compile(r"[^\\'\"$`}]+")
_PARAMETER = re.compile(r"\$(?:([A-Za-z_]\w*)|([0-9@*])|[#?$!-])", re.ASCII)
_BRACED = re.compile(r"\$\{(#?)(?:([A-Za-z_]\w*)|([0-9]+|[@*])|[#?$!-])(\[[@*]\])?(:?[-=+?]|(?=\}))?", re.ASCII)
_ARITHMETIC = re.compile(r"\$\(\((?:[^`$()]++|\$[A-Za-z_{]|\([^`$()]*+\)){0,64}+\)\)", re.ASCII)
_SPACES = re.compile(r"[ \t\n]+")


class ExpansionReader:
    """Reads what a shell expands in one text."""

    def __init__(self, text: str, shell: Shell) -> None:
        """Read *text* for *shell*."""
        self._text, self._shell = text, shell
        self._at = 0

    def _deeper(self) -> None:
        self._shell.depth += 1
        if self._shell.depth > _DEEPEST:
            raise UnreadableError

    def _list(self, until: str) -> str:
        raise NotImplementedError

    def _nested(self, text: str) -> str:
        raise NotImplementedError

    def here_document(self) -> str:
        """Read all of the text as the body of a here-document whose delimiter is not quoted."""
        return "".join(self._quoted(_IN_HERE, "", "$`\\\n"))

    def _in_double_quotes(self) -> list[str]:
        self._at += 1
        parts = self._quoted(_IN_QUOTES, '"', '$`"\\\n')
        self._at += 1
        return parts

    def _quoted(self, plain: re.Pattern[str], end: str, escaped: str) -> list[str]:
        """Read up to *end*, where a backslash counts only before one of *escaped*."""
        parts: list[str] = []
        text = self._text
        while self._at < len(text):
            self._shell.count()
            sign = text[self._at]
            if match := plain.match(text, self._at):
                parts.append(match[0])
                self._at = match.end()
            elif sign == end:
                return parts
            elif sign == "\\":
                following = text[self._at + 1 : self._at + 2]
                kept = following if following and following in escaped else f"\\{following}"
                parts.append("" if following == "\n" else kept)
                self._at += 2
            else:
                parts.append(self._expansion(quoted=True))
        if end:
            raise UnreadableError
        return parts

    def _expansion(self, *, quoted: bool = False) -> str:
        """Read what begins with a dollar or a backquote."""
        text, at = self._text, self._at
        if text[at] == "`":
            return self._backquoted(quoted=quoted)
        if text.startswith("$(", at):
            if match := _ARITHMETIC.match(text, at):
                self._at = match.end()
                return A_VALUE
            self._at += 1
            return self._substituted()
        if text.startswith("${", at):
            return self._braced(quoted=quoted)
        match = _PARAMETER.match(text, at)
        if match is None:
            if text.startswith('$"', at) and not quoted:
                raise UnreadableError
            self._at += 1
            return "$"
        self._at = match.end()
        if match[1]:
            return self._shell.value(match[1])
        return GIVEN if match[2] else A_VALUE

    def _substituted(self) -> str:
        """Read the commands in parentheses."""
        self._at += 1
        self._deeper()
        written = self._list(until=")")
        self._shell.depth -= 1
        self._at += 1
        return written

    def _backquoted(self, *, quoted: bool) -> str:
        self._at += 1
        text = self._up_to("`")
        self._deeper()
        written = self._nested(re.sub(r'\\([$`\\"])' if quoted else r"\\([$`\\])", r"\1", text))
        self._shell.depth -= 1
        return written

    def _up_to(self, sign: str) -> str:
        """Read up to *sign* where no backslash stands before it, and that as well."""
        begin = self._at
        while (end := self._text.find(sign, self._at)) >= 0:
            self._shell.count()
            self._at = end + 1
            at = end
            while at > begin and self._text[at - 1] == "\\":
                at -= 1
            if (end - at) % 2 == 0:
                return self._text[begin:end]
        raise UnreadableError

    def _braced(self, *, quoted: bool) -> str:
        match = _BRACED.match(self._text, self._at)
        if match is None:
            raise UnreadableError
        self._at = match.end()
        length, name, position, array, operator = match.groups()
        self._deeper()
        rest = self._up_to_brace(quoted=quoted)
        self._shell.depth -= 1
        self._shell.says(rest)
        if length:
            return A_VALUE
        if operator is None:
            return self._part_of(self._shell.value(name), rest) if name and rest else ANYTHING
        if array:
            return self._shell.value(f"{name}[")
        value = self._shell.value(name) if name else GIVEN if position else A_VALUE
        match operator.lstrip(":"):
            case "" | "?":
                return value
            case "+":
                if "\0" in value:
                    return self._either("", rest)
                return rest if value or operator[0] != ":" else ""
            case _:
                result = rest if value == "" and operator[0] == ":" else value
                result = self._either(value, rest) if "\0" in value else result
                if operator[-1] == "=" and name:
                    self._shell.assign(name, Word(result))
                return result

    @staticmethod
    def _part_of(value: str, pattern: str) -> str:
        if ANYTHING in value + pattern or GIVEN in value or _SPACES.search(value + pattern) or pattern[0] in "[@":
            return ANYTHING
        return A_VALUE if pattern == "##*-" else DASHED  # what is behind the last dash has none

    @staticmethod
    def _either(one: str, other: str) -> str:
        """Stand for one of two values."""
        if ANYTHING in one or ANYTHING in other or other.startswith("-") or _SPACES.search(other):
            return ANYTHING
        return one or A_VALUE

    def _up_to_brace(self, *, quoted: bool) -> str:
        parts: list[str] = []
        text = self._text
        while self._at < len(text):
            self._shell.count()
            sign = text[self._at]
            if match := _IN_BRACES.match(text, self._at):
                parts.append(match[0])
                self._at = match.end()
            elif sign == "}":
                self._at += 1
                return "".join(parts)
            elif sign == "\\":
                parts.append(text[self._at + 1 : self._at + 2])
                self._at += 2
            elif sign == '"':
                parts += self._in_double_quotes()
            elif sign == "'" and not quoted:
                end = text.find("'", self._at + 1)
                if end < 0:
                    raise UnreadableError
                parts.append(text[self._at + 1 : end])
                self._at = end + 1
            elif sign == "'":
                parts.append(sign)
                self._at += 1
            else:
                parts.append(self._expansion(quoted=True))
        raise UnreadableError
