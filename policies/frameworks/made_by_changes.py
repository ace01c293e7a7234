"""What settings become by the changes to others: `$(NAME)` stands for what NAME is after it was lowered or filled."""

from collections.abc import Iterable, Sequence

import msgspec

from policies.changes import AddVariable, ReplaceVariable
from policies.frameworks.judge import Judge, OwnValue
from policies.frameworks.own_values import OwnValues
from policies.pod import Variable


def as_changed(
    found: OwnValues, env: list[Variable], told: Sequence[AddVariable | ReplaceVariable], judge: Judge
) -> list[OwnValue]:
    """
    List what is *found* in a container with *env*, its words by the variables as they will be.

    Those variables are lowered first, and those by which the share is *told*; what that makes too much stands behind.
    """
    own = joined(found.in_environment, told)
    lines = found.in_lines
    changes = [*(one.change for one in (*own, *lines)), *told]
    rewritten = {one.index: one for one in changes if isinstance(one, ReplaceVariable)}
    if rewritten:
        env = [
            msgspec.structs.replace(one, value=rewritten[at].value) if at in rewritten else one
            for at, one in enumerate(env)
        ]
        found = found.changed(env)
        references = [f"$({one.name})" for one in rewritten.values()]
        if any(reference in (one.value or "") for one in env for reference in references):
            own += [one for one in made_too_much(own, found.in_environment) if not judge.keeps(one.verdict)]
    # Those that are added stand behind all others, none of which has them in it.
    added = [one for one in told if isinstance(one, AddVariable)]
    return [*own, *lines, *found.in_words(added)]


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
