"""
What a command line gets that cannot be read and may be a memory setting: of a container, its hooks, and their texts.

An unread word matters where it can be an option of a program that may be a framework: every program but those that are
known to be none, since wrappers and scripts cannot be listed. A word is read as everything that it may become.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Final

from policies.frameworks.allowance import UnreadableError
from policies.frameworks.expansion import A_VALUE, ANYTHING, UNREAD, either
from policies.frameworks.settings import FUNCTION_OF_BASH
from policies.frameworks.shell.builtins import keeps
from policies.frameworks.shell.command_words import Call, CommandWords
from policies.frameworks.shell.names import RUN_BY_SHELLS
from policies.frameworks.shell.pipes import program_read_by, reads, reads_alone
from policies.frameworks.shell.plain_words import BETWEEN
from policies.frameworks.shell.script import (
    EVERYWHERE,
    POSITIONAL,
    Command,
    Literal,
    Output,
    Script,
)
from policies.frameworks.shell_assignments import ShellAssignments
from policies.frameworks.taken_variables import names_taking, without_quotes

_SETS = re.compile(r"[=`;]|\$\(")  # in what a shell expands at its start, or before each command
_ROUNDS_OF_GROWTH: Final = 3  # after which a value that has one from before in it is taken for one that grows
_ROUNDS_APART: Final = 6  # in which what is set comes to where it is used in any real text, if it does not grow
_MOST_ROUNDS: Final = 24
_STEPS_OF_LINE: Final = 90  # of a container or a hook
_STEPS_OF_COMMAND: Final = 7  # beside those of its call
_STEPS_BESIDE: Final = 3  # for each thing that is no word of it
_SIGNS: Final = (UNREAD, *"$`#{(~")  # of texts and words that are looked at
_NAMES: Final = ("alias", "fish", "csh", "zsh", "mapfile", "readarray")


class UnreadWords(ShellAssignments):
    """Looks at the command lines of one container."""

    def look_at(self, words: Sequence[str], *, is_command: bool) -> None:
        """Look at what a container or a hook is started with; without a command the image's own program gets it."""
        together = " ".join(words)  # a setting may be made in other ways than by NAME=value
        is_looked_at = any(sign in together for sign in _SIGNS) or self._index.names_variable(together)
        unquoted = without_quotes(together)
        is_looked_at = is_looked_at or any(one in unquoted for one in _NAMES) or names_taking(unquoted)
        if not is_looked_at and not (self._index.in_text.search(together) and any(" " in one for one in words)):
            return
        if not is_command:
            self._settle(["", *words])
        if is_command or not words[0].startswith("-"):
            self._settle(words)

    def look_at_variable(self, name: str, text: str) -> None:
        """Look at a variable of the container that shells run as a text."""
        if name.startswith(FUNCTION_OF_BASH) or (name in RUN_BY_SHELLS and _SETS.search(text)):
            self._find("")  # every text of the container may do something else
        elif name in RUN_BY_SHELLS:
            self._settle(["eval", text], given=[ANYTHING])

    def plain_of(self, texts: Iterable[str]) -> Iterator[str]:
        """Yield the words of *texts*; where they are too long to be read, of several in one."""
        for is_known, some in groupby(texts, self._plain.__contains__):
            if is_known or not self._of_container.is_spent:
                yield from map(self.plain, some)
            else:  # no text sets a variable for another
                yield self.plain(f" {BETWEEN} ".join(some))

    def _settle(self, words: Sequence[str], given: Sequence[str] = ()) -> None:
        """Read a command line again and again, until nothing more is set in it, or nothing can be worse."""
        if self._of_container.is_spent:  # nothing more is read, whatever stands there
            self._find("")
        if self.start == "":
            return
        self._values.begin()
        self._is_fed = False
        if given:
            self._values.give(EVERYWHERE, given)
        line = CommandWords([[(one,)] for one in words])
        for number in range(_MOST_ROUNDS):
            self._values.widens_grown = number >= _ROUNDS_OF_GROWTH
            self._values.widens = number >= _ROUNDS_APART
            self._values.again()
            self._again()
            self._known = self._of_commands()
            try:
                self._of_container.work(_STEPS_OF_LINE)
                self._get(Call(line, list(words), line))
                self._run_kept()
                for name in self._values.calculate() if self._values.calculates else ():
                    self._say(f"{name}={A_VALUE}")
            except UnreadableError:
                self._find("")
            is_settled = not self._values.has_changed and self._known == self._of_commands()
            if self.start == "" or is_settled:
                return
        self._find("")

    def _script(self, script: Script) -> str:
        """Look at the commands of a script; returns a mark for what they write."""
        for name in script.functions:
            self._functions.add("alias" if UNREAD in name or name.startswith(("-", "command_not_found_")) else name)
        self._open_functions |= script.open_functions
        self._loose_functions |= script.functions if self._depth != self._runs else set()
        self._is_fed |= script.pipes or any(map(self._may_feed, script.commands))
        self._values.own(one.name for command in script.commands if keeps(command) for one in command.sets)
        self._begin()
        written = ""
        duplicates = any(one.duplicates for one in script.commands)  # what a pipe's first command writes, too
        tells_errors = any(one.tells_errors and not one.is_piped and _is_of_several(one) for one in script.commands)
        for command in script.commands:
            mark = self._command(command)
            if tells_errors or (command.tells_errors and not command.is_piped):
                mark = self._computed
            if mark and (not command.is_piped or command.redirects or duplicates):
                written = either(written, mark)
        return written

    def _may_feed(self, command: Command) -> bool:
        """Whether something that is no tool may read what a command gets from a file, a text or a pipe."""
        is_read_by_tool = reads_alone(command) and self._tool(program_read_by(command))
        return reads(command) and not (is_read_by_tool or self._reads_download(command))

    def _reads_download(self, command: Command) -> bool:
        return bool(command.downloader and self._tool(command.downloader))

    def _substituted(self, script: Script) -> str:
        """Look at commands whose variables stay with them; returns a mark for what they write."""
        outer, self._is_of_tools = self._is_of_tools, self._uses_tools(script)
        try:
            return self._script(script)
        finally:
            self._is_of_tools = outer

    def _uses_tools(self, script: Script) -> bool:
        """Whether a script starts nothing but tools, by words that are written out."""
        return all(
            self._tool(one.program) and not any(isinstance(part, Output) for word in one.words for part in word)
            for one in script.commands
            if one.words
        )

    def _command(self, command: Command) -> str:
        """Look at one command, with the words that the function in which it stands is given, and what those set."""
        outer = self._values.context
        if command.within:
            is_open = command.within in self._open_functions or "alias" in self._functions
            self._values.context = EVERYWHERE if is_open else f"{POSITIONAL}{command.within}"
        try:
            return self._words_of(command)
        finally:
            self._values.context = outer
            for name, text in self._values.made:
                self._say(f"{name}={text}", is_certain=False)
                if not self._values.is_filled(name):
                    self._set_list(name, text)
            self._values.made.clear()

    def _words_of(self, command: Command) -> str:
        beside = len(command.sets) + len(command.arrays) + len(command.reads) + len(command.beside)
        self._of_container.work(_STEPS_OF_COMMAND + _STEPS_BESIDE * beside)
        self._values.calculates |= command.calculates
        for word in command.beside:
            for text in self._values.texts(word):
                if command.redirects or command.is_test or self._depth != self._runs:  # else it is a pattern
                    self._say(text, is_certain=False)
        set_by_it, kept = self._sets_of(command) if command.sets or command.arrays else (set(), set())
        call = self._call(command)
        downloads = self._reads_download(command)
        self._is_fed |= reads(command) and not (downloads or self._tool_behind(call.words))
        if command.is_certain:  # not before: `export` gets all of its words before it sets any
            self._values.settle(set_by_it - kept)
        bodies: list[str] = []
        for here in command.reads:
            for body in self._values.texts(here.body):
                is_computed = not here.is_quoted and here.body != (Literal(body),)
                self._read(call.words.line, body, is_computed=is_computed)
                bodies.append(body)
        # Not before: what is read has commands of its own.
        self._bodies, self._feeds, self._downloads = bodies, command.feeds, downloads
        if call.words.places:
            return self._get(call)
        return self._computed if command.reads_file else ""

    def _get(self, call: Call) -> str:
        name = self._tool_behind(call.words)
        said = self._written_by(name, call.words) if name else self._without_text(call.words)
        said = self._without_config(said, call.words)
        for text, is_certain in said.together(self._index.takes_next, loses_first=self._values.loses_first):
            self._say(text, is_certain=is_certain and not (name or self._calls_own(call)))
        every = call.words.every()
        together = " ".join(every)
        self._has_unread |= ANYTHING in together
        self._undefines |= self._depth > 0 and self._may_undefine(every)
        if FUNCTION_OF_BASH in together and any(one.startswith(FUNCTION_OF_BASH) for one in every):
            self._find("")
        return self._judge(call)


def _is_of_several(command: Command) -> bool:
    """Whether the redirections of a command are those of a compound one, or of all that follow."""
    return not command.words or command.program == "exec"
