"""
The simple commands of a shell's text: POSIX, and what bash adds to it by and large.

The shell that reads for is told of each command, assignment and function in the order in which they stand.
"""

import re
from typing import Final, NamedTuple

from policies.frameworks.expansion import ANYTHING, UnreadableError
from policies.frameworks.shell_expansions import GIVEN, Shell, Word
from policies.frameworks.shell_words import BARE, BLANK, WordReader

_LONGEST_TEXT: Final = 256 * 1024  # characters: each copy of more would take MiB
_COMMENT = re.compile(r"#[^\n]*")
_OPERATOR = re.compile(r"\n|;;&|;;|;&|;|&&|&(?!>)|\|\||\|&|\|")
# Dash joins names and operators at such an end of a line, and bash does not.
_JOINED = re.compile(r"(?:(?<=[^\s\\])|\\\\)(?:\\\\)*+\\\n\S")
_REDIRECTION = re.compile(r"[0-9]*(<<<|<<-|<<|<&|<>|<(?!\()|>>|>&|>\||>(?!\())|&>>?")
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)(\+?)=", re.ASCII)
_DELIMITER = re.compile(r"[ \t]*([^\s;&|()<>$`]+)")
_END_OF_TEST = re.compile(r"(?<=\s)\]\](?=$|[\s;&|()<>])")
_COMMAND = re.compile(r"\$\(|`")
_COMPOUND = frozenset({"for", "select", "case", "esac", "function", "[[", "coproc"})
_SKIPPED = frozenset({"if", "then", "elif", "else", "fi", "do", "done", "while", "until", "{", "}", "!", "time"})


class _Here(NamedTuple):
    delimiter: str
    is_quoted: bool
    strips_tabs: bool
    command: list[Word]


class Lexer(WordReader):
    """Reads one text to its end."""

    def __init__(self, text: str, shell: Shell) -> None:
        """Read *text* for *shell*."""
        super().__init__(text, shell)
        self._here: list[_Here] = []
        self._open: list[str] = []  # "(" and "case" that are not closed
        self._command: list[Word] = []
        self._begun = False  # whether a word of a command has been read
        self._written = ANYTHING

    def read(self) -> str:
        """
        Give each command to the shell; returns what the last one writes, as far as that is known.

        Raises:
            UnreadableError: If the text cannot be read. What was given until then counts.
        """
        if len(self._text) > _LONGEST_TEXT or ("\\\n" in self._text and _JOINED.search(self._text)):
            raise UnreadableError
        written = self._list(until="")
        if self._at < len(self._text) or self._here:
            raise UnreadableError
        return written

    def _nested(self, text: str) -> str:
        return Lexer(text, self._shell).read()

    def _list(self, until: str) -> str:
        """Read commands up to *until*, which is left to the caller."""
        outer = self._open, self._command, self._begun, self._written
        self._open, self._command, self._begun, self._written = [], [], False, ""
        while self._at < len(self._text) and not (self._text[self._at] == ")" and not self._open):
            self._shell.count()
            self._token()
        self._end()
        written = self._written
        if self._open or not self._text.startswith(until, self._at) or (not until and self._at < len(self._text)):
            raise UnreadableError
        self._open, self._command, self._begun, self._written = outer
        return written

    def _end(self) -> None:
        if self._command:
            self._written = self._shell.command(self._command)
        self._command, self._begun = [], False

    def _token(self) -> None:
        text = self._text
        if match := BLANK.match(text, self._at) or _COMMENT.match(text, self._at):
            self._at = match.end()
        elif match := _REDIRECTION.match(text, self._at):
            self._redirect(match)
        elif match := _OPERATOR.match(text, self._at):
            self._end()
            self._at = match.end()
            if match[0] == "\n":
                self._here_documents()
            elif match[0] in (";;", ";&", ";;&"):
                self._patterns()
        elif text[self._at] in "()":
            self._parenthesis(text[self._at])
        elif not self._begun and (match := _ASSIGNMENT.match(text, self._at)):
            self._assign(match)
        elif self._begun or not (match := BARE.match(text, self._at)) or not self._is_reserved(match[0]):
            self._command += self._words()
            self._begun = True

    def _is_reserved(self, word: str) -> bool:
        """Read a reserved word, if *word* is one, and what belongs to it."""
        if word not in _SKIPPED and word not in _COMPOUND:
            return False
        self._at += len(word)
        match word:
            case "for" | "select":
                self._loop(word)
            case "case":
                self._blank()
                self._words()
                self._open.append("case")
                if not self._takes("in"):
                    raise UnreadableError
                self._patterns()
            case "esac":
                self._close("case")
            case "function":
                self._shell.defines(self._name())
                self._blank()
                if self._text.startswith("()", self._at):
                    self._at += 2
            case "[[":
                self._test()
            case "coproc":
                raise UnreadableError
        return True

    def _close(self, opened: str) -> None:
        if not self._open or self._open.pop() != opened:
            raise UnreadableError

    def _test(self) -> None:
        end = _END_OF_TEST.search(self._text, self._at)
        if end is None or _COMMAND.search(self._text, self._at, end.start()):
            raise UnreadableError
        self._at = end.end()
        self._begun = True

    def _loop(self, word: str) -> None:
        name = self._name()
        values = [Word(GIVEN)]
        if self._takes("in"):
            values = []
            self._blank()
            while self._at < len(self._text) and self._text[self._at] not in ";\n":
                values += self._words()
                self._blank()
        for one in values:
            self._shell.assign(name, one)
        if word == "select":
            self._shell.assign(name, Word(ANYTHING))

    def _patterns(self) -> None:
        """Read the patterns of one branch of `case`, or `esac`."""
        if not self._open or self._open[-1] != "case":
            raise UnreadableError
        if self._takes("esac"):
            self._close("case")
            return
        if self._text.startswith("(", self._at):
            self._at += 1
        sign = "|"
        while sign == "|":
            self._blank()
            self._words()
            self._blank()
            sign = self._text[self._at : self._at + 1]
            self._at += 1
        if sign != ")":
            raise UnreadableError

    def _parenthesis(self, sign: str) -> None:
        if sign == ")":
            self._close("(")
            self._end()
        elif self._begun:  # a function
            self._at += 1
            self._blank()
            if len(self._command) != 1 or not self._text.startswith(")", self._at):
                raise UnreadableError
            self._shell.defines(self._command[0].text)
            self._command, self._begun = [], False
        elif self._text.startswith("((", self._at):
            raise UnreadableError
        else:
            self._open.append("(")
        self._at += 1

    def _assign(self, match: re.Match[str]) -> None:
        self._at = match.end()
        if not self._text.startswith("(", self._at):
            self._shell.assign(match[1], self._word(), appends=bool(match[2]))
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
        operator = match[1]
        if operator in ("<<", "<<-"):
            delimiter = _DELIMITER.match(self._text, self._at)
            if delimiter is None:
                raise UnreadableError
            self._at = delimiter.end()
            bare = re.sub(r"[\\'\"]", "", delimiter[1])
            self._here.append(_Here(bare, bare != delimiter[1], operator == "<<-", self._command))
            return
        self._blank()
        read = self._words()
        if operator == "<<<":
            self._shell.here(self._command, " ".join(one.text for one in read), is_computed=False)

    def _here_documents(self) -> None:
        waiting, self._here = self._here, []
        for one in waiting:
            body = self._body(one)
            if one.is_quoted:
                self._shell.here(one.command, body, is_computed=False)
            else:
                read = Lexer(body, self._shell).here_document()
                self._shell.here(one.command, read, is_computed=read != body)

    def _body(self, here: _Here) -> str:
        begin = self._at
        while self._at < len(self._text):
            self._shell.count()
            end = self._text.find("\n", self._at)
            end = len(self._text) if end < 0 else end
            line = self._text[self._at : end]
            if (line.lstrip("\t") if here.strips_tabs else line) == here.delimiter:
                body = self._text[begin : self._at]
                self._at = end
                return body
            self._at = end + 1
        raise UnreadableError
