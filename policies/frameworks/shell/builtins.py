"""What the built-in commands of a shell, and its functions, do to what a text says later."""

import re
from typing import Final

from policies.frameworks.expansion import A_VALUE, ANYTHING, UNREAD, UnreadableError, Variables
from policies.frameworks.shell.plain_words import BETWEEN
from policies.frameworks.shell.script import Word, names_of_numbers
from policies.frameworks.shell.tools import tool, variables_set
from policies.frameworks.shell.variables import RUN_BY_SHELLS, ShellVariables
from policies.frameworks.shell_declarations import (
    DECLARING,
    declared,
    given,
    makes_read_only,
    sets_in_every_shell,
)

COMPUTED: Final = re.compile(r"[$`]")
_WITH_INDEXES: Final = frozenset({"[", "printf", "read", "test"})  # which evaluate those of the variables they name
_INDEXED: Final = re.compile(r"(?:-v)?[A-Za-z_]\w*+\[", re.ASCII)
_LONGEST_EXPRESSION: Final = 128  # characters


class BuiltIns(ShellVariables):
    """The variables, functions and kept texts of one text, and all that it says."""

    def __init__(self, variables: Variables) -> None:
        """Begin with the *variables* of the container."""
        super().__init__(variables)
        self._functions: set[str] = set()
        self._kept: list[str] = []  # texts that a shell may run later, if one runs what it is given elsewhere
        self._seen: list[str] = []

    def _find(self, start: str) -> None:
        """Take note of a word that begins with *start* and goes on unread."""
        raise NotImplementedError

    def _may_be_text(self, text: str) -> None:
        """Look at a word that its program may run."""
        raise NotImplementedError

    def says(self, text: str) -> None:
        """Take note of a text that may become a word, or not."""
        self._seen.append(text)

    def assign(self, name: str, value: Word, *, appends: bool = False) -> None:
        """Take note of a variable."""
        self._seen.append(value.text if name.endswith("[") else f"{BETWEEN} {name}={value.text} {BETWEEN}")
        super().assign(name, value, appends=appends)
        self._look_at_kept(value.text, is_run=name in RUN_BY_SHELLS)

    def defines(self, name: str) -> None:
        """Take note of a function: it may be called like a tool, or in place of one that is not there."""
        is_any = UNREAD in name or name.startswith("command_not_found_")
        self._functions.add("alias" if is_any else name)

    def _tool(self, program: str) -> str:
        return "" if program in self._functions or "alias" in self._functions else tool(program)

    def _may_set(self, words: list[Word]) -> None:
        """Take note of the variables of what may be a built-in command, or a function or an alias as well."""
        if words and UNREAD in words[0].text:
            for one in given(words[1:]):
                self.assign(one.name, one.value)
                self.may_not_be_set(one.name)
        if not words or not self._functions:
            return
        if words[0].text in DECLARING:
            self._declare(words, words)
        elif tool(words[0].text):
            self._reads_into([one.text for one in words])

    def _declare(self, words: list[Word], wrappers: list[Word]) -> None:
        is_set = sets_in_every_shell(words, wrappers) and "alias" not in self._functions
        if makes_read_only(words):
            self.keep()
        try:
            for one in declared(words):
                self.assign(one.name, one.value, appends=one.appends)
                if not is_set or one.appends:
                    self.may_not_be_set(one.name)
        except UnreadableError:
            self._find("")

    def _reads_into(self, words: list[str]) -> None:
        """Take note of what a tool keeps for later: the variables that it sets, and texts."""
        for one in variables_set(words):
            self.compute(one.partition("[")[0])
            self._seen.append(f"{BETWEEN} {one}={ANYTHING}")
            if UNREAD in one:
                self._find("")
        for one in words[1:]:
            self._look_at_kept(one)
            if words[0] == "let" or (words[0] in _WITH_INDEXES and _INDEXED.match(one)):
                self._calculate(one)

    def _calculate(self, text: str) -> None:
        """Take note of the variables that an arithmetic expression, or one in an index, sets to numbers."""
        if len(text) > _LONGEST_EXPRESSION:
            self._find("")
            return
        for name in names_of_numbers(text):
            self.assign(name, Word(A_VALUE))
            self.may_not_be_set(name)

    def _look_at_kept(self, text: str, *, is_run: bool = False) -> None:
        """Look at a text that nobody runs yet; *is_run*: some shell will."""
        if is_run or (0 <= text.find("[") < max(text.rfind("$("), text.rfind("`"))):  # arithmetic evaluates it
            self._may_be_text(text)
        elif "{" in text or COMPUTED.search(text):
            self._kept.append(text)
