"""GPUs that an earlier plugin shared since the machine was started, and that NVML does not reach any more."""

from collections.abc import Collection, Iterable, Mapping

import msgspec

from plugin.gpus.gpu import Gpu
from plugin.health.gpu_state import NEED_RESET
from plugin.health.reports import Look
from plugin.health.state import Fault, GpuHealth
from policies.mig import names_instance

_MIB = 1024 * 1024


def why_not_reached(look: Look | None) -> str:
    """Say why nobody can use a GPU that NVML sees so, or does not list; empty if NVML reaches it."""
    if look is None:
        return "NVML does not list it"
    if look.problem:
        return f"NVML does not reach it: {look.problem}"
    return "it is in MIG mode" if look.in_mig_mode else ""


def matters(uuid: str, faults: Iterable[Fault], *, look: Look | None, held: Collection[str]) -> bool:
    """
    Whether a GPU that is missing is still to be shown.

    It is while containers hold something of it, and where it had failed: nobody has repaired it. A MIG instance, or a
    GPU in MIG mode, is not for a fault alone: instances are destroyed, and the mode is set, on purpose.
    """
    is_on_purpose = names_instance(uuid) or (look is not None and look.in_mig_mode)
    return uuid in held or (has_failed(faults) and not is_on_purpose)


def remembered(before: GpuHealth, faults: tuple[Fault, ...]) -> GpuHealth | None:
    """Say what is remembered of a GPU that is missing and no longer shown: that it has failed; None for nothing."""
    return msgspec.structs.replace(before, faults=faults) if has_failed(faults) else None


def has_failed(faults: Iterable[Fault]) -> bool:
    """Whether a GPU has a fault that its absence does not end."""
    return any(fault.source in NEED_RESET for fault in faults)


def as_reached(health: GpuHealth, reached: Mapping[str, Gpu]) -> Gpu | None:
    """Say what a GPU was when it was last reached; None for a MIG instance of which an older plugin wrote nothing."""
    if health.uuid in reached:
        return reached[health.uuid]
    if names_instance(health.uuid):
        return None
    return Gpu(
        uuid=health.uuid,
        index=health.index,
        minor=None,
        model=health.model,
        memory_bytes=health.memory_mib * _MIB,
        numa_node=None,
        reserved_bytes=None if health.reserved_mib is None else health.reserved_mib * _MIB,
    )
