"""
One GPU, read through NVML.

Every newer call is optional: drivers from 550 on are in use.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from plugin.gpus.gpu import Gpu, VGpuId
from plugin.gpus.mps_clients import mps_clients_of
from plugin.gpus.nvml import NOT_TOLD, NvmlGpus, if_answered, if_there, number_of, pci_text, text_of

SYSFS = Path("/sys")
_MIG_ENABLED = 1
_MEMORY_V2 = 0x02000028  # nvmlMemory_v2: the number of the structure, and its size
_PCIE_ROOT = re.compile(r"pci[0-9a-f]{4,5}:[0-9a-f]{2}", re.ASCII)
# NVML's numbers (nvml.h, NVML_DEVICE_ARCH_*); one that is newer than this list is not named.
_ARCHITECTURES = {5: "Volta", 6: "Turing", 7: "Ampere", 8: "Ada", 9: "Hopper", 10: "Blackwell"}


class NotShareableError(Exception):
    """One GPU that cannot be shared; the others can."""


Check = Callable[[Gpu], None]  # raises NotShareableError if the GPU cannot be shared as it is to be


def any_gpu(_gpu: Gpu) -> None:
    """Share whatever can be read."""


def errors_of_one(nvml: NvmlGpus) -> tuple[type[Exception], ...]:
    """Name the exceptions by which a GPU fails to be read; `raise_if_nvml_failed` says whether the others can be."""
    return (nvml.NVMLError, NotShareableError, UnicodeDecodeError)


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
    """Ask whether a GPU is cut into MIG instances."""
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


def reach(nvml: NvmlGpus, handle: Any, *, is_cut: bool) -> None:
    """
    Ask a GPU for what NVML does not know by heart, unlike its UUID; errors of NVML pass through.

    One that *is_cut* into MIG instances need not tell it: see `read_gpu`.
    """
    try:
        nvml.nvmlDeviceGetMemoryInfo(handle)
    except nvml.NVMLError as error:
        if not (is_cut and number_of(error) in NOT_TOLD):
            raise


def read_gpu(nvml: NvmlGpus, index: int, handle: Any, *, is_cut: bool, sysfs: Path = SYSFS) -> Gpu:
    """
    Read the GPU with NVML's number *index*; errors of NVML pass through.

    One that *is_cut* into MIG instances is read for those, and has no memory itself: NVML tells that only who may
    monitor MIG, and that of an instance everybody (nvml.h, nvmlDeviceGetMemoryInfo).

    Raises:
        NotShareableError: If it cannot be shared.
    """
    uuid = uuid_of(nvml, handle)
    memory_bytes, reserved_bytes = (0, None) if is_cut else memory_of(nvml, handle, uuid=uuid)
    return Gpu(
        uuid=uuid,
        index=index,
        minor=minor_of(nvml, handle),
        model=text_of(if_there(nvml, lambda: nvml.nvmlDeviceGetName(handle)) or "unknown"),
        memory_bytes=memory_bytes,
        numa_node=_numa_node(nvml, handle, sysfs=sysfs),
        reserved_bytes=reserved_bytes,
        architecture=_ARCHITECTURES.get(if_answered(nvml, lambda: nvml.nvmlDeviceGetArchitecture(handle)) or 0, ""),
        pcie_root=_pcie_root(nvml, handle, sysfs=sysfs),
        mps_clients=mps_clients_of(nvml, handle),
    )


def memory_of(nvml: NvmlGpus, handle: Any, *, uuid: str) -> tuple[int, int | None]:
    """
    Ask for the bytes of memory that programs can take of a GPU or MIG instance, and those that the driver reserves.

    Raises:
        NotShareableError: If it has no memory of its own.
    """
    memory = if_there(nvml, lambda: nvml.nvmlDeviceGetMemoryInfo(handle))
    if memory is None or memory.total <= 0:
        raise NotShareableError(f"{uuid} reports no memory of its own to share")
    reserved_bytes = _reserved_bytes(nvml, handle, total_bytes=int(memory.total))
    return int(memory.total) - (reserved_bytes or 0), reserved_bytes


def read_whole(nvml: NvmlGpus, index: int, handle: Any, *, problem: str = "", sysfs: Path = SYSFS) -> Gpu:
    """
    Read the GPU with NVML's number *index*, to be shared itself; errors of NVML pass through.

    *problem* is what the last look found; empty if nothing.

    Raises:
        NotShareableError: If it cannot be shared, as in MIG mode.
    """
    if in_mig_mode(nvml, handle):
        why = f": {problem}" if problem else ""
        raise NotShareableError(f"{uuid_of(nvml, handle)} is in MIG mode, and its instances cannot be listed{why}")
    return read_gpu(nvml, index, handle, is_cut=False, sysfs=sysfs)


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
