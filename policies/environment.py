"""The variables of a container that would lift a limit: denied or removed, as the policy says."""

from policies.changes import RemoveVariable
from policies.contract import (
    NO_DEVICES,
    RESERVED_VARIABLE_PREFIXES,
    RESERVED_VARIABLES,
    VISIBLE_DEVICES,
    is_reserved,
)
from policies.denial import Findings
from policies.errors import quoted
from policies.pod import Slot, Variable, named
from policies.policy import EffectivePolicy

# One look at each variable's first letters is enough for most of them.
_FIRST_LETTERS = tuple({f"{name.partition('_')[0]}_" for name in (*RESERVED_VARIABLES, *RESERVED_VARIABLE_PREFIXES)})


def reserved(slot: Slot, policy: EffectivePolicy, found: Findings, *, shares: bool) -> tuple[RemoveVariable, ...]:
    """Find the variables that the pod may not set; they are denied, or removed with a warning."""
    if not slot.container.env:
        return ()
    variables = [
        RemoveVariable(index, variable.name)
        for index, variable in enumerate(slot.container.env)
        if variable.name.startswith(_FIRST_LETTERS)
        and is_reserved(variable.name)
        # What hides the GPUs from a container without a share is ours.
        and (shares or variable.name != VISIBLE_DEVICES or variable.value != NO_DEVICES)
    ]
    hidden = False
    for one in variables:
        if not shares and _hides(slot.container.env[one.index]):
            if hidden:
                found.change(None)
            hidden = True
            continue
        if policy.policy.environment.reserved == "deny":
            why = "the device plugin sets it" if shares else "a container without a share sees no GPU"
            found.deny(
                "ReservedEnvironment",
                f"{named(slot)} sets {quoted(one.name)}, which is reserved: it sets the limits of a share",
                f"Remove it from env: {why}",
                by=policy.source("environment.reserved"),
            )
        else:
            found.change(f"{quoted(slot.name, 30)}: {quoted(one.name)} is reserved and was removed")
    return tuple(variables)


def check_env_from(slot: Slot, policy: EffectivePolicy, found: Findings) -> None:
    """Warn of variables that admission cannot see, or deny them."""
    if not slot.container.env_from:
        return
    if policy.policy.environment.env_from == "deny":
        found.deny(
            "ReservedEnvironment",
            f"{named(slot)} takes variables by envFrom, where admission cannot see reserved ones",
            "Name each variable in env with valueFrom",
            by=policy.source("environment.envFrom"),
        )
        return
    found.warnings.append(f"{quoted(slot.name, 30)}: envFrom is not inspected, it could set reserved variables")


def _hides(variable: Variable) -> bool:
    """Whether a variable means what ours does, which takes its place: some runtimes read this one as all GPUs."""
    # NVIDIA/nvidia-container-toolkit#1555
    return variable.name == VISIBLE_DEVICES and variable.value == "none"
