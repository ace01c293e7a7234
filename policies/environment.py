"""The variables of a container that would lift a limit: denied or removed, as the policy says."""

from policies.changes import RemoveVariable
from policies.contract import (
    NO_DEVICES,
    RESERVED_VARIABLE_PREFIXES,
    RESERVED_VARIABLES,
    VISIBLE_DEVICES,
    is_reserved,
)
from policies.denial import DeniedError
from policies.errors import quoted
from policies.pod import Slot, Variable, named
from policies.policy import EffectivePolicy

# One look at each variable's first letters is enough for most of them.
_FIRST_LETTERS = tuple({f"{name.partition('_')[0]}_" for name in (*RESERVED_VARIABLES, *RESERVED_VARIABLE_PREFIXES)})


def reserved(slot: Slot, policy: EffectivePolicy, warnings: list[str], *, shares: bool) -> tuple[RemoveVariable, ...]:
    """
    Find the variables that the pod may not set.

    Raises:
        DeniedError: If there is one and the policy denies it.
    """
    if not slot.container.env:
        return ()
    found = [
        RemoveVariable(index, variable.name)
        for index, variable in enumerate(slot.container.env)
        if variable.name.startswith(_FIRST_LETTERS)
        and is_reserved(variable.name)
        # What hides the GPUs from a container without a share is ours.
        and (shares or variable.name != VISIBLE_DEVICES or variable.value != NO_DEVICES)
    ]
    reaching = [one for one in found if shares or not _hides(slot.container.env[one.index])]
    if reaching and policy.policy.environment.reserved == "deny":
        why = "the device plugin sets it" if shares else "a container without a share sees no GPU"
        raise DeniedError(
            "ReservedEnvironment",
            f"{named(slot)} sets {quoted(reaching[0].name)}, which decides what a share is held to",
            f"Remove it from env: {why}",
            by=policy.source("environment.reserved"),
        )
    warnings += [f"{quoted(slot.name, 30)}: {quoted(one.name)} is reserved and was removed" for one in reaching]
    return tuple(found)


def check_env_from(slot: Slot, policy: EffectivePolicy, warnings: list[str]) -> None:
    """
    Warn of variables that admission cannot see.

    Raises:
        DeniedError: If the policy denies them.
    """
    if not slot.container.env_from:
        return
    if policy.policy.environment.env_from == "deny":
        raise DeniedError(
            "ReservedEnvironment",
            f"{named(slot)} takes variables by envFrom, where admission cannot see reserved ones",
            "Name each variable in env with valueFrom",
            by=policy.source("environment.envFrom"),
        )
    warnings.append(f"{quoted(slot.name, 30)}: envFrom is not inspected, it could set reserved variables")


def _hides(variable: Variable) -> bool:
    """Whether a variable means what ours does, which takes its place: some runtimes read this one as all GPUs."""
    # NVIDIA/nvidia-container-toolkit#1555
    return variable.name == VISIBLE_DEVICES and variable.value == "none"
