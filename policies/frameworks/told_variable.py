"""The variable by which a framework is told its share: set for it, or joined to what its user has set in it."""

import re
from collections.abc import Collection, Sequence
from functools import cache
from itertools import pairwise
from typing import NamedTuple

from policies.changes import AddVariable, ReplaceVariable
from policies.frameworks.budget import Wanted
from policies.frameworks.framework import Spelling
from policies.frameworks.own_variables import LONGEST_LOWERED, packed
from policies.frameworks.taken_variables import UNSETTING
from policies.pod import Variable


class Told(NamedTuple):
    """What is set, or a warning that says why nothing is although it should be."""

    changes: tuple[AddVariable | ReplaceVariable, ...] = ()
    warning: str = ""


def told(env: Sequence[Variable], words: Collection[str], wanted: Wanted) -> Told:
    """Set what is *wanted* by a variable beside those of *env*, by the names that *env* or the *words* set."""
    spellings = [one for one in wanted.memory.spellings if one.variable]
    places = {variable.name: index for index, variable in enumerate(env)}  # the last one counts
    lists = [one for one in spellings if one.separator and one.name in places] if spellings[0].separator else []
    if lists:
        joined = [_joined(places[one.name], env[places[one.name]], one, wanted) for one in lists]
        return Told(
            tuple(change for one in joined for change in one.changes),
            next((one.warning for one in joined if one.warning), ""),
        )
    kept = [word for before, word in pairwise(["", *words]) if before not in UNSETTING]
    texts = [*kept, *(one.value or "" for one in env)]
    spelling = next((one for one in _alike(spellings) if any(_sets(one.name, text) for text in texts)), spellings[0])
    return Told((AddVariable(spelling.name, wanted.text(spelling)),))


def _alike(spellings: Sequence[Spelling]) -> Sequence[Spelling]:
    """
    Return those that are written like the first one.

    A program that is told by two names stops (JAX), or believes one of them (PyTorch, by its version).
    """
    first = spellings[0]
    return [one for one in spellings if (one.value, one.separator) == (first.value, first.separator)]


def _sets(name: str, text: str) -> bool:
    """Whether a text sets a variable: by `NAME=`, `${NAME:=`, `setenv NAME`, `set -x NAME`, or as a word alone."""
    return name in text and _setting(name).search(text) is not None


@cache
def _setting(name: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w)(?:{name}\+?=|\{{{name}:?=)|\A{name}\Z|(?:setenv|set\s+-\S+)\s+{name}\s")


def _joined(index: int, held: Variable, spelling: Spelling, wanted: Wanted) -> Told:
    kept = [part for part in (held.value or "").split(spelling.separator) if packed(part)]
    value = spelling.separator.join([*kept, wanted.text(spelling)])
    if len(value) > LONGEST_LOWERED:  # the next review would not read it
        return Told(warning=f"{spelling.name} is too long, so {wanted.text(spelling)} could not be added to it")
    return Told((ReplaceVariable(index, spelling.name, value),))
