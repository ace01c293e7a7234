"""
What a shell expands: `$NAME`, `${NAME:-x}`, `$(command)`, also in double quotes. What it would compute is a mark.

A text that is not of the grammar, or too long, is not read at all: the caller says what that means. Each token is
looked at once, and counted: there are at most so many of them.
"""

import re
from typing import Final

from policies.frameworks.allowance import UnreadableError
from policies.frameworks.expansion import A_VALUE, ANYTHING, UNREAD
from policies.frameworks.shell.arithmetic import DEEPEST, JOINED
from policies.frameworks.shell.quotes import QuoteReader
from policies.frameworks.shell.script import (
    ALL,
    POSITIONAL,
    ZERO,
    Elements,
    Literal,
    Number,
    Output,
    Part,
    Reference,
    Script,
    Word,
)
from policies.frameworks.shell.signs import is_index, is_odd, unescaped

_IN_HERE = re.compile(r"[^\\$`]+")
_PARAMETER = re.compile(r"\$(?:([A-Za-z_]\w*)|([0-9@*])|[#?$!-])", re.ASCII)
_BRACED = re.compile(r"\$\{(#?)(?:([A-Za-z_]\w*)|([0-9]+|[@*])|[#?$!-])(\[[@*]\])?(:?[-=+?]|(?=\}))?", re.ASCII)
_GOES_ON = re.compile(r"(?:\\\n)+\w")  # where dash joins it since 0.5.9, and did not before
_TOKENS_OF_BRACES: Final = 3  # beside those in them
_OF_SHELL: Final = Literal(A_VALUE)
DOLLAR: Final = Literal("$", is_quoted=False)  # which nothing follows that could be expanded


class ExpansionReader(QuoteReader):
    """Reads what a shell expands in one text."""

    def _inside(self) -> Script:
        """Read the commands up to a closing parenthesis."""
        raise NotImplementedError

    def _nested(self, text: str) -> Script:
        """Read another text that stands in this one."""
        raise NotImplementedError

    def here_document(self) -> tuple[Part, ...]:
        """Read all of the text as the body of a here-document whose delimiter is not quoted."""
        self._count_characters()
        return tuple(self._quoted(_IN_HERE, "", "$`\\"))

    def _expansion(self, *, is_quoted: bool = False) -> list[Part]:
        """Read what begins with a dollar or a backquote."""
        match = _PARAMETER.match(self._text, self._at)
        if match is None:
            return self._substitution(is_quoted=is_quoted)
        self._at = match.end()
        if self._text.startswith(UNREAD, self._at) or _GOES_ON.match(self._text, self._at):  # its name may go on
            raise UnreadableError
        if match[1]:
            return [Reference(match[1], is_quoted)]
        return self._given("", match[2], is_quoted=is_quoted) if match[2] else [_OF_SHELL]

    def _substitution(self, *, is_quoted: bool) -> list[Part]:
        """Read what is no parameter alone: commands, arithmetic, braces, and a dollar that is one."""
        text, at = self._text, self._at
        if text[at] == "`":
            return [Output(self._backquoted(is_quoted=is_quoted), is_quoted)]
        if text.startswith("$((", at):
            return self._calculated(is_quoted=is_quoted)
        if text.startswith("$(", at):
            self._at += 1
            return [Output(self._inside(), is_quoted)]
        if text.startswith("${", at):
            return self._braced(is_quoted=is_quoted)
        if self._is_bash and not is_quoted and text.startswith("$'", at):
            return [Literal(self._escapes())]
        is_of_bash = not is_quoted and text.startswith(("$'", '$"'), at)
        if is_of_bash or text.startswith(("$[", f"${JOINED}", f"${UNREAD}"), at):
            raise UnreadableError  # of these bash makes what dash does not, or old ones
        self._at += 1
        return [Literal("$") if is_quoted else DOLLAR]

    def _calculated(self, *, is_quoted: bool) -> list[Part]:
        """Read arithmetic, or commands of which the first stands in parentheses, once: others may stand in them."""
        begin = self._at
        if begin not in self._substitutions:
            if self._calculates("$(("):
                return [Number()]
            self._at += 1
            self._substitutions[begin] = self._inside(), self._at
        script, self._at = self._substitutions[begin]
        return [Output(script, is_quoted), Number()]  # which it may be in more than one line, say

    def _backquoted(self, *, is_quoted: bool) -> Script:
        self._at += 1
        text = self._up_to("`")
        if "\\" in text:
            text = re.sub(r'\\([$`\\"])' if is_quoted else r"\\([$`\\])", r"\1", text)
        return self._nested(text)

    def _escapes(self) -> str:
        self._at += 2
        quoted = self._up_to("'")
        if "'" in quoted:
            raise UnreadableError
        return unescaped(quoted)

    def _up_to(self, sign: str) -> str:
        """Read up to *sign* where no backslash stands before it, and that as well."""
        begin = self._at
        while (end := self._text.find(sign, self._at)) >= 0:
            self._count()
            self._at = end + 1
            at = end
            while at > begin and self._text[at - 1] == "\\":
                at -= 1
            if (end - at) % 2 == 0:
                return self._text[begin:end]
        raise UnreadableError

    def _braced(self, *, is_quoted: bool) -> list[Part]:
        match = _BRACED.match(self._text, self._at)
        if match is None:
            raise UnreadableError
        self._count(_TOKENS_OF_BRACES)
        self._at = match.end()
        length, name, position, array, operator = match.groups()
        self._depth += 1
        if self._depth > DEEPEST:
            raise UnreadableError
        begin = self._at
        operand = self._up_to_brace(is_quoted=is_quoted, is_pattern=not operator)
        written = self._text[begin : self._at - 1]
        self._depth -= 1
        if operator is None:
            self._evaluate(operand, written)
        if operator is None and is_odd(written):
            self._command.arrays += [Elements(name, [(Literal(ANYTHING),)], is_all=False)] if name else []
            if not name or written[-2:-1] == "@":
                raise UnreadableError  # `${A@P}` runs what A says
            return [Literal(ANYTHING, is_quoted)]
        if length or (not name and not position):
            self._command.beside.append(operand)
            return [_OF_SHELL if length or operator == "" else Literal(ANYTHING, is_quoted)]
        if name and operator is None and is_index(operand):
            self._command.beside.append(operand)
            return [Reference(f"{name}{ALL}", is_quoted)]
        if (array or not name) and operator is None:  # some of the elements, or parts of them
            self._command.beside.append(operand)
            return [Literal(ANYTHING, is_quoted)]
        if array or not name:
            sign = array[1:-1] if array else position
            return self._given(f"{name}{ALL}" if name else "", sign, operator, operand, is_quoted=is_quoted)
        return [Reference(name, is_quoted, "%" if operator is None else operator, operand)]

    def _evaluate(self, operand: Word, written: str) -> None:
        """
        Take note of what an index or an offset sets, by its parts and as it is *written*.

        Raises:
            UnreadableError: If the name or the operator before it may go on in it, at the end of a line.
        """
        if JOINED in written:
            raise UnreadableError
        if written.startswith(("[", ":")):
            self._check_names(operand)
        self._set_numbers("".join(one.text for one in operand if isinstance(one, Literal)))

    def _given(self, name: str, sign: str, operator: str = "", operand: Word = (), *, is_quoted: bool) -> list[Part]:
        """Refer to elements of an array, or to the positional words by ""; joined ones are not read."""
        self._command.passes |= not name
        if sign == "*" and is_quoted:
            return [Literal(ANYTHING)]
        name = name or (ZERO if sign == ZERO else POSITIONAL)
        place = int(sign) if sign.isdigit() else 0
        return [Reference(name, is_quoted, operator, operand, is_all=sign in ("@", "*"), place=place)]
