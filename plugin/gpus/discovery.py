"""
Discovery: the GPUs of this node, read through NVML.

Drivers from 550 on are in use, so every newer call is optional, and one broken GPU must not take
down the others: what cannot be shared is skipped, with the reason.
"""

import logging
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from plugin.errors import DiscoveryError
from plugin.gpus.gpu import Gpu, VGpuId
from plugin.gpus.mps_clients import mps_clients_of
from plugin.gpus.nvml import (
    NvmlGpus,
    explained,
    if_answered,
    if_there,
    initialised,
    pci_text,
    raise_if_nvml_failed,
    text_of,
)

_log = logging.getLogger(__name__)
_Found = TypeVar("_Found")

SYSFS = Path("/sys")
_LOOK_SECONDS = 0.02  # between two looks, while nothing is known
_RETRY_SECONDS = 5.0  # once it is known that there is no GPU yet
_MIG_ENABLED = 1
_MEMORY_V2 = 0x02000028  # nvmlMemory_v2: the number of the structure, and its size
_PCIE_ROOT = re.compile(r"pci[0-9a-f]{4,5}:[0-9a-f]{2}", re.ASCII)
# NVML's numbers (nvml.h, NVML_DEVICE_ARCH_*); one that is newer than this list is not named.
_ARCHITECTURES = {5: "Volta", 6: "Turing", 7: "Ampere", 8: "Ada", 9: "Hopper", 10: "Blackwell"}


class NotShareableError(Exception):
    """One GPU that cannot be shared; the others can."""


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


Check = Callable[[Gpu], None]  # raises NotShareableError if the GPU cannot be shared as it is to be


def any_gpu(_gpu: Gpu) -> None:
    """Share whatever can be read."""


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
    wait: bool,
    ended: Callable[[float, str], bool],
    retry_seconds: float = _RETRY_SECONDS,
) -> _Found | None:
    """
    Call *look* until it finds GPUs; None from it means that nothing is known yet.

    *ended* waits that many seconds and says whether to give up: None is returned then. It is told what there is no GPU
    for, empty while that is not known. That is logged when it changes: a driver can take hours to come.

    Raises:
        DiscoveryError: What *look* raises where there is no GPU, without *wait*.
    """
    said = ""
    while True:
        try:
            if (found := look()) is not None:
                return found
        except DiscoveryError as error:
            if not wait:
                raise
            if str(error) != said:
                said = str(error)
                _log.warning("waiting for GPUs", extra={"reason": said})
        if ended(retry_seconds if said else _LOOK_SECONDS, said):
            return None


def listed(nvml: NvmlGpus) -> Listed:
    """List all GPUs; fails only where NVML as a whole does."""
    found = Listed(count=nvml.nvmlDeviceGetCount())
    for index in range(found.count):
        try:
            found.handles[index] = nvml.nvmlDeviceGetHandleByIndex(index)
            found.uuids[index] = uuid_of(nvml, found.handles[index])
        except errors_of_one(nvml) as error:
            found.errors[index] = raise_if_nvml_failed(error)
    return found


def errors_of_one(nvml: NvmlGpus) -> tuple[type[Exception], ...]:
    """Name the exceptions by which a GPU fails to be read; `raise_if_nvml_failed` says whether the others can be."""
    return (nvml.NVMLError, NotShareableError, UnicodeDecodeError)


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


def uuid_of(nvml: NvmlGpus, handle: Any) -> str:
    """
    Ask for the UUID of a GPU.

    Raises:
        NotShareableError: If no device ID can be made of it.
    """
    uuid = text_of(nvml.nvmlDeviceGetUUID(handle))
    if VGpuId.parse(str(VGpuId(uuid, 0))) is None:
        raise NotShareableError(f"its UUID {uuid!r} cannot be part of a device ID")
    return uuid


def in_mig_mode(nvml: NvmlGpus, handle: Any) -> bool:
    """Ask whether a GPU is cut into instances, which are not ours."""
    mode = if_there(nvml, lambda: nvml.nvmlDeviceGetMigMode(handle))
    return bool(mode) and mode[0] == _MIG_ENABLED


def minor_of(nvml: NvmlGpus, handle: Any) -> int | None:
    """Ask for the number of a GPU's device node; None if there is none."""
    minor: int | None = if_answered(nvml, lambda: nvml.nvmlDeviceGetMinorNumber(handle))
    return minor


def pci_address(nvml: NvmlGpus, handle: Any) -> str | None:
    """Ask where on the PCI bus a GPU is, as the kernel writes it; None if it is not known."""
    info = if_answered(nvml, lambda: nvml.nvmlDeviceGetPciInfo(handle))
    return None if info is None else pci_text(info)


def read_gpu(nvml: NvmlGpus, index: int, handle: Any, *, sysfs: Path = SYSFS) -> Gpu:
    """
    Read the GPU with NVML's number *index*; errors of NVML pass through.

    Raises:
        NotShareableError: If it cannot be shared.
    """
    uuid = uuid_of(nvml, handle)
    if in_mig_mode(nvml, handle):
        raise NotShareableError(f"{uuid} is in MIG mode, its instances are shared by NVIDIA's own plugin")
    memory = if_there(nvml, lambda: nvml.nvmlDeviceGetMemoryInfo(handle))
    if memory is None or memory.total <= 0:
        raise NotShareableError(f"{uuid} reports no memory of its own to share")
    reserved_bytes = _reserved_bytes(nvml, handle, total_bytes=int(memory.total))
    return Gpu(
        uuid=uuid,
        index=index,
        minor=minor_of(nvml, handle),
        model=text_of(if_there(nvml, lambda: nvml.nvmlDeviceGetName(handle)) or "unknown"),
        memory_bytes=int(memory.total) - (reserved_bytes or 0),
        numa_node=_numa_node(nvml, handle, sysfs=sysfs),
        reserved_bytes=reserved_bytes,
        architecture=_ARCHITECTURES.get(if_answered(nvml, lambda: nvml.nvmlDeviceGetArchitecture(handle)) or 0, ""),
        pcie_root=_pcie_root(nvml, handle, sysfs=sysfs),
        mps_clients=mps_clients_of(nvml, handle),
    )


def _discovered(nvml: NvmlGpus, sysfs: Path, check: Check) -> Discovered:
    found = listed(nvml)
    gpus: dict[str, Gpu] = {}
    errors = dict(found.errors)
    for index in found.uuids:
        try:
            gpu = read_gpu(nvml, index, found.handles[index], sysfs=sysfs)
            check(gpu)
        except errors_of_one(nvml) as error:
            errors[index] = raise_if_nvml_failed(error)
        else:
            gpus[gpu.uuid] = gpu
    skipped = tuple(not_shared(index, found.count, errors[index]) for index in sorted(errors))
    if not gpus:
        raise DiscoveryError(no_gpus(skipped))
    return Discovered(gpus=tuple(gpus.values()), skipped=skipped, driver=driver_version(nvml))


def _reserved_bytes(nvml: NvmlGpus, handle: Any, *, total_bytes: int) -> int | None:
    """
    Ask how much of the memory the driver keeps for itself, which is in NVML's total and not in CUDA's.

    Drivers before 510 do not say.
    """
    memory = if_answered(nvml, lambda: nvml.nvmlDeviceGetMemoryInfo(handle, version=_MEMORY_V2))
    reserved_bytes = None if memory is None else int(memory.reserved)
    return reserved_bytes if reserved_bytes is not None and 0 <= reserved_bytes < total_bytes else None


def _numa_node(nvml: NvmlGpus, handle: Any, *, sysfs: Path) -> int | None:
    """
    Say which CPUs are next to the GPU.

    The kernel knows. NVML is asked second: its answer is the GPU's own node where the GPU is one (Grace
    Hopper), and no CPU is in that.
    """
    node = _sysfs_numa_node(nvml, handle, sysfs=sysfs)
    if node is None:
        node = if_answered(nvml, lambda: nvml.nvmlDeviceGetNumaNodeId(handle))
    return node if node is not None and node >= 0 else None


def _sysfs_numa_node(nvml: NvmlGpus, handle: Any, *, sysfs: Path) -> int | None:
    address = pci_address(nvml, handle)
    if address is None:
        return None
    try:
        node = int((sysfs / "bus/pci/devices" / address / "numa_node").read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None
    return node if node >= 0 else None


def _pcie_root(nvml: NvmlGpus, handle: Any, *, sysfs: Path) -> str:
    """Say below which root of the PCI bus the GPU is: the first directory of its device's path that is one."""
    address = pci_address(nvml, handle)
    if address is None:
        return ""
    try:
        path = (sysfs / "bus/pci/devices" / address).resolve(strict=True)
    except (OSError, RuntimeError):
        return ""
    return next((part for part in path.parts if _PCIE_ROOT.fullmatch(part)), "")
