"""
A user's own memory settings in a container: of every framework, in its environment, its words and the texts in them.

What is detected or annotated matters for abbreviations alone: a program may start another, and an image may be
anybody's.
"""

from collections.abc import Iterable, Iterator
from functools import cached_property

import msgspec

from policies.changes import AddVariable
from policies.frameworks.allowance import Allowance
from policies.frameworks.command_line import CommandLine
from policies.frameworks.expansion import Variables
from policies.frameworks.judge import Judge, OwnValue
from policies.frameworks.own_lines import in_lines
from policies.frameworks.own_variables import emptied, in_environment
from policies.frameworks.own_words import Words
from policies.frameworks.settings import SettingIndex
from policies.frameworks.shell.plain_words import is_plain
from policies.pod import Container, Variable


class OwnValues:
    """What the user of one container has set. Each part is looked at when it is first asked for."""

    def __init__(
        self, container: Container, line: CommandLine, index: SettingIndex, judge: Judge, allowance: Allowance
    ) -> None:
        """Each part raises DeniedError if there is more of it than in any real container."""
        self._container = container
        self._line = line
        self._index = index
        self._judge = judge
        self._allowance = allowance
        self._env = container.env or []
        self._variables = Variables(container, allowance)

    def changed(self, env: list[Variable]) -> "OwnValues":
        """Return what is set where the variables are those of *env*, with the same names."""
        container = msgspec.structs.replace(self._container, env=env)
        other = OwnValues(container, self._line, self._index, self._judge, self._allowance)
        other._texts_at, other._plain_at = self._texts_at, self._plain_at  # what is lowered stays what it is
        return other

    @cached_property
    def unset(self) -> frozenset[str]:
        """The variables that count as not set, though they stand in `env`."""
        return emptied(self._env, self._index, self._variables)

    @cached_property
    def in_environment(self) -> list[OwnValue]:
        """What its variables set."""
        return list(in_environment(self._env, self._index, self._variables, self._judge))

    @cached_property
    def in_lines(self) -> list[OwnValue]:
        """What command lines in its variables set, as far as they are written out."""
        return list(in_lines(self._env, self._plain_at, self._index, self._judge, self._allowance.rewrite))

    @cached_property
    def _texts_at(self) -> list[int]:
        return self._index.texts_in(self._env)

    @cached_property
    def _plain_at(self) -> list[int]:
        return [place for place in self._texts_at if is_plain(self._env[place].value or "")]

    def in_words(self, added: Iterable[AddVariable]) -> Iterator[OwnValue]:
        """Yield what its words set, and the other texts in its variables; they see the variables *added* to them."""
        handed = dict.fromkeys([one.name for one in self._env])
        for one in added:
            self._variables.tell(one.name, one.value)
            handed[one.name] = None
        words = Words(self._line, self._index, self._variables, self._judge)
        yield from words.own_values(self._env, self._texts_at, self._plain_at, handed)
