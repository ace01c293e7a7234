"""
What the variables of a shell's text may hold: what the container says, and all that anything in the text gives them.

Where it stands does not matter: a branch may not be run, a variable may be read-only, and shells differ in what they
set. Only what a text sets before it does anything else is certain.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Final

from policies.frameworks.allowance import CHARACTERS_OF_COPY, CHARACTERS_OF_STEP, UnreadableError
from policies.frameworks.expansion import A_NAME, A_VALUE, ANYTHING, KINDS, TOLD, UNREAD, Variables
from policies.frameworks.shell.names import OF_SHELLS, is_set_by_shells, may_be_handed_in
from policies.frameworks.shell.plain_words import OF_EVERY_SHELL
from policies.frameworks.shell.rest import REST, SPACE, without_joined_rest
from policies.frameworks.shell.script import ALL, POSITIONAL, ZERO
from policies.frameworks.shell.several import MOST_VALUES, PLAIN, few, one_of
from policies.frameworks.shell.signs import names_of_numbers
from policies.frameworks.shell.word_groups import WordGroups

_HOST: Final = "HOSTNAME"  # the pod's name, or its `hostname`, in every container
_STEPS_OF_LOOK: Final = 3  # at what a variable holds
_TEXTS_OF_STEP: Final = 4  # beside that of their characters
_MARKS = re.compile(f"{UNREAD}[{KINDS}]?")


class ShellVariables(WordGroups):
    """The variables of one command line, and of the texts in it."""

    def __init__(self, variables: Variables, opens: Callable[[str], bool]) -> None:
        """Begin with the *variables* of the container; *opens* says of a word whether the next one is its value."""
        self._of_container = variables
        self._opens = opens
        self.begin()

    def begin(self) -> None:
        """Forget what a command line has set."""
        super().begin()
        self._held: dict[str, list[str]] = {}
        self._kept: set[str] = set()  # which are set to what the container says
        self._own: set[str] = set()  # which a text sets, or has a default for: empty if nobody in the pod sets them
        self._plain: set[str] = set()  # which hold more values than are told apart
        self._now = ""  # which is being set
        self._is_certain = False  # and so is that it is set
        self._is_outermost = False  # by a text that is run once, in no other one
        self.certain: set[str] = set()  # which the text that is read has set before it does anything else
        self.context = POSITIONAL  # whose words $1 is one of: a text's, a function's, or anybody's
        self.settles = True  # whether the shell that reads a text is a new one, so that nothing is read-only
        self._is_lost = False  # a text may have set any of them
        self._loses_environment = False  # a command may have been started without the container's variables
        self.again()

    def again(self) -> None:
        """Begin to read it once more, with what it has set."""
        self._set: set[str] = set()
        self._asked: set[str] = set()  # for which names, so that what they hold later is news
        self.calculates = False  # something was arithmetic
        self.has_changed = False

    def lose(self) -> None:
        """Take note of a text that is not read and sets variables."""
        self.has_changed |= not self._is_lost and bool(self._asked)
        self._is_lost = True

    def lose_environment(self) -> None:
        """Take note of a command that may be started without the container's variables."""
        self.has_changed |= not self._loses_environment and bool(self._asked)
        self._loses_environment = True

    def of(self, name: str) -> list[str]:
        """Return what the variable *name* may hold."""
        elements = [one for group in self._groups_of(f"{name}{ALL}") for one in group]
        return self._few(dict.fromkeys([*self._scalar(name), *elements]))

    def _scalar(self, name: str) -> list[str]:
        is_first = self._is_first(name)
        if is_first or name == self._now:  # what it is set to then is no news
            self._asked.add("")
            return self._before(name) if is_first else [REST]
        self._asked.add(name)
        held = self._held.get(name, [])
        is_set = held or f"{name}{ALL}" in self._groups
        before = () if is_set and name in (ZERO, *self.certain - self._kept) else self._before(name)
        lost = [ANYTHING] if self._is_lost and name != "IFS" else []
        values = self._few(self._looked_at(dict.fromkeys([*lost, *before, *held])))
        return [ANYTHING] if any(REST in one for one in values) and any(map(self._leaves_open, values)) else values

    def _leaves_open(self, value: str) -> bool:
        """Whether a word of *value* is an option, and what it is set to stands where the value goes on."""
        return any(self._opens(one) for before in value.split(REST) for one in before.rsplit(None, 1)[-1:])

    def _looked_at(self, texts: Iterable[str]) -> list[str]:
        """Count texts that are looked at, whatever becomes of them."""
        some = list(texts)
        steps = _STEPS_OF_LOOK + len(some) // _TEXTS_OF_STEP
        self._of_container.work(steps + sum(map(len, some)) // CHARACTERS_OF_COPY)
        return some

    def _few(self, values: Iterable[str]) -> list[str]:
        """Tell values apart, unless they are too many."""
        some = list(values)
        if len(some) > MOST_VALUES:
            self._weigh(some)
        return few(some)

    def _weigh(self, texts: Iterable[str]) -> None:
        """Count the characters of texts that patterns look at."""
        self._of_container.work(sum(map(len, texts)) // CHARACTERS_OF_STEP)

    def _before(self, name: str) -> list[str]:
        """Return what a variable holds that the text does not set."""
        value = self._of_container.of(name)
        if name == "IFS":
            return [" "]
        if value is None and name == _HOST and not self._loses_environment:
            return [A_NAME]
        if value is None:
            return [ANYTHING if is_set_by_shells(name) else "" if name in self._own else A_VALUE]
        if value == ANYTHING and name in OF_EVERY_SHELL:
            return [A_VALUE]
        return ["", value] if self._loses_environment else [value]

    def own(self, names: Iterable[str]) -> None:
        """Take note of variables that a text sets or has a default for, so that they are its own and no image's."""
        self._own.update(one for one in names if not may_be_handed_in(one))

    def sets_any(self, names: Sequence[str]) -> bool:
        """Whether anything sets one of the variables *names*."""
        self._asked.update(names)
        return not {name.rstrip(ALL) for name in (*self._held, *self._groups)}.isdisjoint(names)

    def told(self, name: str) -> str:
        """Return what the container says that the variable *name* holds, where nothing makes it another; else ""."""
        value, *others = self._before(name)
        if others or not value or (UNREAD in value and value != TOLD):
            return ""
        self._asked.add(name)
        return value if not self._is_lost and (self._is_first(name) or self.is_known(name)) else ""

    def is_known(self, name: str) -> bool:
        """Whether the text does not set the variable *name*."""
        return name not in self._held and f"{name}{ALL}" not in self._groups

    def assign(self, name: str, value: str) -> None:
        """
        Take note of a *value* of the variable *name*.

        Raises:
            UnreadableError: If words would be split elsewhere than at spaces.
        """
        if name == "IFS" and SPACE.sub("", value):
            raise UnreadableError
        self._set.add(name)
        if REST in value:  # it is looked at word by word
            self._weigh([value])
            value = without_joined_rest(value)
        if name == "BASH_ARGV0":
            self.assign(ZERO, ANYTHING)
        held = self._held.get(name, [])
        if not held and value and value == self._of_container.of(name) and not is_set_by_shells(name):
            self._kept.add(name)  # and it is no news
            return
        self._held[name] = held
        if value == REST or value in held or ANYTHING in held or (name in self._plain and PLAIN.fullmatch(value)):
            return
        self.has_changed |= name in self._asked
        widens = self.widens or (self.widens_grown and any(one and one in value for one in held))
        held.append(ANYTHING if is_set_by_shells(name) else value)
        if len(held) > (1 if widens else MOST_VALUES):
            self._held[name] = one_of(held)
            self._plain.add(name)

    def setting(
        self, name: str, make: Callable[[], list[str]], *, is_certain: bool = False, is_outermost: bool = False
    ) -> list[str]:
        """Make values for the variable *name*, in which it is what it holds already."""
        outer = self._now, self._is_certain, self._is_outermost
        self._now, self._is_certain, self._is_outermost = name, is_certain, is_outermost
        try:
            return make()
        finally:
            self._now, self._is_certain, self._is_outermost = outer

    def _is_first(self, name: str) -> bool:
        """Whether the variable *name* holds what the container says in what is set now."""
        return (self._is_outermost or name == self._now) and self.is_first(name, is_certain=self._is_certain)

    def is_first(self, name: str, *, is_certain: bool) -> bool:
        """Whether the variable *name* is set for the first time, and holds what the container says until then."""
        return is_certain and name not in self._set and name not in OF_SHELLS and self.settles and not self._is_lost

    def is_filled(self, name: str) -> bool:
        """Whether the variable *name* holds something for certain, whatever of the text is run."""
        self._asked.add(name)
        is_written = all(one and (UNREAD not in one or one == TOLD) for one in self._before(name))
        is_read = not self._is_lost and f"{name}{ALL}" not in self._groups
        return is_written and is_read and all(_MARKS.sub("", one) for one in self._held.get(name, ()))

    def is_emptied(self, name: str) -> bool:
        """Whether the text itself may leave the variable *name* empty, as `local NAME` does."""
        self._asked.add(name)
        return "" in self._held.get(name, ())

    def settle(self, names: set[str]) -> None:
        """Take note that the variables *names* do not hold any longer what the container says."""
        if self.settles:
            self.certain |= names - OF_SHELLS

    def calculate(self) -> Iterator[str]:
        """Yield the variables that arithmetic sets to numbers, since a value says so that it may come to."""
        if any("[" in value and "$" in value for value in self._of_container.values()):
            self.lose()
        values = self._looked_at([*self._of_container.values(), *chain.from_iterable(self._held.values())])
        self._weigh(values)
        for value in values:
            for name in names_of_numbers(value):
                self.assign(name, A_VALUE)
                yield name
