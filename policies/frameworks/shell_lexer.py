"""
The simple commands of a shell's text: POSIX, and what bash adds to it by and large.

The shell that reads for is told of each command, assignment and function in the order in which they stand.
"""

import re
from typing import Final

from policies.frameworks.expansion import ANYTHING, UnreadableError
from policies.frameworks.shell_commands import CLOSING, OPENING, Commands, HereDocument
from policies.frameworks.shell_values import GIVEN, SPLIT, Shell, Word
from policies.frameworks.shell_words import BARE, BLANK, WordReader

_LONGEST_TEXT: Final = 256 * 1024  # characters: each copy of more would take MiB
_COMMENT = re.compile(r"#[^\n]*")
_OPERATOR = re.compile(r"\n|;;&|;;|;&|;|&&|&(?!>)|\|\||\|&|\|")
# Dash joins names and operators at such an end of a line, and bash does not.
_JOINED = re.compile(r"\\\n(?:(?<=[^\s\\]\\\n)|(?<=\\{3}\n))(?=\S)")
_REDIRECTION = re.compile(r"[0-9]*(<<<|<<-|<<|<&|<>|<(?!\()|>>|>&|>\||>(?!\())|&>>?")
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*+)(\[[^][`(]{0,128}+\])?(\+?)=", re.ASCII)
_ELEMENT = re.compile(r"\w++\[", re.ASCII)
_DELIMITER = re.compile(r"[ \t]*([^\s;&|()<>$`]+)")
_END_OF_TEST = re.compile(r"(?<=\s)\]\](?=$|[\s;&|()<>])")
_COMMAND = re.compile(r"\$\(|`|\$\{\w+(?:\[[^]]*\])?:?=")
_COMPOUND = frozenset({"for", "select", "case", "esac", "function", "[[", "coproc"})
_SKIPPED = frozenset({"if", "then", "elif", "else", "fi", "do", "done", "while", "until", "{", "}", "!", "time"})


class Lexer(WordReader):
    """Reads one text to its end."""

    def __init__(self, text: str, shell: Shell) -> None:
        """Read *text* for *shell*."""
        super().__init__(text, shell)
        self._here: list[HereDocument] = []
        self._now = Commands()

    def read(self) -> str:
        """
        Give each command to the shell; returns what the last one writes, as far as that is known.

        Raises:
            UnreadableError: If the text cannot be read. What was given until then counts.
        """
        if len(self._text) > _LONGEST_TEXT or ("\\\n" in self._text and _JOINED.search(self._text)):
            raise UnreadableError
        self._shell.count_text(self._text)
        written = self._list(until="")
        if self._at < len(self._text) or self._here:
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
            self._now.written = self._shell.command(self._now.command)
        elif self._now.reads:  # $(< file)
            self._now.written = self._shell.command([Word("cat")])
        self._shell.settle(is_certain=self._now.is_certain(operator))
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
        elif not self._now.begun and (match := _ASSIGNMENT.match(text, self._at)):
            self._assign(match)
        elif not self._reserved():
            if not self._now.begun and _ELEMENT.match(text, self._at):  # with an index that is computed, or long
                raise UnreadableError
            self._now.command += self._words()
            self._now.begun = True

    def _reserved(self) -> bool:
        """Read a reserved word, if there is one, and what belongs to it."""
        match = None if self._now.begun or self._now.sets else BARE.match(self._text, self._at)
        word = match[0] if match else ""
        if word not in _SKIPPED and word not in _COMPOUND:
            return False
        self._at += len(word)
        self._now.nest += (word in OPENING) - (word in CLOSING)
        match word:
            case "for" | "select":
                self._loop(word)
            case "case":
                self._blank()
                self._words()
                self._now.open.append("case")
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
        if not self._now.open or self._now.open.pop() != opened:
            raise UnreadableError

    def _test(self) -> None:
        end = _END_OF_TEST.search(self._text, self._at)
        if end is None or _COMMAND.search(self._text, self._at, end.start()):
            raise UnreadableError
        self._set_numbers(self._text[self._at : end.start()])
        self._at = end.end()
        self._now.begun = True

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
        if not self._now.open or self._now.open[-1] != "case":
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
            self._end()
            self._close("(")
        elif self._now.begun:  # a function
            self._at += 1
            self._blank()
            if len(self._now.command) != 1 or not self._text.startswith(")", self._at):
                raise UnreadableError
            self._shell.defines(self._now.command[0].text)
            self._now.next("")
        elif self._text.startswith("((", self._at):
            raise UnreadableError
        else:
            self._now.open.append("(")
        self._at += 1

    def _assign(self, match: re.Match[str]) -> None:
        self._at = match.end()
        self._now.sets = True
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
        operator = match[1]
        if operator in ("<<", "<<-"):
            delimiter = _DELIMITER.match(self._text, self._at)
            if delimiter is None:
                raise UnreadableError
            self._at = delimiter.end()
            bare = re.sub(r"[\\'\"]", "", delimiter[1])
            self._here.append(HereDocument(bare, bare != delimiter[1], operator == "<<-", self._now.command))
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
            if (line.lstrip("\t") if here.strips_tabs else line) == here.delimiter:
                body = self._text[begin : self._at]
                self._at = end
                return body
            self._at = end + 1
        raise UnreadableError
