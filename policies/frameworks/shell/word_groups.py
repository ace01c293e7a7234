"""Words of a shell's text that stand together: the elements of arrays, and what texts and functions are given."""

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Final

from policies.frameworks.allowance import UnreadableError
from policies.frameworks.expansion import ANYTHING
from policies.frameworks.shell.rest import REST
from policies.frameworks.shell.script import ALL, EVERYWHERE, POSITIONAL
from policies.frameworks.shell.several import MOST_VALUES, one_of
from policies.frameworks.shell.signs import has_positional

_MOST_WORDS: Final = 256  # that a text or a function is given, or an array holds
_OF_COMMANDS: Final = frozenset({"BASH_ALIASES", "BASH_CMDS"})  # whose elements are what commands are


class WordGroups:
    """Those of one command line, and of the texts in it."""

    has_changed: bool
    context: str
    _set: set[str]
    _asked: set[str]
    _held: dict[str, list[str]]
    _is_lost: bool

    def begin(self) -> None:
        """Forget what a command line has set."""
        self._groups: dict[str, list[tuple[str, ...]]] = {}  # by array or by context
        self._torn: set[str] = set()  # arrays whose elements may stand in other places
        self._bare: set[str] = set()  # contexts that are given no words at times
        self._mixed: set[str] = set()  # arrays, and "@" for what is given: words of several ways, put together
        self.shifts = False  # a command may take the first of several words away
        self.joins = False  # or put words behind those that a text or a function was given
        self.widens = False  # what is set anew stands for whatever may be made of it
        self.widens_grown = False  # so does what has in it what was set before

    def _scalar(self, name: str) -> list[str]:
        raise NotImplementedError

    def _looked_at(self, texts: Iterable[str]) -> list[str]:
        raise NotImplementedError

    def elements(self, name: str) -> list[tuple[str, ...]]:
        """Return the words that stand together in an array, by its name with ALL, or those of the context."""
        if self._is_lost:
            return [(ANYTHING,)]
        if name != POSITIONAL:
            return [*self._groups_of(name), *((one,) for one in self._scalar(name.removesuffix(ALL)))]
        if self.context != EVERYWHERE:
            return [*self._groups_of(self.context), *self._groups_of(EVERYWHERE)]
        self._asked.add(EVERYWHERE)
        groups = [group for key, some in self._groups.items() if key.startswith(POSITIONAL) for group in some]
        self._looked_at([*self._groups, *chain.from_iterable(groups)])
        return groups

    def tear(self, name: str) -> None:
        """Take note of an array, by its name with ALL, of which single elements are set or taken out."""
        self.has_changed |= name not in self._torn and name in self._asked
        self._torn.add(name)

    def is_torn(self, name: str) -> bool:
        """Whether nobody knows in which order the elements of an array stand."""
        return name in self._torn or (
            name.endswith(ALL) and name in self._groups and name.removesuffix(ALL) in self._held
        )

    def mix(self, name: str = POSITIONAL) -> None:
        """Take note of words of which nobody knows the places: those that are given, or an array's by its *name*."""
        self.has_changed |= name not in self._mixed and bool(self._asked)
        self._mixed.add(name)

    def moves(self) -> bool:
        """Whether words that are given may stand at other places where they are referred to."""
        is_of_all = self.context == EVERYWHERE or bool(self._groups_of(EVERYWHERE))
        return self.shifts or self.joins or POSITIONAL in self._mixed or is_of_all

    @property
    def loses_first(self) -> bool:
        """Whether the first of several words may be gone, or be none where they are put together in another way."""
        return self.shifts or bool(self._mixed)

    def is_bare(self) -> bool:
        """Whether the text or function that is looked at may be given no words."""
        return self.context in self._bare

    def shift(self) -> None:
        """Take note of a command that may take the first of several words away."""
        self.has_changed |= not self.shifts and bool(self._asked)
        self.shifts = True

    def count_words(self, name: str) -> int:
        """Return how many words are put into an array, or are given."""
        groups = self.elements(name) if name == POSITIONAL else self._groups_of(name)
        return sum(map(len, groups))

    def _groups_of(self, name: str) -> list[tuple[str, ...]]:
        self._asked.add(name)
        groups = self._groups.get(name, [])
        self._looked_at(chain.from_iterable(groups))
        return groups

    def may_give(self, text: str) -> bool:
        """Whether a text refers to words, and some are given to texts, of which nobody knows which."""
        if not has_positional(text):
            return False
        contexts = [EVERYWHERE, *(name for name in self._groups if name.startswith(POSITIONAL))]
        return any(map(self._groups_of, contexts))

    def give(self, name: str, words: Sequence[str]) -> None:
        """Take note of words that stand together in an array, or are given to a text or a function."""
        if name.rstrip(ALL) in _OF_COMMANDS:
            raise UnreadableError
        self._set.add(name.rstrip(ALL))
        if not words and name not in self._bare:
            self._bare.add(name)
            self.has_changed |= name in self._asked
        if REST in words and name.startswith(POSITIONAL) and not self.joins:
            self.has_changed = self.joins = True
        groups = self._groups.setdefault(name, [])
        group = tuple(one for one in words if one != REST)
        if self.shifts and any(one[-len(group) :] == group for one in groups):
            return  # it is what is left of one
        if not group or group in groups or (ANYTHING,) in groups:
            return
        if self.widens and groups:
            group = _widened([*groups, group])
            if [group] == groups:
                return
            groups.clear()
        self.has_changed |= name in self._asked or (name.startswith(POSITIONAL) and EVERYWHERE in self._asked)
        groups.append(group)
        if len(groups) > MOST_VALUES or sum(map(len, groups)) > _MOST_WORDS:
            self._groups[name] = [(ANYTHING,)]


def _widened(groups: list[tuple[str, ...]]) -> tuple[str, ...]:
    """Return words that stand for those of each of several *groups*, place by place."""
    if len(set(map(len, groups))) > 1:
        return (ANYTHING,)
    return tuple(one_of(dict.fromkeys(words))[0] for words in zip(*groups, strict=True))
