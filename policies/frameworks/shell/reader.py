"""
The simple commands of a shell's text: POSIX, and what bash adds to it by and large.

The shell that reads for is told of each command, assignment and function in the order in which they stand.
"""

import re
from typing import Final

from policies.frameworks.expansion import UnreadableError
from policies.frameworks.shell.compound_parts import MAY_FAIL, Commands, HereDocument, here_document
from policies.frameworks.shell.compounds import CompoundReader
from policies.frameworks.shell.script import SPLIT, Shell, Word
from policies.frameworks.shell.words import BLANK
from policies.frameworks.shell_declarations import DECLARING

_LONGEST_TEXT: Final = 256 * 1024  # characters: each copy of more would take MiB
_COMMENT = re.compile(r"#[^\n]*")
_OPERATOR = re.compile(r"\n|;;&|;;|;&|;|&&|&(?!>)|\|\||\|&|\|")
# Dash joins names and operators at such an end of a line, and bash does not.
_JOINED = re.compile(r"\\\n(?:(?<=[^\s\\]\\\n)|(?<=\\{3}\n))(?=\S)")
_REDIRECTION = re.compile(r"[0-9]*(<<<|<<-|<<|<&|<>|<(?!\()|>>|>&|>\||>(?!\())|&>>?")
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*+)(\[[^][`(]{0,128}+\])?(\+?)=", re.ASCII)
_ELEMENT = re.compile(r"\w++\[", re.ASCII)


class Lexer(CompoundReader):
    """Reads one text to its end."""

    def __init__(self, text: str, shell: Shell) -> None:
        """Read *text* for *shell*."""
        super().__init__(text, shell)
        self._here: list[HereDocument] = []
        self._certain_to = 0  # of the text, where nothing before may have failed

    def read(self) -> str:
        """
        Give each command to the shell; returns what the last one writes, as far as that is known.

        Raises:
            UnreadableError: If the text cannot be read. What was given until then counts.
        """
        text = self._text
        if len(text) > _LONGEST_TEXT or "\r" in text or ("\\\n" in text and _JOINED.search(text)):
            raise UnreadableError
        failing = MAY_FAIL.search(text)
        self._certain_to = failing.start() if failing else len(text)
        self._shell.count_text(text)
        written = self._list(until="")
        if self._at < len(text) or self._here:
            raise UnreadableError
        return written

    def _nested(self, text: str) -> str:
        return Lexer(text, self._shell).read()

    def _list(self, until: str) -> str:
        """Read commands up to *until*, which is left to the caller."""
        outer, self._now = self._now, Commands()
        while self._at < len(self._text) and not (self._text[self._at] == ")" and not self._now.open):
            self._shell.count()
            self._token()
        self._end()
        written = self._now.written
        if self._now.open or not self._text.startswith(until, self._at) or (not until and self._at < len(self._text)):
            raise UnreadableError
        self._now = outer
        return written

    def _end(self, operator: str = "") -> None:
        if self._now.command:
            self._now.writes(self._shell.command(self._now.command), operator)
        elif self._now.reads:  # $(< file)
            self._now.writes(self._shell.command([Word("cat")]), operator)
        self._shell.settle(is_certain=self._at <= self._certain_to and self._now.is_certain(operator))
        self._now.next(operator)

    def _token(self) -> None:
        text = self._text
        if match := BLANK.match(text, self._at) or _COMMENT.match(text, self._at):
            self._at = match.end()
        elif match := _REDIRECTION.match(text, self._at):
            self._redirect(match)
        elif match := _OPERATOR.match(text, self._at):
            self._end(match[0])
            self._at = match.end()
            if match[0] == "\n":
                self._here_documents()
            elif match[0] in (";;", ";&", ";;&"):
                self._patterns()
        elif text[self._at] in "()":
            self._parenthesis(text[self._at])
        elif (match := _ASSIGNMENT.match(text, self._at)) and self._may_assign(match):
            self._assign(match)
        elif not self._reserved():
            self._take_words()

    def _take_words(self) -> None:
        has_index = not self._now.begun and _ELEMENT.match(self._text, self._at)  # that is computed, or long
        if has_index or self._now.splits:
            raise UnreadableError
        self._now.command += self._words()
        self._now.begun = True

    def _parenthesis(self, sign: str) -> None:
        if sign == ")":
            self._end()
            self._close("(")
        elif self._now.begun:  # a function
            self._at += 1
            self._blank()
            if len(self._now.command) != 1 or not self._text.startswith(")", self._at):
                raise UnreadableError
            self._shell.defines(self._now.command[0].text)
            self._now.next("&&")
        elif self._text.startswith("((", self._at):
            raise UnreadableError
        else:
            self._now.open.append("(")
        self._at += 1

    def _may_assign(self, match: re.Match[str]) -> bool:
        """Whether an assignment stands here, or an array in `declare -a NAME=(...)`."""
        if not self._now.begun:
            return True
        declares = bool(self._now.command) and self._now.command[0].text in DECLARING
        return declares and self._text.startswith("(", match.end())

    def _assign(self, match: re.Match[str]) -> None:
        self._at = match.end()
        self._now.sets = True
        self._now.differs |= bool(match[2] or match[3])
        self._set_numbers(match[2] or "")
        if not self._text.startswith("(", self._at):
            value = self._word()
            text = value.text.replace(SPLIT, " ")
            self._shell.assign(match[1] + ("[" if match[2] else ""), Word(text, value.splits), appends=bool(match[3]))
            return
        self._at += 1
        self._blank(lines=True)
        while not self._text.startswith(")", self._at):
            for one in self._words():
                self._shell.assign(f"{match[1]}[", one)
            self._blank(lines=True)
        self._at += 1

    def _redirect(self, match: re.Match[str]) -> None:
        self._at = match.end()
        self._now.redirects = True
        self._now.splits |= match[0].startswith("&")
        operator = match[1]
        if operator in ("<<", "<<-"):
            here, self._at = here_document(self._text, self._at, operator, self._now.command)
            self._here.append(here)
            return
        self._blank()
        read = self._words()
        self._now.reads |= operator == "<"
        if operator == "<<<":
            self._shell.here(self._now.command, " ".join(one.text for one in read), is_computed=False)

    def _here_documents(self) -> None:
        waiting, self._here = self._here, []
        for one in waiting:
            body = self._body(one)
            if one.is_quoted:
                self._shell.here(one.command, body, is_computed=False)
            else:
                read = Lexer(body, self._shell).here_document()
                self._shell.here(one.command, read, is_computed=read != body)

    def _body(self, here: HereDocument) -> str:
        begin = self._at
        while self._at < len(self._text):
            self._shell.count()
            end = self._text.find("\n", self._at)
            end = len(self._text) if end < 0 else end
            line = self._text[self._at : end]
            if here.ends_at(line):
                body = self._text[begin : self._at]
                self._at = end
                return body
            self._at = end + 1
        raise UnreadableError
