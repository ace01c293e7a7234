"""The compound commands of a shell's text: loops, branches, tests and functions, by their reserved words."""

import re
from typing import Final

from policies.frameworks.expansion import ANYTHING, UnreadableError
from policies.frameworks.shell.compound_parts import CLOSING, OPENING, Commands, commands_of_dash
from policies.frameworks.shell.script import GIVEN, Shell, Word
from policies.frameworks.shell.words import BARE, WordReader

_END_OF_TEST = re.compile(r"(?<=\s)\]\](?=$|[\s;&|()<>])")
_COMMAND = re.compile(r"\$\(|`|\$\{\w+(?:\[[^]]*\])?:?=")
_SKIPPED: Final = frozenset({"if", "then", "elif", "else", "fi", "do", "done", "while", "until", "{", "}", "!"})
_COMPOUND: Final = frozenset({"for", "select", "case", "esac", "function", "[[", "coproc", "time"})


class CompoundReader(WordReader):
    """Reads the compound commands of one text."""

    def __init__(self, text: str, shell: Shell) -> None:
        """Read *text* for *shell*."""
        super().__init__(text, shell)
        self._now = Commands()

    def _reserved(self) -> bool:
        """Read a reserved word, if there is one, and what belongs to it."""
        match = None if self._now.begun or self._now.sets else BARE.match(self._text, self._at)
        word = match[0] if match else ""
        if word not in _SKIPPED and word not in _COMPOUND:
            return False
        self._at += len(word)
        self._now.nest += (word in OPENING) - (word in CLOSING)
        if word in _COMPOUND:
            self._compound(word)
        return True

    def _compound(self, word: str) -> None:
        match word:
            case "for" | "select":
                self._loop(word)
            case "case":
                self._case()
            case "esac":
                self._close("case")
            case "function":
                self._shell.defines(self._name())
                self._blank()
                if self._text.startswith("()", self._at):
                    self._at += 2
            case "[[":
                self._test()
            case "time":
                self._now.differs = True
            case _:
                raise UnreadableError

    def _close(self, opened: str) -> None:
        if not self._now.open or self._now.open.pop() != opened:
            raise UnreadableError

    def _test(self) -> None:
        end = _END_OF_TEST.search(self._text, self._at)
        if end is None or _COMMAND.search(self._text, self._at, end.start()):
            raise UnreadableError
        test = self._text[self._at : end.start()]
        self._now.differs = True
        self._shell.says(test)
        for one in commands_of_dash(test):
            self._nested(one)
        self._set_numbers(test)
        self._at = end.end()
        self._now.begun = True

    def _loop(self, word: str) -> None:
        name = self._name()
        values = [Word(GIVEN)]
        if self._takes("in"):
            values = []
            self._blank()
            while self._at < len(self._text) and self._text[self._at] not in ";\n#":
                values += self._words()
                self._blank()
        for one in values:
            self._shell.assign(name, one)
        if word == "select":
            self._shell.assign(name, Word(ANYTHING))

    def _case(self) -> None:
        self._blank()
        self._words()
        self._now.open.append("case")
        if not self._takes("in"):
            raise UnreadableError
        self._patterns()

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
