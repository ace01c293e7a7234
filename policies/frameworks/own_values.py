"""
A user's own memory settings in a container: of every framework, in its environment, its words and the texts in them.

What is detected or annotated matters for abbreviations alone: a program may start another, and an image may be
anybody's.
"""

from collections.abc import Iterator
from typing import Final

from policies.denial import DeniedError
from policies.errors import quoted
from policies.frameworks.command_line import CommandLine
from policies.frameworks.expansion import Allowance, Variables
from policies.frameworks.judge import Judge, OwnValue
from policies.frameworks.own_variables import in_environment
from policies.frameworks.own_words import Words
from policies.frameworks.settings import SettingIndex
from policies.pod import Container

MOST_SETTINGS: Final = 64  # of one container


def own_values(
    container: Container, line: CommandLine, index: SettingIndex, judge: Judge, allowance: Allowance
) -> list[OwnValue]:
    """
    Find what the user has set, in the order of variables and words.

    Raises:
        DeniedError: If there is more of it than in any real container.
    """
    found: list[OwnValue] = []
    for one in _all(container, line, index, judge, Variables(container, allowance)):
        found.append(one)
        if len(found) > MOST_SETTINGS:
            what = f"Container {quoted(container.name)} has more than {MOST_SETTINGS} memory settings of frameworks"
            raise DeniedError("PodTooLarge", what, "Make each of them once")
    return found


def _all(
    container: Container, line: CommandLine, index: SettingIndex, judge: Judge, variables: Variables
) -> Iterator[OwnValue]:
    if container.env:
        yield from in_environment(container.env, index, variables, judge)
    if line.words:
        yield from Words(line, index, variables, judge).own_values()
