"""The variables of a container that would lift a limit: denied or removed, as the policy says."""

from policies.changes import RemoveVariable
from policies.contract import (
    COMPUTE_CAPABILITIES,
    DRIVER_CAPABILITIES,
    MPS,
    NO_DEVICES,
    RESERVED_VARIABLE_PREFIXES,
    RESERVED_VARIABLES,
    VISIBLE_DEVICES,
    SharingStrategy,
    is_reserved,
)
from policies.denial import Findings
from policies.errors import quoted
from policies.pod import Slot, Variable, named
from policies.policy import EffectivePolicy

# One look at each variable's first letters is enough for most of them.
_FIRST_LETTERS = tuple({f"{name.partition('_')[0]}_" for name in (*RESERVED_VARIABLES, *RESERVED_VARIABLE_PREFIXES)})


def reserved(
    slot: Slot, policy: EffectivePolicy, found: Findings, *, shares: SharingStrategy | None
) -> tuple[RemoveVariable, ...]:
    """
    Find the variables that the pod may not set; they are denied, or removed with a warning.

    *shares*: the strategy of the container's share, None if it has none.
    """
    if not slot.container.env:
        return ()
    variables = [
        RemoveVariable(index, variable.name)
        for index, variable in enumerate(slot.container.env)
        if variable.name.startswith(_FIRST_LETTERS) and (_decides(variable, shares) or _draws(variable, shares))
    ]
    hidden = False
    for one in variables:
        if shares is None and _hides(slot.container.env[one.index]):
            if hidden:
                found.change(None)
            hidden = True
            continue
        if policy.policy.environment.reserved == "strip":
            found.change(f"{quoted(slot.name, 30)}: {quoted(one.name)} is reserved and was removed")
            continue
        what, fix = _why(one.name, shares)
        found.deny(
            "ReservedEnvironment",
            f"{named(slot)} sets {quoted(one.name)}{what}",
            f"Remove it from env: {fix}",
            by=policy.source("environment.reserved"),
        )
    return tuple(variables)


def _why(name: str, shares: SharingStrategy | None) -> tuple[str, str]:
    """Say why a variable is denied, and why the container can do without."""
    if name == DRIVER_CAPABILITIES:
        most = ", ".join(COMPUTE_CAPABILITIES)
        return f" to more than {most}: MPS limits no graphics", "the default is compute and utility"
    fix = "a container without a share sees no GPU" if shares is None else "the device plugin sets it"
    return ", which is reserved: it sets the limits of a share", fix


def _decides(variable: Variable, shares: SharingStrategy | None) -> bool:
    """Whether a variable decides about limits, and is not what hides the GPUs from a container without a share."""
    is_ours = shares is None and variable.name == VISIBLE_DEVICES and variable.value == NO_DEVICES
    return is_reserved(variable.name) and not is_ours


def _draws(variable: Variable, shares: SharingStrategy | None) -> bool:
    """Whether a container with a share under MPS gets what draws as well, or may: a reference cannot be read."""
    if shares != MPS or variable.name != DRIVER_CAPABILITIES:
        return False
    parts = (variable.value or "").split(",")
    return bool(variable.value_from) or any(part.strip() not in ("", *COMPUTE_CAPABILITIES) for part in parts)


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
