"""What a grant has set for a framework, and the container without it: so that it is decided on as it was written."""

from collections.abc import Sequence
from typing import Any

import msgspec

from policies.changes import AddVariable, AppendArgument, ReplaceVariable
from policies.denial import DeniedError
from policies.frameworks.allowance import Allowance
from policies.frameworks.budget import Budget, Wanted
from policies.frameworks.command_line import steps_beside
from policies.frameworks.detection import Catalogue
from policies.frameworks.framework import Framework
from policies.frameworks.memory import Wish, advise
from policies.pod import Container

Fields = dict[str, Any]


def without_settings(one: Fields, wish: Wish, budget: Budget, catalogue: Catalogue) -> Fields:
    """
    Leave out of a container what is set for its framework under *budget*, if all of that would be set again.

    An owner who has written the very same is not told from the grant.
    """
    made = (_without(one, framework, budget) for framework in catalogue.frameworks.values())
    left = (other for other in made if other is not one and _is_made_again(one, other, wish, budget, catalogue))
    return next(left, one)


def _without(one: Fields, framework: Framework, budget: Budget) -> Fields:
    env = [*(one.get("env") or ())]
    kept = _kept(env, framework, budget)
    if kept != env:
        one = {**one, "env": kept}
    args = one.get("args") or ()
    if args and args[-1] in _arguments(framework, budget):
        one = {**one, "args": [*args[:-1]]}
    return one


def _kept(env: Sequence[Fields], framework: Framework, budget: Budget) -> list[Fields]:
    memory = framework.memory
    exclusive = {spelling.name for spelling in memory.alike} if memory is not None and memory.exclusive else set()
    kept: list[Fields] = []
    is_told = False
    for variable in env:
        name = variable["name"]
        if is_told and name in exclusive and not (variable.get("value") or variable.get("valueFrom")):
            continue  # set empty beside the one by which the share is told
        left = _left(variable, framework, budget)
        is_told |= left is None and name in exclusive
        kept += [] if left is None else [left]
    return kept


def _arguments(framework: Framework, budget: Budget) -> list[str]:
    if framework.memory is None:
        return []
    wanted = Wanted(framework.memory, budget)
    return [f"{one.argument}={wanted.text(one)}" for one in framework.memory.spellings if one.argument]


def _left(variable: Fields, framework: Framework, budget: Budget) -> Fields | None:
    """Return what was there of a variable: all of it, what the setting was joined to, or nothing."""
    name, value = variable["name"], variable.get("value") or ""
    constants = (one for one in framework.constants if budget.strategy in one.strategies)
    if any((name, value) == (one.variable, one.value) for one in constants):
        return None
    if framework.memory is None:
        return variable
    for spelling in framework.memory.spellings:
        if spelling.variable != name:
            continue
        text = Wanted(framework.memory, budget).text(spelling)
        if value == text:
            return None
        if spelling.separator and value.endswith(f"{spelling.separator}{text}"):
            return {**variable, "value": value.removesuffix(f"{spelling.separator}{text}")}
    return variable


def _is_made_again(one: Fields, made: Fields, wish: Wish, budget: Budget, catalogue: Catalogue) -> bool:
    """Whether the changes that *made* needs under *budget* have all in them that *one* has more."""
    container = msgspec.convert(made, Container)
    try:
        changes = advise(container, wish, budget, catalogue, Allowance(steps_beside([container]))).changes
    except DeniedError:
        return False
    arguments = [change.text for change in changes if isinstance(change, AppendArgument)]
    told = {(change.name, change.value) for change in changes if isinstance(change, AddVariable | ReplaceVariable)}
    kept = made.get("env") or ()
    variables = [variable for variable in one.get("env") or () if variable not in kept]
    return [*(made.get("args") or ()), *arguments] == [*(one.get("args") or ())] and all(
        (variable["name"], variable.get("value") or "") in told for variable in variables
    )
