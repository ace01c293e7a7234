"""The variable by which a framework is told its share: set for it, or joined to what its user has set in it."""

import re
from collections.abc import Collection, Sequence
from functools import cache
from typing import Final, NamedTuple

from policies.changes import AddVariable, ReplaceVariable
from policies.frameworks.budget import Wanted
from policies.frameworks.framework import Memory, Spelling
from policies.frameworks.own_variables import LONGEST_LOWERED, packed
from policies.frameworks.taken_variables import UNSETTING
from policies.pod import Variable

_NOTHING: Final = r"[\\\"']*(?:[\s;&|)}]|\Z)"  # in place of a value


class Told(NamedTuple):
    """What is set, or a warning that says why nothing is although it should be."""

    changes: tuple[AddVariable | ReplaceVariable, ...] = ()
    warning: str = ""


def told(env: Sequence[Variable], words: Sequence[str], wanted: Wanted) -> Told:
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
    beside = zip(["", *words], words, [*words[1:], None], strict=False)  # `mpiexec -genv NAME ''` sets it to nothing
    kept = [word for before, word, behind in beside if before not in UNSETTING and behind != ""]
    texts = [*kept, *(one.value or "" for one in env)]
    # A program that is told by two names stops (JAX), or believes one of them (PyTorch, by its version).
    named = [one.name for one in wanted.memory.alike if any(_sets(one.name, text) for text in texts)]
    # Where nothing else holds the memory, to take the old one is denied, and only the new one may have a default.
    moved = _moved(wanted.memory, named, texts) if wanted.is_held else ""
    name = moved or next(iter(named), spellings[0].name)
    value = wanted.text(spellings[0])
    # What is there already holds nothing, else the program would be told by it.
    first = ReplaceVariable(places[name], name, value) if name in places else AddVariable(name, value)
    return Told((first, *_emptied(wanted.memory, {name, *places})))


def _emptied(memory: Memory, names: Collection[str]) -> list[AddVariable]:
    """Take from a program what others than the pod may set for it, its image or a ConfigMap, but for the *names*."""
    return [AddVariable(one.name, "") for one in memory.alike if memory.exclusive and one.name not in names]


def _sets(name: str, text: str) -> bool:
    """
    Whether a text sets a variable: by `NAME=`, `${NAME:=`, `setenv NAME`, `set -x NAME`, or as a word alone.

    What sets it to nothing leaves the other name to the program.
    """
    return name in text and _setting(name).search(text) is not None


@cache
def _setting(name: str) -> re.Pattern[str]:
    return re.compile(
        rf"(?<!\w)(?:{name}\+?=|\{{{name}:?=)(?!{_NOTHING})|\A{name}\Z|(?:setenv|set\s+-\S+)\s+{name}\s+(?!{_NOTHING})"
    )


def _moved(memory: Memory, named: Sequence[str], texts: Sequence[str]) -> str:
    """Return the name from which a text sets the *named* one and that it then takes: `NEW=$OLD; unset OLD`; else ""."""
    others = (one.name for one in memory.alike if memory.exclusive and one.name not in named)
    return next((other for other in others for name in named for text in texts if _moves(other, name, text)), "")


def _moves(other: str, name: str, text: str) -> bool:
    return f"{name}=" in text and all(one.search(text) for one in (_moving(other, name), _taking(other)))


@cache
def _moving(other: str, name: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w){name}=\"?\$(?:{other}\b|\{{{other}(?::?-)?\}})")


@cache
def _taking(name: str) -> re.Pattern[str]:
    return re.compile(rf"(?:\bunset\s[^;&|\n]*|-u\s*|--unset=)(?<!\w){name}\b|(?<!\w){name}={_NOTHING}")


def _joined(index: int, held: Variable, spelling: Spelling, wanted: Wanted) -> Told:
    kept = [part for part in (held.value or "").split(spelling.separator) if packed(part)]
    value = spelling.separator.join([*kept, wanted.text(spelling)])
    if len(value) > LONGEST_LOWERED:  # the next review would not read it
        return Told(warning=f"{spelling.name} is too long, so {wanted.text(spelling)} could not be added to it")
    return Told((ReplaceVariable(index, spelling.name, value),))
