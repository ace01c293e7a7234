"""
What a shell expands: `$NAME`, `${NAME:-x}`, `$(command)`, also in double quotes. What it would compute is a mark.

A text that is not of the grammar, or too long, is not read at all: the caller says what that means. Each token is
looked at once, and counted: there are at most so many of them.
"""

import re
from typing import Final

from policies.frameworks.expansion import A_VALUE, ANYTHING, UNREAD, UnreadableError
from policies.frameworks.shell.script import DASHED, GIVEN, SEVERAL, SPLIT, Shell, Word, names_of_numbers

_DEEPEST: Final = 12  # substitutions, quotes and texts in one another

_IN_QUOTES = re.compile(r'[^"\\$`]+')
_IN_HERE = re.compile(r"[^\\$`]+")
_IN_BRACES = re.compile(r"[^\\'\"$`}]+")
_QUOTED = re.compile(r"'[^'\"\\$`}]*+'")  # which ends the same whether a shell sees quotes in double quotes or not
_PARAMETER = re.compile(r"\$(?:([A-Za-z_]\w*)|([0-9@*])|[#?$!-])", re.ASCII)
_BRACED = re.compile(r"\$\{(#?)(?:([A-Za-z_]\w*)|([0-9]+|[@*])|[#?$!-])(\[[@*]\])?(:?[-=+?]|(?=\}))?", re.ASCII)
# What it assigns to the variables of the text is a number, but for ${NAME:=x}.
_ARITHMETIC = re.compile(
    r"\$\(\((?:[^`$()]++|\$[A-Za-z_]|\$\{(?!\w+(?:\[[^]]*\])?:?=)|\([^`$()]*+\)){0,64}+\)\)", re.ASCII
)


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
                self._set_numbers(match[0])
                return A_VALUE
            self._at += 1
            return self._substituted()
        if text.startswith("${", at):
            return self._braced(quoted=quoted)
        match = _PARAMETER.match(text, at)
        if match is None:
            if text.startswith(("$[", f"${UNREAD}"), at) or (text.startswith('$"', at) and not quoted):
                raise UnreadableError
            self._at += 1
            return "$"
        self._at = match.end()
        if match[1]:
            if text.startswith(UNREAD, self._at):  # its name may go on
                raise UnreadableError
            return self._shell.value(match[1])
        return self._given(match[2], quoted=quoted) if match[2] else A_VALUE

    @staticmethod
    def _given(position: str, *, quoted: bool) -> str:
        """Stand for words of the command line; what is before and behind them joins the first and the last one."""
        if quoted:
            return f"{GIVEN}{SPLIT}{GIVEN}" if position == "@" else GIVEN
        return SEVERAL

    def _set_numbers(self, arithmetic: str) -> None:
        for name in names_of_numbers(arithmetic):
            self._shell.count()
            self._shell.assign(name, Word(A_VALUE))

    def _at_home(self, text: str) -> str:
        """Put the value of HOME into what begins a word and is not quoted."""
        if text[:1] != "~" or text[1:2] not in ("", "/", ":"):
            return text
        home = self._shell.value("HOME")
        return text if home == A_VALUE else home + text[1:]

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
        if "\\" in text:
            text = re.sub(r'\\([$`\\"])' if quoted else r"\\([$`\\])", r"\1", text)
        self._deeper()
        written = self._nested(text)
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
        if operator is None:
            self._set_numbers(rest)
        if length:
            return A_VALUE
        if operator is None:
            return self._part_of(self._shell.value(name), rest) if name and rest else ANYTHING
        value = self._of_parameter(name, position, array, quoted=quoted)
        match operator.lstrip(":"):
            case "" | "?":
                return value
            case "+":
                if UNREAD in value:
                    return self._either("", rest)
                return rest if value or operator[0] != ":" else ""
            case _:
                result = rest if value == "" and operator[0] == ":" else value
                result = self._either(value, rest) if UNREAD in value else result
                if operator[-1] == "=" and name:
                    self._shell.assign(name, Word(result))
                return result

    def _of_parameter(self, name: str | None, position: str | None, array: str | None, *, quoted: bool) -> str:
        if not name:
            return self._given(position, quoted=quoted) if position else A_VALUE
        if not array:
            return self._shell.value(name)
        value = self._shell.value(f"{name}[")
        between = SPLIT if quoted and "@" in array else " "
        return f"{value}{between}{value}" if UNREAD in value else value

    def _part_of(self, value: str, pattern: str) -> str:
        both = value + pattern
        if ANYTHING in both or GIVEN in value or self._shell.separators.search(both) or pattern[0] in "[@":
            return ANYTHING
        return A_VALUE if pattern == "##*-" else DASHED  # what is behind the last dash has none

    def _either(self, one: str, other: str) -> str:
        """Stand for one of two values."""
        if ANYTHING in one or UNREAD in other or other.startswith("-") or self._shell.separators.search(other):
            return ANYTHING
        return one or A_VALUE

    def _up_to_brace(self, *, quoted: bool) -> str:
        parts: list[str] = []
        text = self._text
        while self._at < len(text):
            self._shell.count()
            sign = text[self._at]
            if match := _IN_BRACES.match(text, self._at):
                parts.append(match[0] if parts or quoted else self._at_home(match[0]))
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
            elif sign == "'" and (match := _QUOTED.match(text, self._at)):
                parts.append(match[0])
                self._at = match.end()
            elif sign == "'" or (not quoted and text.startswith("$'", self._at)):
                raise UnreadableError
            else:
                parts.append(self._expansion(quoted=True))
        raise UnreadableError
