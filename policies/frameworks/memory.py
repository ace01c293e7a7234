"""What the framework in a container with a share needs: which setting is made, lowered, kept or left alone, and why."""

from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

import msgspec

from policies.changes import AddVariable, AppendArgument, Change, ReplaceVariable
from policies.contract import MILLI_PER_GPU, MPS, GrantStrategy
from policies.frameworks.budget import Budget, Wanted
from policies.frameworks.command_line import CommandLine
from policies.frameworks.detection import Catalogue
from policies.frameworks.expansion import Allowance
from policies.frameworks.framework import Framework, Memory
from policies.frameworks.judge import Judge, OwnValue
from policies.frameworks.own_values import own_values
from policies.frameworks.own_variables import LONGEST_LOWERED
from policies.pod import Container


class Advice(msgspec.Struct, frozen=True, gc=False):
    """What one container needs."""

    framework: Framework | None = None
    changes: tuple[Change, ...] = ()  # what is added; what lowers the user's own stands with it
    own: Sequence[OwnValue] = ()
    warning: str = ""  # why nothing was set although something should be

    @property
    def kept(self) -> list[str]:
        """The user's own settings that are within the share, each once."""
        return list(dict.fromkeys(one.name for one in self.own if one.verdict == "within"))


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
    own: Sequence[OwnValue] = ()
    if not catalogue.settings.are_inert(container, line):
        recognised = [one for one in (named, image, program) if one is not None]
        names = (container.image or "", *line.words, *chain.from_iterable(line.hooks))
        judge = Judge(budget, recognised, names, allowance.count_setting)
        own = own_values(container, line, catalogue.settings, judge, allowance)
    taken = [one for one in own if one.verdict == "taken"]
    own = [one for one in own if one.verdict != "taken"] if taken else own
    framework = named if wish.name is not None else _detected(container, image, program) if wish.detects else None
    if framework is None or not wish.adds:
        first = next((one.framework for one in own if one.framework is not None), None)
        return _with_taken(Advice(framework=first, own=own), taken, container)
    place = _Place(container, line, framework, image is framework)
    advice = _advised(place, own, budget, catalogue)
    for change in advice.changes:
        if isinstance(change, ReplaceVariable):  # joined to what the user wrote
            allowance.rewrite(change.value)
    return _with_taken(advice, taken, container)


def _with_taken(advice: Advice, taken: Sequence[OwnValue], container: Container) -> Advice:
    """Add what the program is not handed: of the user's variables, and of those that are set for it."""
    if not taken:
        return advice
    handed = {variable.name for variable in container.env or ()}
    handed |= {change.name for change in advice.changes if isinstance(change, AddVariable | ReplaceVariable)}
    return msgspec.structs.replace(advice, own=[*advice.own, *(one for one in taken if one.name in handed)])


def _detected(container: Container, image: Framework | None, program: Framework | None) -> Framework | None:
    """Believe the program, but where the image takes arguments and is given nothing else."""
    if program is None or (image is not None and image.image_takes_arguments and not container.command):
        return image
    return program


class _Place(NamedTuple):
    """Where a setting would be made."""

    container: Container
    line: CommandLine
    framework: Framework
    is_own_image: bool  # whether the image is one of the framework's own

    def takes_arguments(self) -> bool:
        """Whether what is appended to `args` reaches the program. Without a command, `args` replace the image's CMD."""
        own_image = self.framework.image_takes_arguments and self.is_own_image
        if not self.line.words:
            return own_image
        if self.line.ends_options:
            return False
        if not self.container.command and self.line.words[0].startswith("-"):
            return True  # options alone go to the image's entry point, which takes them whoever built it
        if self.line.runs_through_shell:
            return False
        starts = any(self.line.starts(program) for program in self.framework.programs)
        return starts or (own_image and not self.container.command)


def _advised(place: _Place, own: Sequence[OwnValue], budget: Budget, catalogue: Catalogue) -> Advice:
    framework = place.framework
    constants = _constants(place, budget.strategy)
    if framework.memory is None:
        unheld = budget.strategy != MPS and budget.share < MILLI_PER_GPU
        warning = f"{framework.name} sizes itself by the free memory, and time-slicing sets no limit on it"
        return Advice(framework=framework, changes=constants, own=own, warning=warning if unheld else "")
    wanted = Wanted(framework.memory, budget)
    verdicts = {one.verdict for one in own if one.framework is framework and one.is_read and _stays(one, place)}
    verdicts -= {"overriding"}
    change, warning = None, ""
    if not verdicts and wanted.is_needed:
        change, warning = _setting(place, wanted, catalogue)
    if not warning and "within" not in verdicts and wanted.is_needed and _lacks_headroom(framework.memory, budget):
        warning = f"{framework.name} may not start with all of its share: give the policy some memory.headroom"
    changes = (*constants, change) if change else constants
    return Advice(framework=framework, changes=changes, own=own, warning=warning)


def _stays(one: OwnValue, place: _Place) -> bool:
    """Whether what the user has set leaves nothing to set: a text may set a variable for another program alone."""
    memory = place.framework.memory
    if memory is None or memory.spellings[0].variable is None:
        return True
    is_variable = any(one.name == spelling.variable for spelling in memory.spellings)
    return not is_variable or any(variable.name == one.name for variable in place.container.env or ())


def _lacks_headroom(memory: Memory, budget: Budget) -> bool:
    return memory.needs_headroom and budget.strategy == MPS and budget.target >= budget.granted


def _constants(place: _Place, strategy: GrantStrategy) -> tuple[Change, ...]:
    constants = place.framework.constants
    if not constants:
        return ()
    names = {variable.name for variable in place.container.env or ()}
    return tuple(
        AddVariable(constant.variable, constant.value)
        for constant in constants
        if strategy in constant.strategies and constant.variable not in names
    )


def _setting(place: _Place, wanted: Wanted, catalogue: Catalogue) -> tuple[Change | None, str]:
    """Make the setting where the user has made none; else the reason why it cannot be made."""
    spelling = wanted.memory.spellings[0]
    if too_old := _version_warning(place, catalogue):
        return None, too_old
    if spelling.variable:
        return _variable(place.container, wanted)
    argument = f"{spelling.argument}={wanted.text(spelling)}"
    if place.takes_arguments():
        return AppendArgument(argument), ""
    return None, f"{argument} cannot be added to this command line, add it yourself"


def _version_warning(place: _Place, catalogue: Catalogue) -> str:
    framework = place.framework
    since = framework.memory.since if framework.memory else None
    if since is None:
        return ""
    known = catalogue.version_of(framework, place.container)
    if known is not None and known >= tuple(int(part) for part in since.split(".")):
        return ""
    says = f"says {known[0]}.{known[1]}" if known else "does not say which it is"
    return f"no memory setting: {framework.name} has one from {since} on, the image tag {says}"


def _variable(container: Container, wanted: Wanted) -> tuple[Change | None, str]:
    """Set the variable, joined to what a variable of several settings already holds."""
    first = wanted.memory.spellings[0]
    if not first.separator:
        return AddVariable(first.name, wanted.text(first)), ""
    places = {variable.name: index for index, variable in enumerate(container.env or ())}  # the last one counts
    for spelling in wanted.memory.spellings:
        if not spelling.separator or spelling.name not in places:
            continue
        index = places[spelling.name]
        held = (container.env or [])[index].value or ""
        if len(held) > LONGEST_LOWERED:
            return None, f"{spelling.name} is too long, so {wanted.text(spelling)} could not be added to it"
        kept = [part for part in held.split(spelling.separator) if part]
        joined = spelling.separator.join([*kept, wanted.text(spelling)])
        return ReplaceVariable(index, spelling.name, joined), ""
    return AddVariable(first.name, wanted.text(first)), ""
