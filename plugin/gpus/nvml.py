"""NVIDIA's library NVML, by its bindings nvidia-ml-py (module `pynvml`): the part of it that is used."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from plugin.errors import InventoryError

# NVML error number to what an administrator can do.
_FIXES = {
    4: "run the plugin with access to /dev/nvidia*",
    9: "load the NVIDIA driver (modprobe nvidia)",
    12: "libnvidia-ml.so.1 was not found: install the NVIDIA driver, or run the plugin's container with "
    "the nvidia runtime and NVIDIA_DRIVER_CAPABILITIES=utility",
    18: "the driver was updated under a running kernel module: reboot the node",
}


# NVML's error numbers.
AWAY = frozenset({15, 16})  # of a GPU: lost, waits for a reset
ALL_FAIL = frozenset({1, 9, 12, 18})  # not initialised, no driver, no library, another driver's library


class NvmlGpus(Protocol):
    """Which GPUs there are; handles are opaque. Every error has NVML's number as its `value`."""

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


class Nvml(NvmlGpus, Protocol):
    """
    And how they are; event sets are opaque.

    Of field values `nvmlReturn`, `valueType` and `value` are read, of events `device`, `eventType` and `eventData`.
    """

    def nvmlDeviceGetTotalEnergyConsumption(self, handle: Any, /) -> int: ...  # noqa: D102, N802
    def nvmlDeviceGetFieldValues(self, handle: Any, fields: Sequence[int], /) -> Sequence[Any]: ...  # noqa: D102, N802
    def nvmlDeviceGetSupportedEventTypes(self, handle: Any, /) -> int: ...  # noqa: D102, N802
    def nvmlDeviceRegisterEvents(self, handle: Any, types: int, event_set: Any, /) -> None: ...  # noqa: D102, N802
    def nvmlEventSetCreate(self) -> Any: ...  # noqa: D102, N802
    def nvmlEventSetWait_v2(self, event_set: Any, timeout_ms: int, /) -> Any: ...  # noqa: D102, N802
    def nvmlEventSetFree(self, event_set: Any, /) -> None: ...  # noqa: D102, N802


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


def explained(error: Exception) -> str:
    """Say what an error of NVML is and what to do about it."""
    return f"NVML: {error}: {_FIXES.get(getattr(error, 'value', -1), 'see nvidia-smi')}"


def if_there(nvml: NvmlGpus, call: Callable[[], Any]) -> Any:
    """Ask for what an older driver or another kind of GPU does not know; None if so."""
    try:
        return call()
    except (nvml.NVMLError_FunctionNotFound, nvml.NVMLError_NotSupported):
        return None


def if_told(nvml: NvmlGpus, call: Callable[[], Any]) -> Any:
    """Ask for what can be done without; None if there is no answer, unless the GPU is away or NVML as a whole fails."""
    try:
        return call()
    except nvml.NVMLError as error:
        if getattr(error, "value", None) in AWAY | ALL_FAIL:
            raise
        return None


def text_of(value: str | bytes) -> str:
    """Decode what NVML calls a text; the bindings decode some, by version."""
    return value.decode() if isinstance(value, bytes) else value
