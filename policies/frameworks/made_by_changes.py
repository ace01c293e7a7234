"""What settings become by the changes to others: `$(NAME)` stands for what NAME is after it was lowered or filled."""

from collections.abc import Callable, Iterable, Sequence
from itertools import chain

import msgspec

from policies.changes import AddVariable, ReplaceVariable
from policies.frameworks.command_line import CommandLine
from policies.frameworks.judge import OwnValue
from policies.frameworks.own_values import OwnValues
from policies.pod import Container


def as_changed(
    own: Sequence[OwnValue],
    told: Iterable[AddVariable | ReplaceVariable],
    container: Container,
    line: CommandLine,
    find: Callable[[Container], OwnValues],
) -> OwnValues | None:
    """
    Find the settings of the *container* with its *own* variables lowered, and those by which the share is *told*.

    Returns:
        What *find* finds then; None where nothing in the container or its command *line* names one of those variables.
    """
    changes = [*(one.change for one in own), *told]
    rewritten = {one.index: one for one in changes if isinstance(one, ReplaceVariable)}
    env = container.env or ()
    texts = [*line.words, *chain.from_iterable(line.hooks), *(one.value or "" for one in env)]
    if not any(one.name in text for one in rewritten.values() for text in texts):
        return None
    after = [
        msgspec.structs.replace(one, value=rewritten[at].value) if at in rewritten else one
        for at, one in enumerate(env)
    ]
    return find(msgspec.structs.replace(container, env=after))


def made_too_much(before: Iterable[OwnValue], after: Iterable[OwnValue]) -> list[OwnValue]:
    """Give the settings *after* all changes that were others *before* them. They are not lowered again."""
    known = {(one.name, one.verdict, one.value) for one in before if one.change is None}
    new = (one for one in after if (one.name, one.verdict, one.value) not in known)
    return [msgspec.structs.replace(one, change=None) for one in new]


def joined(own: Iterable[OwnValue], changes: Sequence[AddVariable | ReplaceVariable]) -> list[OwnValue]:
    """Where a variable is lowered or replaced, and the share joined to it or set, let that be one change."""
    names = {change.name for change in changes}
    by_index = {one.index: one for one in changes if isinstance(one, ReplaceVariable)}
    return [
        msgspec.structs.replace(one, change=by_index.get(one.change.index, one.change))
        if isinstance(one.change, ReplaceVariable)
        else one
        for one in own
        if one.verdict != "replaced" or one.name not in names
    ]
