"""What settings become by the changes to others: `$(NAME)` stands for what NAME is after it was lowered or filled."""

from collections.abc import Callable, Sequence
from itertools import chain

import msgspec

from policies.changes import AddVariable, ReplaceVariable
from policies.frameworks.command_line import CommandLine
from policies.frameworks.judge import MISSED, OwnValue
from policies.frameworks.own_values import OwnValues
from policies.pod import Container

Told = Sequence[AddVariable | ReplaceVariable]


def made_by_changes(
    own: Sequence[OwnValue], told: Told, container: Container, line: CommandLine, find: Callable[[Container], OwnValues]
) -> list[OwnValue]:
    """
    Return what else is in the *container* once its *own* settings are lowered and the share is *told*.

    *find* finds the settings of a container with this command *line*. What is found then is not lowered.

    Raises:
        DeniedError: If it has more settings, or makes more of its variables, than any real container.
    """
    changes = [*(one.change for one in own), *told]
    rewritten = {one.index: one for one in changes if isinstance(one, ReplaceVariable)}
    env = container.env or ()
    texts = [*line.words, *chain.from_iterable(line.hooks), *(one.value or "" for one in env)]
    if not any(one.name in text for one in rewritten.values() for text in texts):
        return []
    after = [
        msgspec.structs.replace(one, value=rewritten[at].value) if at in rewritten else one
        for at, one in enumerate(env)
    ]
    again = find(msgspec.structs.replace(container, env=after))
    known = {(one.name, one.verdict, one.value) for one in own if one.change is None}
    found = chain(again.in_environment, again.in_words(told))
    left = (one for one in found if (one.name, one.verdict, one.value) not in known and one.verdict not in MISSED)
    return [msgspec.structs.replace(one, change=None) for one in left]
