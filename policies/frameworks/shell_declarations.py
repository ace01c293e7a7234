"""The variables that built-in commands of a shell set, by their words."""

import re
from collections.abc import Sequence
from itertools import takewhile
from typing import Final

from policies.frameworks.allowance import UnreadableError
from policies.frameworks.expansion import A_VALUE, ANYTHING, UNREAD
from policies.frameworks.shell.builtins import computed, emptied, given, is_name, joined_to, numbers_set
from policies.frameworks.shell.command_words import CommandWords
from policies.frameworks.shell.script import ALL, EVERYWHERE, POSITIONAL
from policies.frameworks.shell_taking import ShellTaking

_STEPS_OF_NAMING: Final = 8  # variables by the words of a command, if it does
_STEPS_OF_NAME: Final = 6  # that a command may make a variable of
_NOT_EXPORTED = re.compile(r"\+[A-Za-z]*x[A-Za-z]*")
_UNEXPORTING = re.compile(r"-[a-z]*n[a-z]*")
_ARRAYS = re.compile(r"-[A-Za-z]*[aA][A-Za-z]*")
_INTEGERS = re.compile(r"-[A-Za-z]*i[A-Za-z]*")
_MAKING: Final = frozenset({"declare", "local", "typeset"})  # a variable of the function that they stand in


class ShellDeclarations(ShellTaking):
    """Takes note of what built-in commands set."""

    def _name(self, named: list[str]) -> None:
        """Take note of words like NAME=value, which a command may make variables of."""
        self._of_container.work(_STEPS_OF_NAMING + _STEPS_OF_NAME * sum("=" in one for one in named))
        for name, value, is_element in given(named):
            if is_element:
                self._values.tear(f"{name}{ALL}")
                self._values.give(f"{name}{ALL}", [value])
            else:
                self._values.assign(name, value)
                self._set_list(name, value)

    def _set_by(self, line: list[str], uncertain: list[str]) -> None:
        """Take note of the variables that a built-in command sets."""
        names = [one for one in computed(line) if one]
        if names or any(one.startswith("-") for one in uncertain):
            names += filter(is_name, uncertain if names else (*line[1:], *uncertain))
        for one in names:
            if UNREAD in one:
                self._find("")
            if one == "IFS":
                raise UnreadableError
            name = one.partition("[")[0]
            self._values.assign(name, ANYTHING)
            self._values.give(f"{name}{ALL}", [ANYTHING])
            self._say(f"{one}={ANYTHING}")
        for name in numbers_set([*line, *uncertain]):
            self._values.assign(name, A_VALUE)
            self._say(f"{name}={A_VALUE}")

    def _declare(self, program: str, named: list[str]) -> None:
        operands = named[named.index(program) + 1 :] if program in named else named
        self._name(operands)
        self._set_by([program, *operands], [])
        if program == "unset" or any(map(_NOT_EXPORTED.fullmatch, operands)):
            self.taking[program, *operands] = None
        try:
            for one in emptied([program, *operands]):
                self._values.assign(one, "")
                if "[" in one:
                    self._values.tear(f"{one.partition('[')[0]}{ALL}")
                self._keep(one)
        except UnreadableError:
            self._find("")

    def _declare_kind(self, words: CommandWords) -> None:
        """Take note of variables that become arrays, numbers, the shell's alone, or the function's own."""
        program, *operands = words.line[0], *words.every()[1:]
        names = [one.partition("=")[0].rstrip("+") for one in operands]
        if program == "export" and any(map(_UNEXPORTING.fullmatch, operands)):
            self.taking["export -n", *names] = None
        if any(map(_ARRAYS.fullmatch, operands)):
            self.taking["an array", *names] = None
        if any(map(_INTEGERS.fullmatch, operands)):
            self._values.calculates = True
            for one in filter(is_name, names):
                self._values.assign(one, A_VALUE)
        for one, more in joined_to(operands) if self._makes_own(words.line) else ():
            self._values.assign(one, "")  # with which it begins
            self._set_list(one, more)

    def _makes_own(self, line: Sequence[str]) -> bool:
        """Whether a command makes variables of its function, or may, if nobody knows in which it stands."""
        program, *operands = line
        options = takewhile(lambda one: one.startswith("-"), operands)
        if program not in _MAKING or any("g" in one for one in options):
            return False
        context = self._values.context
        is_within = bool(self._functions) if context == EVERYWHERE else "#" not in context and context != POSITIONAL
        return program == "local" or bool(self._open_functions) or is_within
