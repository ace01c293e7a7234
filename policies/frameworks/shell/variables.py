"""
What the variables of a shell's text hold, as far as the text and its container say.

A variable that may hold one of several values is a mark. What stands in a branch, a function or a subshell may not be
run at all, so what is set there may as well be what it was before.
"""

import re
from collections.abc import Sequence
from typing import Final

from policies.frameworks.expansion import A_VALUE, ANYTHING, UNREAD, UnreadableError, Variables
from policies.frameworks.shell.options import loses_environment
from policies.frameworks.shell.plain_words import OF_EVERY_SHELL, SET_BY_SHELLS
from policies.frameworks.shell.script import DASHED, GIVEN, SEVERAL, WHITE_SPACE, Word
from policies.frameworks.shell_declarations import given

RUN_BY_SHELLS: Final = frozenset({"BASH_ENV", "ENV", "PROMPT_COMMAND", "PS0", "PS1", "PS4"})  # as texts
FUNCTION_OF_BASH: Final = "BASH_FUNC_"
_LONGEST_VALUE: Final = 4096  # characters of a variable that a text sets
_MOST_MADE: Final = 64 * 1024  # characters that variables make in one text
_MOST_TIMES: Final = 3  # that a text is read, as a part of others or once more, by and large
_SEPARATORS: Final = re.compile(r"[ \t\n,:;|/=]+")
_SIGNS: Final = re.compile(r"[$`\\'\"{~]")
_PREFIX_OF_BASH: Final = "BASH_"
_OF_BASH: Final = frozenset({"BASH_SUBSHELL", "BASH_VERSION"})  # which say nothing of the text


class ShellVariables:
    """The variables of one text, in the order in which it sets them."""

    def __init__(self, variables: Variables) -> None:
        """Begin with those of the container."""
        self._of_container = variables
        self._values: dict[str, str] = {}
        self._uncertain: dict[str, str] = {}  # what else they may hold, since the text may not set them at all
        self._fresh: set[str] = set()  # which the last command sets
        self._made = 0
        self._unread = 0  # characters that may still be read
        self._are_kept = False  # some may be, whatever is assigned to them: they are read-only
        self._are_lost = False  # a text may have set any of them
        self.hides_signs = False  # a mark may stand for what a shell that reads it once more makes something else of
        self.depth = 0
        self.loses_environment = False  # a command may have been started without the container's variables
        self.separators = WHITE_SPACE  # where a shell splits a value that is not quoted, by IFS

    def begin(self, text: str) -> None:
        """Begin with a *text* that is no part of others: forget what they have set."""
        self._unread += _MOST_TIMES * len(text)
        self._values.clear()
        self._uncertain.clear()
        self._are_kept = self._are_lost = False

    def count_text(self, text: str) -> None:
        """
        Count a text that is read.

        Raises:
            UnreadableError: If texts stand in one another, and are read once more, too often.
        """
        self._unread -= len(text)
        if self._unread < 0:
            raise UnreadableError

    def value(self, name: str) -> str:
        """
        Return what a shell makes of $NAME; `name[` is an array.

        Raises:
            UnreadableError: If variables make more than in any real text.
        """
        if self._are_lost and name != "IFS":
            return ANYTHING
        known = name if name in self._values else name.rstrip("[")
        value = self._values.get(known)
        if value is None:
            return " " if name == "IFS" else self._written(self._before(known))
        return self._written(self._one_of(self._uncertain[known], value) if known in self._uncertain else value)

    def _before(self, name: str) -> str:
        """Return what a variable holds that the text does not set."""
        value = self._of_container.of(name)
        if value is None and name == "OPTARG":
            return SEVERAL
        if value is None and _is_set_by_shells(name):
            return ANYTHING
        if value is None or (value == ANYTHING and name in OF_EVERY_SHELL):
            return A_VALUE
        return self._one_of("", value) if self.loses_environment else value

    def _written(self, value: str) -> str:
        self._made += len(value)
        if self._made > _MOST_MADE:
            raise UnreadableError
        return value

    def assign(self, name: str, value: Word, *, appends: bool = False) -> None:
        """
        Take note of a value; `name[` is an element of an array.

        Raises:
            UnreadableError: If it is too long, or words would be split where options begin.
        """
        text = value.text
        if name == "IFS":
            self._separate_at(text)
        if appends:
            text = self.value(name) + text
        if len(text) > _LONGEST_VALUE:
            raise UnreadableError
        before = self._values.get(name)
        if before is None:
            self._uncertain[name] = self._of_container.of(name) or ""
        is_unread = value.splits or ANYTHING in text or ANYTHING in (before or "")
        if is_unread or self._has_part_of_given(text) or _is_set_by_shells(name.rstrip("[")):
            text = ANYTHING
        elif name.endswith("["):
            text = GIVEN
        elif before is not None and before != text:
            text = self._one_of(before, text)
        self._values[name] = text
        self._fresh.add(name)
        if name.endswith("["):
            self._values[name.rstrip("[")] = ANYTHING  # the first of its elements, wherever it stands

    def compute(self, name: str) -> None:
        """Take note of a variable, or an array, that a command sets to what it reads."""
        if name == "IFS":
            raise UnreadableError
        self._values[name] = self._values[f"{name}["] = ANYTHING

    def hand_on(self, wrappers: Sequence[Word]) -> None:
        """Take note of the variables that a command alone is given by its *wrappers*, and of those that it loses."""
        self.loses_environment |= loses_environment([one.text for one in wrappers])
        for one in given(wrappers):
            if len(one.value.text) > _LONGEST_VALUE:
                self.compute(one.name)
            elif one.name != "IFS":  # which a shell sets at its start
                self.assign(one.name, one.value)
                self._fresh.discard(one.name)

    def settle(self, *, is_certain: bool) -> None:
        """Say of what the last command has set whether it is set, whatever else is run."""
        if is_certain and self.depth == 1 and not self._are_kept:  # in the outermost text
            for name in self._fresh:
                self._uncertain.pop(name, None)
        self._fresh.clear()

    def keep(self) -> None:
        """Take note that a command makes variables read-only: bash goes on behind an assignment to one."""
        self._are_kept = True

    def lose(self) -> None:
        """Take note of a text that is not read and sets variables of this shell."""
        self._are_lost = True

    def may_not_be_set(self, name: str) -> None:
        """Take note that not every shell sets the variable *name*, as it was said last."""
        self._fresh.discard(name)

    def _separate_at(self, text: str) -> None:
        if text and not WHITE_SPACE.fullmatch(text):
            if not _SEPARATORS.fullmatch(text):
                raise UnreadableError
            self.separators = _SEPARATORS

    def _has_part_of_given(self, text: str) -> bool:
        """Whether what stands elsewhere becomes a part of another word here, which stands nowhere."""
        return GIVEN in text and any(GIVEN in one and one != GIVEN for one in self.separators.split(text))

    def _one_of(self, one: str, other: str) -> str:
        """Stand for one of two values; each of them is looked at where it is set."""
        if one == other:
            return one
        both = one + other
        self.hides_signs |= _SIGNS.search(both) is not None
        if ANYTHING in both or (DASHED in both and self.separators.search(both)):
            return ANYTHING
        if DASHED in both:
            return DASHED
        if self.separators.search(both):
            return SEVERAL
        may_begin_option = any(text.replace(A_VALUE, "").startswith("-") for text in (one, other))  # which may be empty
        return GIVEN if may_begin_option or UNREAD in both.replace(A_VALUE, "") else A_VALUE


def _is_set_by_shells(name: str) -> bool:
    return name in SET_BY_SHELLS or (name.startswith(_PREFIX_OF_BASH) and name not in _OF_BASH)
