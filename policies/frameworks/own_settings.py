"""Which of the settings that a user makes are one framework's own."""

from collections.abc import Collection, Sequence

from policies.frameworks.framework import Framework, Memory, Spelling
from policies.frameworks.judge import MISSED, OwnValue
from policies.frameworks.written_form import canonical


def is_setting(one: OwnValue, framework: Framework) -> bool:
    """Whether it is one of this framework, maybe as another one has it too."""
    if one.framework is None or one.framework is framework:
        return one.framework is framework and sets(one)
    theirs = {_form(spelling) for spelling in _spellings(one.framework) if spelling.name == one.name}
    ours = (_form(spelling) for spelling in _spellings(framework) if not spelling.separator)
    return sets(one) and not theirs.isdisjoint(ours)


def sets(one: OwnValue) -> bool:
    """Whether it says how much memory the program may take, and the program gets it."""
    return one.verdict != "overriding" and one.verdict not in MISSED


def is_missed(one: OwnValue, exclusive: Collection[str]) -> bool:
    """Whether it says what the program does not get: an *exclusive* variable is none where it is set to nothing."""
    return one.verdict in MISSED or (one.is_empty and one.name in exclusive)


def is_argument(one: OwnValue, memory: Memory) -> bool:
    """Whether a setting reaches the program for certain: a text may set a variable for another program alone."""
    return all(one.name != spelling.variable for spelling in memory.spellings)


def lists_of(framework: Framework | None) -> list[str]:
    """Name the variables of several settings by which a framework is told its share."""
    return [one.name for one in (_spellings(framework) if framework else ()) if one.separator]


def _form(spelling: Spelling) -> tuple[str | None, str, str]:
    return spelling.variable, canonical(spelling.argument or ""), spelling.value


def _spellings(framework: Framework) -> Sequence[Spelling]:
    return framework.memory.spellings if framework.memory else ()
