"""The variables of a container that would lift a limit: denied or removed, as the policy says."""

from collections.abc import Iterable
from typing import Final

from policies.changes import RemoveVariable
from policies.contract import (
    COMPUTE_CAPABILITIES,
    DRIVER_CAPABILITIES,
    HIDES,
    PARTITION_VARIABLES,
    RESERVED_VARIABLE_PREFIXES,
    RESERVED_VARIABLES,
    VISIBLE_DEVICES,
    GrantStrategy,
    is_denied,
    is_reserved,
)
from policies.denial import Findings
from policies.errors import quoted
from policies.pod import Slot, Variable, named
from policies.policy import EffectivePolicy

_NAMES = (*RESERVED_VARIABLES, *RESERVED_VARIABLE_PREFIXES, *PARTITION_VARIABLES)
_WHOLE_NAMES = frozenset({*RESERVED_VARIABLES, *PARTITION_VARIABLES, DRIVER_CAPABILITIES})
_FIRST_LETTERS = tuple({f"{name.partition('_')[0]}_" for name in _NAMES})

# The first words of reserved names, which other variables have as well: NVIDIA_API_KEY, CUDA_HOME.
_COMMON_PREFIXES: Final = frozenset(
    ("", *_FIRST_LETTERS, *(letters.removesuffix("_") for letters in _FIRST_LETTERS)),
)


def reserved(
    slot: Slot,
    policy: EffectivePolicy,
    found: Findings,
    *,
    shares: GrantStrategy | None,
    partitioned: bool = False,
) -> tuple[RemoveVariable, ...]:
    """
    Find the variables that the pod may not set; they are denied, or removed with a warning.

    *shares*: the strategy of the container's share, None if it has none; *partitioned*: others have partitions.
    """
    if not slot.container.env or not _may_hold_reserved(slot.container.env):
        return ()
    variables = [
        RemoveVariable(index, variable.name)
        for index, variable in enumerate(slot.container.env)
        if variable.name.startswith(_FIRST_LETTERS) and _is_denied(variable, shares, partitioned=partitioned)
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


def _may_hold_reserved(env: Iterable[Variable]) -> bool:
    """Look at all names at once: in most containers none of them is reserved, or begins or goes on as such a one."""
    names = [one.name for one in env]
    return not _WHOLE_NAMES.isdisjoint(names) or any(map(" ".join(names).__contains__, RESERVED_VARIABLE_PREFIXES))


def _why(name: str, shares: GrantStrategy | None) -> tuple[str, str]:
    """Say why a variable is denied, and why the container can do without."""
    if name == DRIVER_CAPABILITIES:
        most = ", ".join(COMPUTE_CAPABILITIES)
        return f" to more than {most}: MPS limits no graphics", "the default is compute and utility"
    fix = "a container without a share sees no GPU" if shares is None else "the device plugin sets it"
    return ", which is reserved: it sets the limits of a share", fix


def _is_denied(variable: Variable, shares: GrantStrategy | None, *, partitioned: bool) -> bool:
    """Whether a variable decides about limits, and is not what hides the GPUs from a container without a share."""
    if shares is not None:
        value = None if variable.value_from is not None else variable.value or ""
        return is_denied(variable.name, value, under=shares)
    return is_reserved(variable.name, partitioned=partitioned) and HIDES.get(variable.name, ...) != variable.value


def check_env_from(slot: Slot, policy: EffectivePolicy, found: Findings, *, overridden: bool) -> None:
    """
    Deny variables that admission cannot see, or warn of them, where one could lift a limit.

    *overridden* says that the limits override whatever the pod sets: the container runtime sets them last.
    """
    if not slot.container.env_from:
        return
    match policy.policy.environment.env_from:
        case "deny":
            found.deny(
                "ReservedEnvironment",
                f"{named(slot)} takes variables by envFrom, where admission cannot see reserved ones",
                "Name each variable in env with valueFrom",
                by=policy.source("environment.envFrom"),
            )
        case None if not overridden:
            found.deny(
                "ReservedEnvironment",
                f"{named(slot)} takes variables by envFrom, which could lift limits that are variables themselves",
                "Name each variable in env with valueFrom: docs/policies.md says where envFrom is admitted",
            )
        case "allow" if not overridden:
            found.warn(f"{quoted(slot.name, 30)}: envFrom is not inspected, it could set reserved variables")


def check_prefixes(slot: Slot, found: Findings, *, partitioned: bool = False) -> None:
    """
    Deny an envFrom whose prefix is that of reserved variables, whatever lies behind it.

    Under `CUDA_MPS_` every key makes one, and `NVIDIA_VIS` can be meant for one alone. `NVIDIA_` or no prefix may as
    well be for other variables: they are no more than any envFrom.
    """
    for source in slot.container.env_from or ():
        if source.prefix and _makes_reserved(source.prefix, partitioned=partitioned):
            found.deny(
                "ReservedEnvironment",
                f"{named(slot)} has an envFrom with the prefix {quoted(source.prefix)}, which makes reserved variables",
                "Use another prefix, or none",
            )


def _makes_reserved(prefix: str, *, partitioned: bool) -> bool:
    if prefix in _COMMON_PREFIXES:
        return False
    names = _NAMES if partitioned else (*RESERVED_VARIABLES, *RESERVED_VARIABLE_PREFIXES)
    return any(name.startswith(prefix) or prefix.startswith(name) for name in names)


def _hides(variable: Variable) -> bool:
    """Whether a variable means what ours does, which takes its place: some runtimes read this one as all GPUs."""
    # NVIDIA/nvidia-container-toolkit#1555
    return variable.name == VISIBLE_DEVICES and variable.value == "none"
