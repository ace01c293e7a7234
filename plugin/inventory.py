"""
The GPUs of this node, read once through NVML (nvidia-ml-py, module `pynvml`).

Drivers from 550 on are in use, so every newer call is optional, and one broken GPU must not take
down the others: what cannot be shared is skipped, with the reason.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from plugin.errors import InventoryError
from plugin.pool import Gpu
from plugin.vgpu import VGpuId

_SYSFS = Path("/sys")
_MIG_ENABLED = 1
# NVML error number to what an administrator can do.
_FIXES = {
    4: "run the plugin with access to /dev/nvidia*",
    9: "load the NVIDIA driver (modprobe nvidia)",
    12: "libnvidia-ml.so.1 was not found: install the NVIDIA driver, or run the plugin's container with "
    "the nvidia runtime and NVIDIA_DRIVER_CAPABILITIES=utility",
    18: "the driver was updated under a running kernel module: reboot the node",
}


class Nvml(Protocol):
    """The part of the module `pynvml` that is used; handles are opaque."""

    @property
    def NVMLError(self) -> type[Exception]: ...  # noqa: D102, N802 - NVML's own names
    @property
    def NVMLError_FunctionNotFound(self) -> type[Exception]: ...  # noqa: D102, N802
    @property
    def NVMLError_NotSupported(self) -> type[Exception]: ...  # noqa: D102, N802

    def nvmlInit(self) -> None: ...  # noqa: D102, N802
    def nvmlShutdown(self) -> None: ...  # noqa: D102, N802
    def nvmlSystemGetDriverVersion(self) -> str | bytes: ...  # noqa: D102, N802
    def nvmlDeviceGetCount(self) -> int: ...  # noqa: D102, N802
    def nvmlDeviceGetHandleByIndex(self, index: int, /) -> Any: ...  # noqa: D102, N802
    def nvmlDeviceGetUUID(self, handle: Any, /) -> str | bytes: ...  # noqa: D102, N802
    def nvmlDeviceGetName(self, handle: Any, /) -> str | bytes: ...  # noqa: D102, N802
    def nvmlDeviceGetMemoryInfo(self, handle: Any, /) -> Any: ...  # noqa: D102, N802
    def nvmlDeviceGetMigMode(self, handle: Any, /) -> Any: ...  # noqa: D102, N802
    def nvmlDeviceGetPciInfo(self, handle: Any, /) -> Any: ...  # noqa: D102, N802
    def nvmlDeviceGetMinorNumber(self, handle: Any, /) -> int: ...  # noqa: D102, N802
    def nvmlDeviceGetNumaNodeId(self, handle: Any, /) -> int: ...  # noqa: D102, N802


class _NotShareableError(Exception):
    """One GPU that cannot be shared; the others can."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inventory:
    """What was found at start."""

    gpus: tuple[Gpu, ...]
    skipped: tuple[str, ...] = ()  # one sentence for each GPU that cannot be shared
    driver: str = ""  # version; empty if unknown


def load_nvml() -> Nvml:
    """
    Import the bindings; the library itself is loaded by the first call.

    Raises:
        InventoryError: If nvidia-ml-py is not installed.
    """
    try:
        import pynvml  # noqa: PLC0415 - 30 ms that a simulated node does not need
    except ImportError as error:
        raise InventoryError(f"no NVML: {error}: install nvidia-ml-py") from error
    nvml: Nvml = pynvml
    return nvml


def read_inventory(nvml: Nvml, *, sysfs: Path = _SYSFS) -> Inventory:
    """
    Read every GPU that can be shared, in NVML's order, which is that of the PCI bus.

    Raises:
        InventoryError: If NVML does not start, sees no GPU, or none that can be shared.
    """
    try:
        nvml.nvmlInit()
        try:
            return _read(nvml, sysfs)
        finally:
            with suppress(nvml.NVMLError):
                nvml.nvmlShutdown()
    except nvml.NVMLError as error:
        fix = _FIXES.get(getattr(error, "value", -1))
        raise InventoryError(f"NVML: {error}: {fix}" if fix else f"NVML: {error}: see nvidia-smi") from error


def _read(nvml: Nvml, sysfs: Path) -> Inventory:
    count = nvml.nvmlDeviceGetCount()
    gpus: dict[str, Gpu] = {}
    skipped: list[str] = []
    for index in range(count):
        try:
            gpu = _gpu(nvml, index, sysfs=sysfs)
        except (nvml.NVMLError, _NotShareableError, UnicodeDecodeError) as error:
            skipped.append(f"GPU {index} of {count} cannot be shared: {error}")
        else:
            gpus[gpu.uuid] = gpu
    if not gpus:
        why = "; ".join(skipped) or "NVML sees no GPU: is one attached to this node and passed to the container?"
        raise InventoryError(f"no GPU to share: {why}")
    driver = _if_there(nvml, nvml.nvmlSystemGetDriverVersion)
    return Inventory(gpus=tuple(gpus.values()), skipped=tuple(skipped), driver=_text(driver or ""))


def _gpu(nvml: Nvml, index: int, *, sysfs: Path) -> Gpu:
    handle = nvml.nvmlDeviceGetHandleByIndex(index)
    uuid = _text(nvml.nvmlDeviceGetUUID(handle))
    if VGpuId.parse(str(VGpuId(uuid, 0))) is None:
        raise _NotShareableError(f"its UUID {uuid!r} cannot be part of a device ID")
    mig_mode = _if_there(nvml, lambda: nvml.nvmlDeviceGetMigMode(handle))
    if mig_mode and mig_mode[0] == _MIG_ENABLED:
        raise _NotShareableError(f"{uuid} is in MIG mode, its instances are shared by NVIDIA's own plugin")
    memory_bytes = int(nvml.nvmlDeviceGetMemoryInfo(handle).total)
    if memory_bytes <= 0:
        raise _NotShareableError(f"{uuid} reports no memory")
    return Gpu(
        uuid=uuid,
        index=index,
        minor=_if_there(nvml, lambda: nvml.nvmlDeviceGetMinorNumber(handle)),
        model=_text(_if_there(nvml, lambda: nvml.nvmlDeviceGetName(handle)) or "unknown"),
        memory_bytes=memory_bytes,
        numa_node=_numa_node(nvml, handle, sysfs=sysfs),
    )


def _numa_node(nvml: Nvml, handle: Any, *, sysfs: Path) -> int | None:
    """
    Say which CPUs are next to the GPU.

    The kernel knows. NVML is asked second: its answer is the GPU's own node where the GPU is one (Grace
    Hopper), and no CPU is in that.
    """
    node = _sysfs_numa_node(nvml, handle, sysfs=sysfs)
    if node is None:
        node = _if_there(nvml, lambda: nvml.nvmlDeviceGetNumaNodeId(handle))
    return node if node is not None and node >= 0 else None


def _sysfs_numa_node(nvml: Nvml, handle: Any, *, sysfs: Path) -> int | None:
    info = _if_there(nvml, lambda: nvml.nvmlDeviceGetPciInfo(handle))
    if info is None:
        return None
    # NVML writes 00000000:3B:00.0, the kernel 0000:3b:00.0.
    domain, _, rest = _text(info.busId).lower().partition(":")
    try:
        path = sysfs / "bus/pci/devices" / f"{int(domain, 16):04x}:{rest}" / "numa_node"
        node = int(path.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None
    return node if node >= 0 else None


def _if_there(nvml: Nvml, call: Callable[[], Any]) -> Any:
    """Ask for what an older driver or another kind of GPU does not know; None if so."""
    try:
        return call()
    except (nvml.NVMLError_FunctionNotFound, nvml.NVMLError_NotSupported):
        return None


def _text(value: str | bytes) -> str:
    # The bindings decode some strings and not others, by version.
    return value.decode() if isinstance(value, bytes) else value
