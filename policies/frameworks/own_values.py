"""
A user's own memory settings in a container: of every framework, in its environment, its words and the texts in them.

What is detected or annotated matters for abbreviations alone: a program may start another, and an image may be
anybody's.
"""

from policies.frameworks.command_line import CommandLine
from policies.frameworks.expansion import Allowance, Variables
from policies.frameworks.judge import Judge, OwnValue
from policies.frameworks.own_variables import in_environment
from policies.frameworks.own_words import Words
from policies.frameworks.settings import SettingIndex
from policies.pod import Container


def own_values(
    container: Container, line: CommandLine, index: SettingIndex, judge: Judge, allowance: Allowance
) -> list[OwnValue]:
    """
    Find what the user has set, in the order of variables and words.

    Raises:
        DeniedError: If there is more of it than in any real container.
    """
    variables = Variables(container, allowance)
    found = list(in_environment(container.env, index, variables, judge)) if container.env else []
    found.extend(Words(line, index, variables, judge).own_values(container.env or []))
    return found
