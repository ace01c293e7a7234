"""The words that a command may get: at each place one word, or any of several."""

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, dropwhile, islice, pairwise
from typing import Final

import msgspec

from policies.frameworks.allowance import UnreadableError
from policies.frameworks.command_line import unwrapped
from policies.frameworks.expansion import A_VALUE, ANYTHING, TOLD, UNREAD
from policies.frameworks.shell.options import MAY_TAKE_TEXT
from policies.frameworks.shell.signs import has_positional
from policies.frameworks.shell.tools import BY_PLACE, runs_another

_ONE_OF_SEVERAL: Final = A_VALUE  # in a line, where no one word stands for certain
_MOST_JOINED: Final = 512  # words of one text
_MOST_TEXTS: Final = 16  # that the words of one command make together
_MOST_GROUPS: Final = 4  # that are told apart
_MOST_IN_LINES: Final = 256  # words that a tool may get, in all ways
_MOST_EMPTY: Final = 8  # words behind each other of which each may be nothing
_OPTION = re.compile(r"-(?!\.?\d)")  # and no number below 0

Ways = list[tuple[str, ...]]  # each way in which one word of a text becomes words


class CommandWords:
    """What a command may get, by place."""

    __slots__ = ("_every", "_line", "_runs_another", "_unwrapped", "places")

    def __init__(self, places: list[Ways]) -> None:
        """Put words behind each other."""
        self.places = places
        self._line: list[str] | None = None
        self._every: list[str] | None = None
        self._unwrapped: tuple[int, bool] | None = None
        self._runs_another: bool | None = None

    @classmethod
    def of(cls, words: list[Ways]) -> "CommandWords":
        """Put words behind each other; one that becomes several words in one way takes as many places."""
        places: list[Ways] = []
        for ways in words:
            if len(ways) == 1 and len(ways[0]) != 1:
                places += [[(one,)] for one in ways[0]]
            else:
                places.append(ways)
        return cls(places)

    @property
    def line(self) -> list[str]:
        """The words that stand there for certain, and a mark where one of several does."""
        if self._line is None:
            self._line = [ways[0][0] if len(ways) == 1 else _ONE_OF_SEVERAL for ways in self.places]
        return self._line

    @property
    def unwrapped(self) -> tuple[int, bool]:
        """Where the words of the program begin, and whether a wrapper hands a text to a shell instead."""
        if self._unwrapped is None:
            self._unwrapped = unwrapped(self.line)
        return self._unwrapped

    @property
    def runs_another(self) -> bool:
        """Whether a tool with these words may start the program that they name."""
        if self._runs_another is None:
            self._runs_another = any(map(runs_another, self._lines()))
        return self._runs_another

    @property
    def may_hand_text(self) -> bool:
        """Whether one may be a text for a shell that gets others: with -c or behind it, or of what a tool runs."""
        if not any(map(has_positional, self.every())):
            return False
        if self.runs_another:
            return True
        behind = dropwhile(lambda one: not MAY_TAKE_TEXT.search(one), self.every())
        return any(map(has_positional, behind))

    def behind(self, place: int) -> "CommandWords":
        """Return the words from *place* on."""
        return CommandWords(self.places[place:]) if place else self

    def up_to(self, place: int) -> "CommandWords":
        """Return the words before *place*."""
        return CommandWords(self.places[:place])

    def certain(self, place: int, way: tuple[str, ...]) -> "CommandWords":
        """Return the words with one *way* for the word at *place*."""
        chosen: list[Ways] = [[(one,)] for one in way]
        return CommandWords([*self.places[:place], *chosen, *self.places[place + 1 :]])

    def every(self) -> list[str]:
        """List each word that may stand anywhere."""
        if self._every is None:
            self._every = [one for ways in self.places for way in ways for one in way]
        return self._every

    def uncertain(self) -> list[str]:
        """List the words of which one stands at a place."""
        return [one for ways in self.places if len(ways) > 1 for way in ways for one in way]

    def _lines(self) -> Sequence[Sequence[str]]:
        """List what a tool may get: each way where the places of words matter and ways are few, else all together."""
        uncertain = self.uncertain()
        is_by_place = uncertain and self.line[0].rpartition("/")[2] in BY_PLACE
        ways = self.groups(_MOST_IN_LINES // len(self.every())) if is_by_place else []
        return ways or [[*self.line, *uncertain]]

    def groups(self, most: int = _MOST_GROUPS) -> list[list[str]]:
        """List the words in each way; none where the ways are more than *most*."""
        groups: list[list[str]] = [[]]
        for ways in self.places:
            if len(ways) == 1:
                for group in groups:
                    group.extend(ways[0])
                continue
            groups = [[*group, *way] for group in groups for way in ways]
            if len(groups) > most:
                return []
        return groups

    def joined(self) -> Iterator[str]:
        """
        Write all words as one text, in each way, one at a time.

        Raises:
            UnreadableError: If there are more ways than in any real command.
        """
        if len(self.places) > _MOST_JOINED:
            raise UnreadableError
        texts: list[list[str]] = [[]]
        for ways in self.places:
            if len(ways) == 1:
                for text in texts:
                    text.extend(ways[0])
                continue
            texts = [[*text, *way] for text in texts for way in ways]
            if len(texts) > _MOST_TEXTS:
                raise UnreadableError
        return (" ".join(text) for text in texts)

    def together(self, opens: Callable[[str], bool], *, loses_first: bool) -> Iterator[tuple[str, bool]]:
        """
        Yield words that stand behind each other, and whether they do for certain.

        Together are all that are certain, and each that may follow one that *opens*; *loses_first*: the first of
        several words may be gone.
        """
        run: list[str] = []
        for place, (ways, following) in enumerate(pairwise([*self.places, []])):
            if len(ways) == 1 and not (len(following) > 1 and opens(ways[0][0])):
                run += ways[0]
                continue
            if run:
                yield " ".join(run), True
                run = []
            opening = [way for way in ways if way and opens(way[-1])]
            ends = self._behind_one(place + 1, loses_first=loses_first) if opening else []
            said = [way for way in ways if not _is_option_of_nothing(way, opens)]
            for way in said or ways:
                yield from ((" ".join([*way, end]), False) for end in (way in opening and ends) or [""])
        if run:
            yield " ".join(run), True

    def _behind_one(self, place: int, *, loses_first: bool) -> list[str]:
        """
        List the words that may stand at *place* as the value of an option.

        *loses_first*: any of several that stand right there may. Of those behind a word that may be nothing the first
        alone counts, since most of them are options that a script adds where it has a value for them.
        """
        found: dict[str, None] = {}
        for number, ways in enumerate(islice(self.places, place, None)):
            if number == _MOST_EMPTY:
                return [ANYTHING]
            for way in ways:
                for later, one in enumerate(way if loses_first and not number else way[:1]):
                    if one and not ((number or later) and _OPTION.match(one)):
                        found[one] = None
            if _is_never_empty(ways):
                break
        return list(found)

    def first_at(self, place: int) -> list[str]:
        """List the words that may stand at *place*, or behind it where nothing does."""
        found: list[str] = []
        for ways in islice(self.places, place, None):
            found += [way[0] for way in ways if way]
            if _is_never_empty(ways):
                break
        return found

    def any_first(self) -> list[str]:
        """List the words of which any may be the first that is no `--`."""
        found: list[str] = []
        for ways in self.places:
            found += chain.from_iterable(ways)
            if _is_never_empty(ways) and all(way[0] != "--" for way in ways):
                break
        return found


def _is_option_of_nothing(way: tuple[str, ...], opens: Callable[[str], bool]) -> bool:
    """Whether it is an option whose value is written and empty, with which its program does not start."""
    return len(way) == 1 and way[0].startswith("-") and way[0].endswith("=") and opens(way[0][:-1])


def _is_never_empty(ways: Ways) -> bool:
    """Whether a word stands there in each way; what is unread may be nothing, but for the share."""
    return all(way and (way[0] == TOLD or not way[0].startswith(UNREAD)) for way in ways)


class Call(msgspec.Struct, frozen=True):
    """What a command gets."""

    words: CommandWords
    named: list[str]  # which of them may be assignments that are not written as such
    passed: CommandWords  # without words that its own text was given
    is_own: bool = False  # the text has defined what is called, if nothing has taken it back
    may_begin_later: bool = False  # the first of its words may be taken away

    def behind(self, place: int) -> "Call":
        """Return the words from *place* on."""
        if not place:
            return self
        words, passed = self.words.behind(place), self.passed.behind(place)
        return Call(words, self.named, passed, may_begin_later=self.may_begin_later)

    def each(self, place: int) -> list["Call"]:
        """List what it is for each way in which a word becomes words at *place*."""
        return [
            msgspec.structs.replace(
                self, words=self.words.certain(place, way), passed=self.passed.certain(place, way), is_own=False
            )
            for way in self.words.places[place]
        ]
