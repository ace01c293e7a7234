"""The variable by which a framework is told its share: set for it, or joined to what its user has set in it."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

from policies.changes import AddVariable, ReplaceVariable
from policies.frameworks.budget import Wanted
from policies.frameworks.framework import Spelling
from policies.frameworks.own_variables import LONGEST_LOWERED
from policies.pod import Variable


class Told(NamedTuple):
    """What is set, or a warning that says why nothing is although it should be."""

    change: AddVariable | ReplaceVariable | None = None
    warning: str = ""


def told(env: Sequence[Variable], words: Collection[str], wanted: Wanted) -> Told:
    """Set what is *wanted* by a variable beside those of *env*, by the name that the *words* of its program use."""
    spelling = _named(words, wanted.memory.spellings)
    if not spelling.separator:
        return Told(AddVariable(spelling.name, wanted.text(spelling)))
    places = {variable.name: index for index, variable in enumerate(env)}  # the last one counts
    for one in wanted.memory.spellings:
        if one.separator and one.name in places:
            return _joined(places[one.name], env[places[one.name]], one, wanted)
    return Told(AddVariable(spelling.name, wanted.text(spelling)))


def _named(words: Collection[str], spellings: Sequence[Spelling]) -> Spelling:
    """
    Return the spelling that *words* set to a value, of those that are written alike; else the first.

    A program that is told by two names stops (JAX), or believes one of them (PyTorch, by its version).
    """
    first = spellings[0]
    alike = [one for one in spellings if one.variable and (one.value, one.separator) == (first.value, first.separator)]
    return next((one for one in alike if any(f"{one.variable}=" in word for word in words)), first)


def _joined(index: int, held: Variable, spelling: Spelling, wanted: Wanted) -> Told:
    value = held.value or ""
    if len(value) > LONGEST_LOWERED:
        return Told(warning=f"{spelling.name} is too long, so {wanted.text(spelling)} could not be added to it")
    kept = [part for part in value.split(spelling.separator) if part]
    return Told(ReplaceVariable(index, spelling.name, spelling.separator.join([*kept, wanted.text(spelling)])))
