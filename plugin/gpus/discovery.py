"""
Discovery: the GPUs of this node, read through NVML.

Drivers from 550 on are in use, so every newer call is optional, and one broken GPU must not take
down the others: what cannot be shared is skipped, with the reason.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any, TypeVar

from plugin.errors import DiscoveryError
from plugin.gpus.gpu import Gpu
from plugin.gpus.mig import list_instances, shareable_instances
from plugin.gpus.nvml import NvmlGpus, count_of, explained, if_answered, initialised, raise_if_nvml_failed, text_of
from plugin.gpus.reading import (
    SYSFS,
    Check,
    NotShareableError,
    any_gpu,
    errors_of_one,
    in_mig_mode,
    read_gpu,
    uuid_of,
)

_log = logging.getLogger(__name__)
_Found = TypeVar("_Found")

_LOOK_SECONDS = 0.02  # between two looks, while nothing is known
_RETRY_SECONDS = 5.0  # once it is known that there is no GPU yet


@dataclass(frozen=True, slots=True, kw_only=True)
class Discovered:
    """The GPUs that were found."""

    gpus: tuple[Gpu, ...]
    skipped: tuple[str, ...] = ()  # one sentence for each GPU that cannot be shared
    driver: str = ""  # version; empty if unknown


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """What NVML lists, by its number of each GPU; one that cannot say who it is has an error."""

    count: int
    handles: dict[int, Any] = field(default_factory=dict)
    uuids: dict[int, str] = field(default_factory=dict)
    errors: dict[int, Exception] = field(default_factory=dict)


def discover(nvml: NvmlGpus, *, sysfs: Path = SYSFS, check: Check = any_gpu) -> Discovered:
    """
    Read every GPU that can be shared, in NVML's order, which is that of the PCI bus.

    Raises:
        DiscoveryError: If NVML does not start, sees no GPU, or none that can be shared.
    """
    try:
        with initialised(nvml):
            return _discovered(nvml, sysfs, check)
    except nvml.NVMLError as error:
        raise DiscoveryError(explained(error)) from error


def wait_for_gpus(
    look: Callable[[], _Found | None],
    *,
    wait_seconds: float,
    ended: Callable[[float, str], bool],
    retry_seconds: float = _RETRY_SECONDS,
    clock: Callable[[], float] = monotonic,
) -> _Found | None:
    """
    Call *look* until it finds GPUs; None from it means that nothing is known yet.

    *ended* waits that many seconds and says whether to give up: None is returned then. It is told what there is no GPU
    for, empty while that is not known. That is logged when it changes: a driver can take hours to come.

    Raises:
        DiscoveryError: What *look* raises where there is no GPU after *wait_seconds*.
    """
    said, until_seconds = "", clock() + wait_seconds
    while True:
        try:
            if (found := look()) is not None:
                return found
        except DiscoveryError as error:
            if clock() >= until_seconds:
                raise
            if str(error) != said:
                said = str(error)
                _log.warning("waiting for GPUs", extra={"reason": said})
        if ended(retry_seconds if said else _LOOK_SECONDS, said):
            return None


def listed(nvml: NvmlGpus) -> Listed:
    """List all GPUs; fails only where NVML as a whole does."""
    found = Listed(count=count_of(nvml))
    for index in range(found.count):
        try:
            found.handles[index] = nvml.nvmlDeviceGetHandleByIndex(index)
            found.uuids[index] = uuid_of(nvml, found.handles[index])
        except errors_of_one(nvml) as error:
            found.errors[index] = raise_if_nvml_failed(error)
    return found


def no_gpus(skipped: Sequence[str]) -> str:
    """Say why there is no GPU, where NVML works; *skipped* has a sentence for each GPU that cannot be shared."""
    why = "; ".join(skipped) or "NVML sees no GPU: is one attached to this node and passed to the container?"
    return f"no GPU to share: {why}"


def not_shared(index: int, count: int, error: Exception) -> str:
    """Say that one of *count* GPUs cannot be shared."""
    return f"GPU {index} of {count} cannot be shared: {error}"


def driver_version(nvml: NvmlGpus) -> str:
    """Ask for the driver's version; empty if it is unknown."""
    return text_of(if_answered(nvml, nvml.nvmlSystemGetDriverVersion) or "")


def _discovered(nvml: NvmlGpus, sysfs: Path, check: Check) -> Discovered:
    found = listed(nvml)
    gpus: dict[str, Gpu] = {}
    errors = dict(found.errors)
    for index in found.uuids:
        handle = found.handles[index]
        try:
            is_cut = in_mig_mode(nvml, handle)
            gpu = read_gpu(nvml, index, handle, is_cut=is_cut, sysfs=sysfs)
            if is_cut:
                instances, why = shareable_instances(nvml, gpu, handle, list_instances(nvml, handle), check=check)
                gpus |= {one.uuid: one for one in instances}
                if why:
                    errors[index] = NotShareableError(why)
                continue
            check(gpu)
        except errors_of_one(nvml) as error:
            errors[index] = raise_if_nvml_failed(error)
        else:
            gpus[gpu.uuid] = gpu
    skipped = tuple(not_shared(index, found.count, errors[index]) for index in sorted(errors))
    if not gpus:
        raise DiscoveryError(no_gpus(skipped))
    return Discovered(gpus=tuple(gpus.values()), skipped=skipped, driver=driver_version(nvml))
