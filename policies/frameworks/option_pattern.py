"""What finds any of many options or names in a text, at a cost that hardly grows with their number."""

import re
from collections.abc import Callable, Mapping, Sequence
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


def naming(names: Sequence[str]) -> Callable[[str], bool]:
    """Return what says whether a text has one of *names* in it."""
    if len(names) <= _FEW:
        return lambda text: any(map(text.__contains__, names))
    pattern = re.compile(_choice(_tree({name: len(name) for name in names}), re.escape))
    return lambda text: pattern.search(text) is not None


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
