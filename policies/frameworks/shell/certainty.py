"""
Which assignments of a text hold for certain, whatever else is run, so that a variable has no longer what it had before.

They stand in the outermost commands, behind such as cannot keep them from being done: programs, and what a shell has
built in that neither makes variables read-only nor lets a command mean something else.
"""

import re
from collections.abc import Iterable
from typing import Final

from policies.frameworks.shell.builtins import written
from policies.frameworks.shell.script import JOINING, Command, Literal, Number, Reference, Word

_ASIDE: Final = frozenset({"&", "|", "|&"})  # behind a command in a shell of its own
_OPTIONS = re.compile(r"[-+][abefhnuvxoCE]+|errexit|nounset|pipefail|xtrace")
# After which an assignment may not be done, or do something else.
_NAMES: Final = """
. alias array autoload builtin command compound declare disable emulate enable enum eval float functions hash integer
local nameref readonly set setopt shopt source trap typeset unsetopt zmodload
"""
_CHANGING: Final = frozenset(_NAMES.split())


class Certainty:
    """Follows the commands of one text, in the order in which they stand."""

    def __init__(self, *, is_outermost: bool) -> None:
        """Begin with a text; only in the *outermost* commands anything is certain."""
        self._holds = is_outermost
        self._before = ""  # the operator
        self._is_joined = False  # the next command to the one before, which may stand in an earlier line
        self._is_doubtful = False  # an expansion may fail, and bash goes on with the next line that stands in nothing
        self._listed: list[Command] = []  # what is certain, unless & ends the list in which it stands

    def give_up(self) -> None:
        """Take note of commands that are not understood so far."""
        self._holds = False

    def doubt(self) -> None:
        """Take note of something after which the rest of the line may not be run."""
        self._is_doubtful = True

    def follow(self, command: Command, operator: str, nest: int, functions: set[str], *, is_empty: bool) -> bool:
        """
        Say whether what *command* sets is certain; *operator* stands behind it, and it in *nest* compound ones.

        What a call of one of the text's *functions* does is not followed.
        """
        if not (self._holds or self._listed):
            return False
        if self._listed and operator in ("&", ";") and not nest:
            self._end_list(is_aside=operator == "&")
        if is_empty:
            if operator != "\n":
                self._before = operator
            elif not (nest or self._is_joined):
                self._is_doubtful = False
            return False
        is_end = operator == "\n" and not nest
        self._is_joined = operator in JOINING
        is_run = not nest and self._before not in JOINING and operator not in _ASIDE
        changes = _changes(command)
        cannot_fail = _cannot_fail_at_all(command)
        sets = cannot_fail and (is_run or changes) and _only_sets(command)
        self._holds = self._holds and (sets or not changes)
        is_call = bool(functions and command.words) and _text(command.words[0]) in functions  # it may fail
        is_certain = self._holds and sets and is_run and not (self._is_doubtful or is_call)
        self._is_doubtful = not is_end and (self._is_doubtful or is_call or not cannot_fail)
        if is_end:
            self._end_list()
        elif is_certain and operator in JOINING:
            self._listed.append(command)
        if not (sets and operator == "&&" and is_run):  # an assignment is true
            self._before = operator
        return is_certain

    def _end_list(self, *, is_aside: bool = False) -> None:
        """Take note of where a list of commands ends, and whether all of it is run in a shell of its own."""
        for one in self._listed:
            one.is_certain &= not is_aside
        self._listed.clear()


def _only_sets(command: Command) -> bool:
    """Whether a command that cannot fail sets variables, or options of the shell, and that in every shell."""
    if command.redirects or command.beside or any(one.appends for one in command.sets):
        return False
    if command.words:
        first, *others = command.words
        if first == (Literal("set", is_quoted=False),):
            return not command.sets and all(map(_is_option, others))  # bash undoes U=x set -e, dash does not
        return first == (Literal("export", is_quoted=False),) and command.sets == list(map(written, others))
    return True


def _changes(command: Command) -> bool:
    """Whether a command may keep a later assignment from being done."""
    if program := command.program:
        return program in _CHANGING
    return bool(command.words) and (not command.is_written or _text(command.words[0]) in _CHANGING)


def _text(word: Word) -> str:
    return "".join([one.text for one in word if isinstance(one, Literal)])


def _is_option(word: Word) -> bool:
    return len(word) == 1 and isinstance(word[0], Literal) and _OPTIONS.fullmatch(word[0].text) is not None


def _cannot_fail_at_all(command: Command) -> bool:
    if not (_cannot_fail(command.words) and _cannot_fail(command.beside)):
        return False
    if command.sets and not _cannot_fail(one.value for one in command.sets):
        return False
    return all(_cannot_fail(one.words) for one in command.arrays)


def _cannot_fail(words: Iterable[Word]) -> bool:
    for word in words:
        for part in word:
            if isinstance(part, Literal):
                continue
            if isinstance(part, Reference):
                if part.operator and not (part.operator.lstrip(":") in ("-", "+") and _cannot_fail([part.operand])):
                    return False
            elif isinstance(part, Number):  # what a substitution does stays in a shell of its own
                return False
    return True
