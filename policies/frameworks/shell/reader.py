"""
The simple commands of a shell's text: POSIX, and what bash adds to it by and large.

In which order they are run, how often and under which condition is not said. What shells read in different ways is not
read at all.
"""

import re
from typing import Final

from policies.frameworks.allowance import UnreadableError
from policies.frameworks.expansion import ANYTHING
from policies.frameworks.shell.arithmetic import JOINED
from policies.frameworks.shell.builtins import DECLARING, written
from policies.frameworks.shell.pipes import Pipes
from policies.frameworks.shell.reading import Counts
from policies.frameworks.shell.redirections import REDIRECTION, RedirectionReader
from policies.frameworks.shell.script import Assignment, Command, Elements, Literal, Script, Word
from policies.frameworks.shell.signs import begins_at_home, text_of_index, without_index
from policies.frameworks.shell.words import BLANK

_LONGEST_TEXT: Final = 256 * 1024  # characters: each copy of more would take MiB
_BLANKS = re.compile(r" +")
_SKIPPED = re.compile(rf"{BLANK.pattern}|#[^\n]*")
_SKIPPING: Final = " \t\\#"  # with which that begins
_OPERATOR = re.compile(r"\n|;;&|;;|;&|;|&&|&(?!>)|\|\||\|&|\|")
_ENDING: Final = "\n;&|"  # with which an operator begins
_ANYTHING = Literal(ANYTHING)
_REDIRECTING: Final = "<>&0123456789"
_SIGNS: Final = frozenset(f"{_SKIPPING}{_REDIRECTING}{_ENDING}()")  # with which begins what is no word, or may be none
_IN_INDEX: Final = r"[^][`()\s;&|<>'\"\\]{1,128}+"
_ASSIGNMENT = re.compile(
    rf'([A-Za-z_]\w*+)(\[(?:(?>{_IN_INDEX}|"(?:(?> |{_IN_INDEX}))*+")){{0,16}}+\])?(\+?)=', re.ASCII
)
_TOKENS_OF_COMMAND: Final = 3  # beside those of what is in it
_TOKENS_OF_ARRAY: Final = 3  # beside those of its elements
_ELEMENT = re.compile(r"\w++\[", re.ASCII)


def script_of(text: str, count: Counts, *, is_bash: bool = False) -> Script:
    """
    Read *text*, in which *count* counts the tokens; *is_bash*: no other shell reads it.

    Raises:
        UnreadableError: If it cannot be read, or shells read it in different ways.
    """
    return Reader(text, count, is_bash=is_bash).read()


class Reader(RedirectionReader):
    """Reads one text to its end."""

    def __init__(self, text: str, count: Counts, depth: int = 0, *, is_bash: bool = False) -> None:
        """Read *text*, in which *count* counts the tokens."""
        super().__init__(text, count, depth, is_bash=is_bash)
        self._must_end = False  # behind &>, where dash ends the command
        self._pipes = Pipes()

    def read(self) -> Script:
        """
        Read all of it.

        Raises:
            UnreadableError: If it cannot be read.
        """
        text = self._text
        joined = text.replace(JOINED, "")
        if "BASH_ALIASES" in joined or "BASH_CMDS" in joined:
            raise UnreadableError  # their elements are what commands are
        if len(text) > _LONGEST_TEXT or "\r" in text:
            raise UnreadableError
        self._count_characters()
        self._list()
        if self._at < len(text) or self._here:
            raise UnreadableError
        return self._script

    def _nested(self, text: str) -> Script:
        inner = Reader(text, self._count, self._depth + 1, is_bash=self._is_bash)
        inner._definitions.names = self._definitions.names
        return inner.read()

    def _inside(self) -> Script:
        self._at += 1
        self._depth += 1
        inner = Reader(self._text, self._count, self._depth, is_bash=self._is_bash)
        inner._at, inner._substitutions = self._at, self._substitutions
        inner._definitions.names = self._definitions.names
        inner._list()
        if inner._here or not self._text.startswith(")", inner._at):
            raise UnreadableError
        self._at = inner._at + 1
        self._depth -= 1
        return inner._script

    def _expanded(self, text: str) -> Word:
        inner = Reader(text, self._count, self._depth + 1, is_bash=self._is_bash)
        parts = inner.here_document()
        inner._command.within = self._stands_in()
        self._script.commands.append(inner._command)  # what its expansions set
        return parts

    def _list(self) -> None:
        """Read commands up to a parenthesis that closes more than was opened, or the end."""
        text, end = self._text, len(self._text)
        while self._at < end:
            sign = text[self._at]
            if sign == " " and (blanks := _BLANKS.match(text, self._at)):
                self._at = blanks.end()  # not counted, as what is between them is
                continue
            if sign == ")" and not self._open:
                break
            self._count()
            if sign in _SIGNS:
                self._token(sign)
            else:
                self._begins_word(sign)
        self._end()
        if self._open:
            raise UnreadableError

    def _end(self, operator: str = "") -> None:
        if operator == "\n" and self._defined:  # whose body is in the next line, of the same command
            return
        now, nest = self._command, self._nested_in()
        is_empty = now.is_empty
        self._script.pipes |= self._pipes.follow(now, operator, nest, is_empty=is_empty)
        now.is_call = self._definitions.follow(now, operator, nest, is_empty=is_empty)
        now.is_certain = self._certainty.follow(now, operator, nest, self._script.functions, is_empty=is_empty)
        if not is_empty:
            self._count(_TOKENS_OF_COMMAND)
            now.within = self._stands_in()
            now.feeds = now.is_piped or nest > 0 or self._depth > 0
            self._script.commands.append(now)
        if not is_empty or now.reads_file:  # of others that are empty nothing is left
            self._command = Command()
        self._begun = self._must_end = False

    def _token(self, sign: str) -> None:
        text = self._text
        if sign in _ENDING and (match := _OPERATOR.match(text, self._at)):
            self._end(operator := match[0])
            self._at = match.end()
            if operator == "\n" and self._here:
                self._here_documents()
            elif operator in (";;", ";&", ";;&"):
                self._patterns()
        elif sign in _SKIPPING and (match := _SKIPPED.match(text, self._at)):
            self._skip(match)
        elif sign in _REDIRECTING and (match := REDIRECTION.match(text, self._at)):
            self._redirect(match)
        elif sign in "()" and not self._defined:
            self._parenthesis(sign)
        else:
            self._begins_word(sign)

    def _begins_word(self, sign: str) -> None:
        if self._defined and sign != "{":
            self._has_no_braces()
        elif self._may_assign() and sign.isidentifier() and (match := _ASSIGNMENT.match(self._text, self._at)):
            self._assign(match)
        elif self._begun or not self._reserved():
            self._take_word()

    def _take_word(self) -> None:
        has_index = not self._begun and _ELEMENT.match(self._text, self._at)  # that is computed, or long
        is_behind_test = self._begun and not self._command.words
        if has_index or is_behind_test or self._must_end:
            raise UnreadableError
        if self._defined:
            self._has_no_braces()
        word = self._word()
        if self._begun and (assignment := written(word)):
            is_set = not assignment.appends or self._command.program in DECLARING  # `let i+=1` counts
            self._command.sets += [assignment] if is_set else []
        self._command.words.append(word)
        self._begun = True

    def _parenthesis(self, sign: str) -> None:
        if sign == ")":
            self._end()
            self._close("(")
        elif self._begun:  # a function
            self._at += 1
            self._blank()
            words = self._command.words
            name = words[0][0] if len(words) == 1 and len(words[0]) == 1 else None
            if not isinstance(name, Literal) or not self._text.startswith(")", self._at):
                raise UnreadableError
            self._defines(name.text)
            if name.is_quoted:  # it may be no name
                self._script.open_functions.add(name.text)
            self._command.words.clear()
            self._begun = False
        elif self._text.startswith("((", self._at):
            self._calculate()
            return
        else:
            self._open.append("(")
        self._at += 1

    def _may_assign(self) -> bool:
        """Whether an assignment may stand here, or an array in `declare -a NAME=(...)`."""
        words = self._command.words
        if not words:
            return not self._begun
        first = words[0][0]
        return isinstance(first, Literal) and first.text in DECLARING

    def _assign(self, match: re.Match[str]) -> None:
        if self._command.words and not self._text.startswith("(", match.end()):
            self._take_word()
            return
        self._at = match.end()
        name, index, appends = match.groups()
        if index:
            index = index.replace('"', "")
            self._command.beside.append(expression := self._expanded(index))
            self._check_names(expression)
        self._set_numbers(index or "")
        if not self._text.startswith("(", self._at):
            value = tuple(self._parts())
            value = (_ANYTHING,) if begins_at_home(value) or (index and appends) else value
            if index:
                self._command.arrays.append(Elements(name, [value], is_all=False, has_index=True))
            else:
                self._command.sets.append(Assignment(name, value, appends == "+"))
            return
        self._at += 1
        self._count(_TOKENS_OF_ARRAY)
        self._blank(lines=True)
        words: list[Word] = []
        while not self._text.startswith(")", self._at):
            words.append(self._word())
            self._blank(lines=True)
        self._at += 1
        elements = [without_index(one) for one in words]
        has_index = elements != words
        self._set_numbers("".join([text_of_index(one) for one in words]) if has_index else "")
        self._command.arrays.append(Elements(name, elements, is_all=not appends, has_index=has_index))
