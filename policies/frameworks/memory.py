"""What the framework in a container with a share needs: which setting is made, lowered, kept or left alone, and why."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import TypeVar

import msgspec

from policies.changes import AddVariable, AppendArgument, Change, ReplaceVariable
from policies.contract import MILLI_PER_GPU, MPS, GrantStrategy
from policies.frameworks.allowance import Allowance
from policies.frameworks.budget import Budget, Wanted
from policies.frameworks.command_line import CommandLine
from policies.frameworks.detection import Catalogue
from policies.frameworks.framework import Framework
from policies.frameworks.judge import MISSED, Judge, OwnValue, Verdict
from policies.frameworks.made_by_changes import as_changed
from policies.frameworks.own_settings import is_argument, is_missed, is_setting, lists_of, sets
from policies.frameworks.own_values import OwnValues
from policies.frameworks.place import Place, detected, places_of
from policies.frameworks.told_variable import Told, told
from policies.pod import Container, Variable

T = TypeVar("T", bound=Change)


class Advice(msgspec.Struct, frozen=True, gc=False):
    """What one container needs."""

    framework: Framework | None = None
    changes: tuple[Change, ...] = ()  # what is added; what lowers the user's own stands with it
    own: Sequence[OwnValue] = ()
    warning: str = ""  # why nothing was set although something should be

    @property
    def kept(self) -> list[str]:
        """The user's own settings that are within the share, each once."""
        return self._names("within")

    @property
    def unread(self) -> list[str]:
        """The user's own settings that admission cannot read, and that stay whatever they are, each once."""
        return self._names("any")

    def _names(self, verdict: Verdict) -> list[str]:
        return list(dict.fromkeys(one.name for one in self.own if one.verdict == verdict))


class Wish(msgspec.Struct, frozen=True, gc=False):
    """What the pod and its policy say of the framework of one container. It decides what is added, and no more."""

    name: str | None = None  # the annotation; None: there is none
    adds: bool = True  # whether anything is added at all
    detects: bool = True


def advise(container: Container, wish: Wish, budget: Budget, catalogue: Catalogue, allowance: Allowance) -> Advice:
    """
    Say what *container* needs, and what it has already.

    Raises:
        DeniedError: If it has more settings, or makes more of its variables, than any real container.
    """
    line = CommandLine(container)
    image, program = catalogue.by_image(container), catalogue.by_program(line)
    named = catalogue.frameworks.get(wish.name) if wish.name is not None else None
    frameworks = [named] if named is not None else []
    if wish.name is None and wish.detects:
        within = catalogue.within(line, allowance.mention) if program is None else None
        frameworks = detected(container, image=image, program=program, within=within)
    places = places_of(container, line, frameworks, image) if wish.adds else []
    if catalogue.settings.are_inert(container, line):
        return _together([_advised(one, _told(one, (), budget, catalogue), (), budget, catalogue) for one in places])
    recognised = [one for one in (named, image, program) if one is not None]
    names = (container.image or "", *line.words, *chain.from_iterable(line.hooks))
    judge = Judge(budget, recognised, names, allowance.count_setting)
    found = OwnValues(container, line, catalogue.settings, judge, allowance)
    in_effect = [one for one in found.in_environment if one.name not in found.unset]
    by_place = [(place, _told(place, in_effect, budget, catalogue)) for place in places]
    set_for_it = _once(change for _, first in by_place for change in first.changes)
    own = as_changed(found, container.env or [], set_for_it, judge)
    exclusive = catalogue.settings.exclusive
    missed = [one for one in own if is_missed(one, exclusive)]
    own = [one for one in own if not is_missed(one, exclusive)]
    if by_place:
        advice = _together([_advised(place, first, own, budget, catalogue) for place, first in by_place])
    else:
        advice = Advice(framework=next((one.framework for one in own if one.framework is not None), None), own=own)
    for change in advice.changes:
        if isinstance(change, ReplaceVariable):  # joined to what the user wrote
            allowance.rewrite(change.value)
    return _with_missed(advice, missed, found, container, exclusive) if missed else advice


def _once(changes: Iterable[T]) -> tuple[T, ...]:
    """
    Set each variable once: two frameworks of a cluster's own may read the same one, and the image's counts.

    A share does before what empties the variable for the other one.
    """
    made: dict[object, T] = {}
    for one in changes:
        key = one.name if isinstance(one, AddVariable | ReplaceVariable) else one
        held = made.setdefault(key, one)
        if isinstance(held, AddVariable) and not held.value:
            made[key] = one
    return tuple(made.values())


def _lowered(env: Sequence[Variable], own: Iterable[OwnValue]) -> Sequence[Variable]:
    """Write variables as they are with what was lowered in them."""
    values = {one.change.index: one.change.value for one in own if isinstance(one.change, ReplaceVariable)}
    if not values:
        return env
    return [msgspec.structs.replace(one, value=values.get(at, one.value)) for at, one in enumerate(env)]


def _with_missed(
    advice: Advice,
    missed: Sequence[OwnValue],
    found: OwnValues,
    container: Container,
    exclusive: Mapping[str, frozenset[str]],
) -> Advice:
    """Add what the program is not handed: of the user's variables, and of those that are set for it."""
    told = {one.name for one in advice.changes if isinstance(one, AddVariable | ReplaceVariable) and one.value}
    handed = told | ({variable.name for variable in container.env or ()} - found.unset)
    sharing = told | {one.name for one in found.in_environment if sets(one)}
    # Whose other name has a value may be set to nothing.
    named = {name for name, others in exclusive.items() if name in handed or handed.isdisjoint(others)}
    own = [*advice.own]
    own += [one for one in missed if one.verdict == "taken" and one.name in handed]
    own += [one for one in missed if one.verdict == "replaced" and not sharing.isdisjoint(lists_of(one.framework))]
    own += [one for one in missed if one.verdict not in MISSED and one.name in named]
    return msgspec.structs.replace(advice, own=own)


def _together(advices: Sequence[Advice]) -> Advice:
    """Join what frameworks of one container need; the user's own settings are the same for each."""
    if not advices:
        return Advice()
    first, *others = advices
    if not others:
        return first
    return msgspec.structs.replace(
        first,
        changes=_once(chain.from_iterable(one.changes for one in advices)),
        warning="; ".join(dict.fromkeys(one.warning for one in advices if one.warning)),
    )


def _told(place: Place, set_already: Sequence[OwnValue], budget: Budget, catalogue: Catalogue) -> Told:
    """Set the framework's variable, if it has one and the environment of the container does not set it already."""
    memory = place.framework.memory
    if memory is None or memory.spellings[0].variable is None:
        return Told()
    wanted = Wanted(memory, budget)
    if not wanted.is_needed or any(is_setting(one, place.framework) for one in set_already):
        return Told()
    if too_old := _version_warning(place, catalogue):
        return Told(warning=too_old)
    return told(_lowered(place.container.env or (), set_already), place.line.words, wanted)


def _advised(place: Place, first: Told, own: Sequence[OwnValue], budget: Budget, catalogue: Catalogue) -> Advice:
    framework = place.framework
    constants = _constants(place, budget.strategy)
    if framework.memory is None:
        unheld = budget.strategy != MPS and budget.share < MILLI_PER_GPU
        warning = f"{framework.name} sizes itself by the free memory, and time-slicing sets no limit on it"
        return Advice(framework=framework, changes=constants, own=own, warning=warning if unheld else "")
    wanted = Wanted(framework.memory, budget)
    of_framework = [one for one in own if is_setting(one, framework)]
    settings = [one for one in of_framework if one.is_read]
    changes: tuple[Change, ...]
    changes, warning = first
    if framework.memory.spellings[0].variable is None:
        is_set = bool(settings) or not wanted.is_needed
        changes, warning = ((), "") if is_set else _argument(place, wanted, catalogue, is_written=bool(of_framework))
    elif any(is_argument(one, framework.memory) for one in settings):
        changes, warning = (), ""
    if without := _headroom_warning(framework, wanted, of_framework):
        warning = "; ".join(filter(None, (warning, without)))
    return Advice(framework=framework, changes=(*constants, *changes), own=own, warning=warning)


def _headroom_warning(framework: Framework, wanted: Wanted, own: Sequence[OwnValue]) -> str:
    """Say that the framework does not start, and what to do; empty if something of its share is left to it."""
    full = next((one for one in own if one.takes_all), None)
    if full is None and (not wanted.lacks_headroom or any(one.verdict == "within" for one in own)):
        return ""
    starts_not = f"{framework.name} does not start with all of its share"
    if full is not None and wanted.has_headroom:
        spellings = wanted.memory.spellings
        spelling = next((one for one in spellings if one.name == full.name), spellings[0])
        return f"{starts_not}: {full.name} is to be {wanted.text(spelling)} at most"
    if full is not None and not wanted.is_needed:
        return f"{starts_not}: let {full.name} leave about 0.5 GiB of it"
    # One sentence: a second call finds what the first one has set.
    return f"{starts_not}: leave about 0.5 GiB of it, by memory.headroom of the policy or by its own setting"


def _constants(place: Place, strategy: GrantStrategy) -> tuple[Change, ...]:
    constants = place.framework.constants
    if not constants:
        return ()
    names = {variable.name for variable in place.container.env or ()}
    return tuple(
        AddVariable(constant.variable, constant.value)
        for constant in constants
        if strategy in constant.strategies and constant.variable not in names
    )


def _argument(
    place: Place, wanted: Wanted, catalogue: Catalogue, *, is_written: bool
) -> tuple[tuple[Change, ...], str]:
    """Append the argument; else the reason why it cannot be. It may be *written* where nobody sees who reads it."""
    if too_old := _version_warning(place, catalogue):
        return (), too_old
    spelling = wanted.memory.spellings[0]
    argument = f"{spelling.argument}={wanted.text(spelling)}"
    other = catalogue.other_program(place.framework, place.line)
    if place.takes_arguments() and not other:
        return (AppendArgument(argument),), ""
    add = "see that the program gets what a variable or text says of it" if is_written else "add it yourself"
    but = f", but not behind {other}, which does not take it" if other else ""
    return (), f"{argument} cannot be added to this command line, {add}{but}"


def _version_warning(place: Place, catalogue: Catalogue) -> str:
    framework = place.framework
    since = framework.memory.since if framework.memory else None
    if since is None:
        return ""
    known = catalogue.version_of(framework, place.container)
    if known is not None and known >= tuple(int(part) for part in since.split(".")):
        return ""
    says = f"says {known[0]}.{known[1]}" if known else "does not say which it is"
    return f"no memory setting: {framework.name} has one from {since} on, the image tag {says}"
