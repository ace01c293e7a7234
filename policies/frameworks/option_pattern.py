"""What finds any of many options, names or words in a text, at a cost that hardly grows with their number."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Final

_FEW: Final = 16  # so many names are found one by one sooner than all of them by a pattern
_Tree = dict[str, "_Tree"]  # by the next character; "" is where one may end


def in_text(lengths: Mapping[str, int], longest_value: int) -> re.Pattern[str]:
    """
    Match one of the options in a text, and what stands behind it: as much of it as is looked at.

    *lengths* says by option, as `canonical` writes it, how short it can be.
    """
    choice = _choice(_tree(lengths), _of_option) if lengths else "(?!)"
    # The dash comes first, because the engine skips to it; that it begins a word is seen behind it. No option ends in
    # the middle of a word, so that the longest one is the only one.
    return re.compile(
        rf"-(?<![\w-]-)-*+({choice})(?!=?\*|[\w\0.-])(?=[=:,\s]*(?:-\s+)?([^\s\x7f]{{0,{longest_value}}}))"
    )


class Names:
    """Finds which of many names stand in a text."""

    def __init__(self, names: Iterable[str]) -> None:
        """Find those of *names*."""
        self._names = tuple(names)
        self._pattern: re.Pattern[str] | None = None
        if len(self._names) > _FEW:
            self._pattern = re.compile(_choice(_tree({name: len(name) for name in self._names}), re.escape))

    @cached_property
    def _beside(self) -> dict[str, list[tuple[int, str]]]:
        return _beside(self._names)  # when it is asked for: many catalogues are made of which nothing is asked

    def any_in(self, text: str) -> bool:
        """Whether one of them stands in a text."""
        if self._pattern is None:
            return any(map(text.__contains__, self._names))
        return self._pattern.search(text) is not None

    def places_in(self, text: str) -> dict[str, list[int]]:
        """Return where each of them stands in a text, in their order, without those that do not."""
        if self._pattern is None:
            return {one: places for one in self._names if (places := _places(one, text))}
        found: dict[str, list[int]] = {}
        for match in self._pattern.finditer(text):
            at = match.start()
            found.setdefault(match[0], []).append(at)
            for offset, other in self._beside[match[0]]:
                if text.startswith(other, at + offset):
                    found.setdefault(other, []).append(at + offset)
        return {one: _apart(found[one], len(one)) for one in self._names if one in found} if found else {}


class Words:
    """Finds which of many words stand in a text by themselves."""

    def __init__(self, words: Iterable[str], *, before: str, behind: str) -> None:
        """Find those of *words* between signs of the two classes, or where the text begins or ends."""
        signs = re.compile(f"[{before}{behind}]")
        every = tuple(words)
        self._with_signs = [one for one in every if signs.search(one)]  # of which one may begin in another
        tree = _tree({one: len(one) for one in every if one not in self._with_signs})
        # The sign comes first, because in most texts fewer of them stand than letters with which one of many begins.
        self._pattern = re.compile(rf"[{before}](?=({_choice(tree, re.escape) or '(?!)'})(?:[{behind}]|\Z))")

    def found_in(self, text: str) -> set[str]:
        """Return those that stand in a text; one in which such a sign stands, wherever it does."""
        found = {match[1] for match in self._pattern.finditer(f"\n{text}")}
        return found.union([one for one in self._with_signs if one in text])


def _places(name: str, text: str) -> list[int]:
    places = []
    at = text.find(name)
    while at >= 0:
        places.append(at)
        at = text.find(name, at + len(name))
    return places


def _apart(places: list[int], length: int) -> list[int]:
    """Leave out the *places* that lie in what stands at an earlier one."""
    apart: list[int] = []
    for at in sorted(places):
        if not apart or at >= apart[-1] + length:
            apart.append(at)
    return apart


def _beside(names: Sequence[str]) -> dict[str, list[tuple[int, str]]]:
    """List for each name the others that a match of it leaves out, since they begin in it, and at what distance."""
    beginning: dict[str, list[str]] = {}
    for name in dict.fromkeys(names):
        for end in range(1, len(name) + 1):
            beginning.setdefault(name[:end], []).append(name)
    every = frozenset(names)
    beside: dict[str, list[tuple[int, str]]] = {}
    for name in names:
        spans = ((at, name[at:end]) for at in range(len(name)) for end in range(at + 1, len(name)))
        within = [(at, part) for at, part in spans if part in every]
        across = [(at, other) for at in range(1, len(name)) for other in beginning.get(name[at:], ())]
        beside[name] = [*within, *across]
    return beside


def _tree(lengths: Mapping[str, int]) -> _Tree:
    """Join what they begin with, so that each of their characters is looked at once for all."""
    tree: _Tree = {}
    for option, shortest in lengths.items():
        at = tree
        for length, character in enumerate(option, start=1):
            at = at.setdefault(character, {})
            if length >= shortest:
                at[""] = {}
    return tree


def _choice(tree: _Tree, written: Callable[[str], str]) -> str:
    """Match what *tree* has in it, as much as can be; *written* is how a character is matched."""
    ways = [f"{written(one)}{_choice(tree[one], written)}" for one in sorted(tree) if one]
    if not ways:
        return ""
    choice = ways[0] if len(ways) == 1 and "" not in tree else f"(?:{'|'.join(ways)})"
    return f"{choice}?+" if "" in tree else choice


def _of_option(one: str) -> str:
    return "[-_]" if one == "-" else re.escape(one)
