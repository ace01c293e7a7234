"""
A user's own memory settings in a container: of every framework, in its environment, its words and the texts in them.

What is detected or annotated matters for abbreviations alone: a program may start another, and an image may be
anybody's.
"""

from collections.abc import Iterable, Iterator

from policies.changes import AddVariable, ReplaceVariable
from policies.frameworks.allowance import Allowance
from policies.frameworks.command_line import CommandLine
from policies.frameworks.expansion import Variables
from policies.frameworks.judge import Judge, OwnValue
from policies.frameworks.own_variables import emptied, in_environment
from policies.frameworks.own_words import Words
from policies.frameworks.settings import SettingIndex
from policies.pod import Container


class OwnValues:
    """What the user of one container has set."""

    def __init__(
        self, container: Container, line: CommandLine, index: SettingIndex, judge: Judge, allowance: Allowance
    ) -> None:
        """
        Find what its variables set.

        Raises:
            DeniedError: If there is more of it than in any real container; so does `in_words`.
        """
        self._env = container.env or []
        self._variables = Variables(container, allowance)
        self._words = Words(line, index, self._variables, judge)
        self.unset = emptied(self._env, index, self._variables)  # though they stand in `env`
        self.in_environment = list(in_environment(self._env, index, self._variables, judge)) if self._env else []

    def in_words(self, told: Iterable[AddVariable | ReplaceVariable]) -> Iterator[OwnValue]:
        """Yield what its words set, which see the variables by which the program is *told* its share."""
        handed = dict.fromkeys([one.name for one in self._env])
        for one in told:
            self._variables.tell(one.name, one.value)
            handed[one.name] = None
        yield from self._words.own_values(self._env, handed)
