"""What the framework in a container with a share needs: which setting is made, lowered, kept or left alone, and why."""

import msgspec

from policies.changes import AddVariable, AppendArgument, Change, ReplaceVariable
from policies.contract import MILLI_PER_GPU, MPS, SharingStrategy
from policies.frameworks.budget import Budget, Wanted
from policies.frameworks.detection import Catalogue, ends_options, runs_through_shell, starts_one_of
from policies.frameworks.framework import Framework, Memory
from policies.frameworks.own_values import Kept, TooMuch, own_values
from policies.pod import Container


class Advice(msgspec.Struct, frozen=True, gc=False):
    """What one container needs."""

    framework: Framework | None = None
    changes: tuple[Change, ...] = ()
    kept: tuple[Kept, ...] = ()  # the user's own, within the share
    too_much: tuple[TooMuch, ...] = ()  # the user's own, above the share
    warning: str = ""  # why nothing was set although something should be


NOTHING = Advice()


def advise(container: Container, framework: Framework, budget: Budget, catalogue: Catalogue) -> Advice:
    """Say what *framework* needs in *container*."""
    constants = _constants(container, framework, budget.strategy)
    if framework.memory is None:
        unheld = budget.strategy != MPS and budget.share < MILLI_PER_GPU
        warning = f"{framework.name} sizes itself by the free memory, and time-slicing sets no limit on it"
        return Advice(framework=framework, changes=constants, warning=warning if unheld else "")
    wanted = Wanted(framework.memory, budget)
    found = own_values(container, wanted)
    change, warning = None, ""
    if not found and wanted.is_needed:
        change, warning = _setting(container, framework, wanted, catalogue)
    is_ours = not any(isinstance(one, Kept) for one in found)
    if not warning and is_ours and wanted.is_needed and _lacks_headroom(framework.memory, budget):
        warning = f"{framework.name} may not start with all of its share: give the policy some memory.headroom"
    return Advice(
        framework=framework,
        changes=(*constants, change) if change else constants,
        kept=tuple(one for one in found if isinstance(one, Kept)),
        too_much=tuple(one for one in found if isinstance(one, TooMuch)),
        warning=warning,
    )


def advise_on_own(container: Container, budget: Budget, catalogue: Catalogue) -> Advice:
    """Check the memory settings in a container whose framework is not known, and set none."""
    for framework in catalogue.with_setting(container):
        if framework.memory is None:
            continue
        found = own_values(container, Wanted(framework.memory, budget))
        if found:
            return Advice(
                framework=framework,
                kept=tuple(one for one in found if isinstance(one, Kept)),
                too_much=tuple(one for one in found if isinstance(one, TooMuch)),
            )
    return NOTHING


def _lacks_headroom(memory: Memory, budget: Budget) -> bool:
    return memory.needs_headroom and budget.strategy == MPS and budget.target >= budget.granted


def _constants(container: Container, framework: Framework, strategy: SharingStrategy) -> tuple[Change, ...]:
    if not framework.constants:
        return ()
    names = {variable.name for variable in container.env or ()}
    return tuple(
        AddVariable(constant.variable, constant.value)
        for constant in framework.constants
        if strategy in constant.strategies and constant.variable not in names
    )


def _setting(
    container: Container, framework: Framework, wanted: Wanted, catalogue: Catalogue
) -> tuple[Change | None, str]:
    """Make the setting where the user has made none; else the reason why it cannot be made."""
    spelling = wanted.memory.spellings[0]
    if too_old := _version_warning(container, framework, catalogue):
        return None, too_old
    if spelling.variable:
        return _variable(container, wanted)
    argument = f"{spelling.argument}={wanted.text(spelling)}"
    if _takes_arguments(container, framework, catalogue):
        return AppendArgument(argument), ""
    return None, f"{argument} cannot be added to this command line, add it yourself"


def _version_warning(container: Container, framework: Framework, catalogue: Catalogue) -> str:
    since = framework.memory.since if framework.memory else None
    if since is None:
        return ""
    known = catalogue.version_of(framework, container)
    if known is not None and known >= tuple(int(part) for part in since.split(".")):
        return ""
    says = f"says {known[0]}.{known[1]}" if known else "does not say which it is"
    return f"no memory setting: {framework.name} has one from {since} on, the image tag {says}"


def _variable(container: Container, wanted: Wanted) -> tuple[Change | None, str]:
    """Set the variable, joined to what a variable of several settings already holds."""
    for spelling in wanted.memory.spellings:
        # From the end: of equal names the last one counts.
        for index, variable in reversed([*enumerate(container.env or ())]):
            if not spelling.separator or variable.name != spelling.variable:
                continue
            if variable.value_from is not None:
                return (
                    None,
                    f"{variable.name} is a reference, so {wanted.text(spelling)} could not be added to it",
                )
            kept = [part for part in (variable.value or "").split(spelling.separator) if part]
            joined = spelling.separator.join([*kept, wanted.text(spelling)])
            return ReplaceVariable(index, variable.name, joined), ""
    first = wanted.memory.spellings[0]
    return AddVariable(first.name, wanted.text(first)), ""


def _takes_arguments(container: Container, framework: Framework, catalogue: Catalogue) -> bool:
    """Whether what is appended to `args` reaches the program. Without a command, `args` replace the image's CMD."""
    line = [*(container.command or ()), *(container.args or ())]
    own_image = framework.image_takes_arguments and catalogue.is_image_of(framework, container)
    if not line:
        return own_image
    if "--" in line and ends_options(line):
        return False
    if container.command:
        return not runs_through_shell(line) and starts_one_of(line, framework.programs)
    if line[0].startswith("-"):
        return True  # options alone go to the image's entry point, which takes them whoever built it
    return not runs_through_shell(line) and (own_image or starts_one_of(line, framework.programs))
