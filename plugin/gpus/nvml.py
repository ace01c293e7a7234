"""NVIDIA's library NVML, by its bindings nvidia-ml-py (module `pynvml`): the part of it that is used."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Protocol

from plugin.errors import DiscoveryError

# NVML's error numbers.
NO_PERMISSION = 4
NOT_TOLD = frozenset({2, 3, NO_PERMISSION, 13, 25})  # no such argument, support, permission, function or version of it
AWAY = frozenset({15, 16})  # of a GPU: lost, waits for a reset
ALL_FAIL = frozenset({1, 9, 12, 18})  # not initialised, no driver, no library, another driver's library

MOST_GPUS = 256  # of a node; NVIDIA's driver knows 32
_UNKNOWN = 999

# Error number to what an administrator can do.
_FIXES = {
    NO_PERMISSION: "run this container with access to /dev/nvidia*",
    9: "load the NVIDIA driver (modprobe nvidia)",
    12: "libnvidia-ml.so.1: install the NVIDIA driver, or run this container with the nvidia runtime and "
    "NVIDIA_DRIVER_CAPABILITIES=utility; and with manifests/components/strict-toolkit, if its toolkit takes "
    "NVIDIA_VISIBLE_DEVICES from privileged containers alone",
    15: "the GPU is lost: reset it, or reboot the node",
    16: "reset the GPU, or reboot the node",
    18: "the driver was updated under a running kernel module: reboot the node",
}
# The same where something of a GPU is to be changed.
_FIXES_OF_CHANGES = _FIXES | {
    3: "this GPU cannot be shared by MPS: share it by time-slicing or whole, with `nodes` in _cluster.yaml",
    NO_PERMISSION: "run gpu-share mps as root in a privileged container",
}


class NvmlRun(Protocol):
    """From its start to its end. Every error has NVML's number as its `value`."""

    @property
    def NVMLError(self) -> type[Exception]: ...  # noqa: D102, N802 - NVML's own names

    def nvmlInit(self) -> None: ...  # noqa: D102, N802
    def nvmlShutdown(self) -> None: ...  # noqa: D102, N802


class NvmlGpus(NvmlRun, Protocol):
    """Which GPUs there are; handles are opaque."""

    @property
    def NVMLError_FunctionNotFound(self) -> type[Exception]: ...  # noqa: D102, N802
    @property
    def NVMLError_NotSupported(self) -> type[Exception]: ...  # noqa: D102, N802

    def nvmlSystemGetDriverVersion(self) -> str | bytes: ...  # noqa: D102, N802
    def nvmlSystemGetCudaDriverVersion_v2(self) -> int: ...  # noqa: D102, N802
    def nvmlDeviceGetCudaComputeCapability(self, handle: Any, /) -> Sequence[int]: ...  # noqa: D102, N802
    def nvmlDeviceGetCount(self) -> int: ...  # noqa: D102, N802
    def nvmlDeviceGetHandleByIndex(self, index: int, /) -> Any: ...  # noqa: D102, N802
    def nvmlDeviceGetUUID(self, handle: Any, /) -> str | bytes: ...  # noqa: D102, N802
    def nvmlDeviceGetName(self, handle: Any, /) -> str | bytes: ...  # noqa: D102, N802
    def nvmlDeviceGetMemoryInfo(self, handle: Any, version: int | None = None) -> Any: ...  # noqa: D102, N802
    def nvmlDeviceGetMigMode(self, handle: Any, /) -> Any: ...  # noqa: D102, N802
    def nvmlDeviceGetMaxMigDeviceCount(self, handle: Any, /) -> int: ...  # noqa: D102, N802
    def nvmlDeviceGetMigDeviceHandleByIndex(self, handle: Any, index: int, /) -> Any: ...  # noqa: D102, N802
    def nvmlDeviceGetGpuInstanceId(self, handle: Any, /) -> int: ...  # noqa: D102, N802
    def nvmlDeviceGetComputeInstanceId(self, handle: Any, /) -> int: ...  # noqa: D102, N802
    def nvmlDeviceGetAttributes_v2(self, handle: Any, /) -> Any: ...  # noqa: D102, N802
    def nvmlDeviceGetPciInfo(self, handle: Any, /) -> Any: ...  # noqa: D102, N802
    def nvmlDeviceGetMinorNumber(self, handle: Any, /) -> int: ...  # noqa: D102, N802
    def nvmlDeviceGetArchitecture(self, handle: Any, /) -> int: ...  # noqa: D102, N802
    def nvmlDeviceGetNumaNodeId(self, handle: Any, /) -> int: ...  # noqa: D102, N802


class NvmlTopology(NvmlGpus, Protocol):
    """And how they are connected."""

    def nvmlDeviceGetTopologyCommonAncestor(self, one: Any, other: Any, /) -> int: ...  # noqa: D102, N802
    def nvmlDeviceGetNvLinkState(self, handle: Any, link: int, /) -> int: ...  # noqa: D102, N802
    def nvmlDeviceGetNvLinkRemotePciInfo(self, handle: Any, link: int, /) -> Any: ...  # noqa: D102, N802


class NvmlHealth(NvmlTopology, Protocol):
    """
    And their health; event sets are opaque.

    Of field values `nvmlReturn`, `valueType` and `value` are read, of events `device`, `eventType` and `eventData`.
    """

    def nvmlDeviceGetComputeMode(self, handle: Any, /) -> int: ...  # noqa: D102, N802
    def nvmlDeviceGetTotalEnergyConsumption(self, handle: Any, /) -> int: ...  # noqa: D102, N802
    def nvmlDeviceGetFieldValues(self, handle: Any, fields: Sequence[int], /) -> Sequence[Any]: ...  # noqa: D102, N802
    def nvmlDeviceGetSupportedEventTypes(self, handle: Any, /) -> int: ...  # noqa: D102, N802
    def nvmlDeviceRegisterEvents(self, handle: Any, types: int, event_set: Any, /) -> None: ...  # noqa: D102, N802
    def nvmlEventSetCreate(self) -> Any: ...  # noqa: D102, N802
    def nvmlEventSetWait_v2(self, event_set: Any, timeout_ms: int, /) -> Any: ...  # noqa: D102, N802
    def nvmlEventSetFree(self, event_set: Any, /) -> None: ...  # noqa: D102, N802


class NvmlModes(NvmlRun, Protocol):
    """The compute modes of GPUs."""

    def nvmlDeviceGetHandleByUUID(self, uuid: str, /) -> Any: ...  # noqa: D102, N802
    def nvmlDeviceGetComputeMode(self, handle: Any, /) -> int: ...  # noqa: D102, N802
    def nvmlDeviceSetComputeMode(self, handle: Any, mode: int, /) -> None: ...  # noqa: D102, N802


class NvmlProcesses(NvmlRun, Protocol):
    """The processes on GPUs; handles are opaque."""

    def nvmlDeviceGetCount(self) -> int: ...  # noqa: D102, N802 - NVML's own names
    def nvmlDeviceGetHandleByIndex(self, index: int, /) -> Any: ...  # noqa: D102, N802
    def nvmlDeviceGetUUID(self, handle: Any, /) -> str | bytes: ...  # noqa: D102, N802
    def nvmlDeviceGetComputeRunningProcesses_v3(self, handle: Any, /) -> Iterable[Any]: ...  # noqa: D102, N802
    def nvmlDeviceGetMPSComputeRunningProcesses_v3(self, handle: Any, /) -> Iterable[Any]: ...  # noqa: D102, N802
    def nvmlDeviceGetGraphicsRunningProcesses_v3(self, handle: Any, /) -> Iterable[Any]: ...  # noqa: D102, N802
    def nvmlDeviceGetProcessUtilization(self, handle: Any, since: int, /) -> Iterable[Any]: ...  # noqa: D102, N802


class Nvml(NvmlHealth, NvmlModes, NvmlProcesses, Protocol):
    """All of it, as the bindings have it."""


def load_nvml() -> Nvml:
    """
    Import the bindings; the library itself is loaded by the first call.

    Raises:
        DiscoveryError: If nvidia-ml-py is not installed.
    """
    try:
        import pynvml  # noqa: PLC0415 - 30 ms that a simulated node does not need
    except ImportError as error:
        raise DiscoveryError(f"no NVML: {error}: install nvidia-ml-py") from error
    nvml: Nvml = pynvml
    return nvml


@contextmanager
def initialised(nvml: NvmlRun) -> Iterator[None]:
    """Use NVML for a moment: held open, it would keep a driver from being reloaded."""
    nvml.nvmlInit()
    try:
        yield
    finally:
        with suppress(nvml.NVMLError):
            nvml.nvmlShutdown()


def explained(error: Exception, *, changing: bool = False) -> str:
    """Say what an error of NVML is and what to do about it; *changing* says that something was to be changed."""
    fixes = _FIXES_OF_CHANGES if changing else _FIXES
    told = "; ".join([str(error), *getattr(error, "__notes__", ())])
    return f"NVML: {told}: {fixes.get(number_of(error) or 0, 'see nvidia-smi')}"


def count_of(nvml: NvmlGpus | NvmlProcesses) -> int:
    """
    Ask for the number of GPUs.

    Raises:
        nvml.NVMLError: If NVML as a whole fails, or tells a number that no node has.
    """
    count = nvml.nvmlDeviceGetCount()
    if not 0 <= count <= MOST_GPUS:
        error = nvml.NVMLError(_UNKNOWN)
        error.add_note(f"it tells of {count} GPUs, where at most {MOST_GPUS} can be")
        raise error
    return count


def number_of(error: Exception) -> int | None:
    """Give NVML's number of an error; None if it is not one of NVML's."""
    return getattr(error, "value", None)


def raise_if_nvml_failed(error: Exception) -> Exception:
    """Give *error* back if it is that of one GPU; where NVML as a whole fails, raise it."""
    if number_of(error) in ALL_FAIL:
        raise error
    return error


def if_there(nvml: NvmlGpus, call: Callable[[], Any]) -> Any:
    """Ask for what an older driver or another kind of GPU does not know; None if so."""
    try:
        return call()
    except (nvml.NVMLError_FunctionNotFound, nvml.NVMLError_NotSupported):
        return None


def if_answered(nvml: NvmlGpus, call: Callable[[], Any]) -> Any:
    """Ask for what can be done without; None if there is no answer, unless the GPU is away or NVML as a whole fails."""
    try:
        return call()
    except nvml.NVMLError as error:
        if number_of(error) in AWAY | ALL_FAIL:
            raise
        return None
    except UnicodeDecodeError:  # the bindings decode some texts
        return None


def pci_text(info: Any) -> str | None:
    """Read where on the PCI bus something is, and write it as the kernel does; None if NVML gives no such place."""
    # NVML writes 00000000:3B:00.0, the kernel 0000:3b:00.0.
    try:
        domain, _, rest = text_of(info.busId).lower().partition(":")
        return f"{int(domain, 16):04x}:{rest}"
    except ValueError:  # no number, or no text
        return None


def text_of(value: str | bytes) -> str:
    """Decode what NVML calls a text; the bindings decode some, by version."""
    return value.decode() if isinstance(value, bytes) else value
