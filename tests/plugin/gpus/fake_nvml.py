"""A fake of the module `pynvml`: two GPUs, whose functions a test replaces one by one."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any


class FakeError(Exception):
    def __init__(self, value: int) -> None:
        self.value = value
        super().__init__(f"error {value}")


class FunctionNotFound(FakeError):  # noqa: N818 - NVML's name
    pass


class NotSupported(FakeError):  # noqa: N818 - NVML's name
    pass


class FakeNvml:
    """Two GPUs; a test replaces what it is about."""

    NVMLError = FakeError
    NVMLError_FunctionNotFound = FunctionNotFound
    NVMLError_NotSupported = NotSupported

    def __init__(self, **replaced: Callable[..., Any]) -> None:
        self.shutdowns = 0
        self.reserved_bytes = 0
        vars(self).update(replaced)

    def nvmlInit(self) -> None:  # noqa: N802
        pass

    def nvmlShutdown(self) -> None:  # noqa: N802
        self.shutdowns += 1

    def nvmlSystemGetDriverVersion(self) -> str | bytes:  # noqa: N802
        return b"580.95.05"

    def nvmlSystemGetCudaDriverVersion_v2(self) -> int:  # noqa: N802
        raise NotSupported(3)

    def nvmlDeviceGetCudaComputeCapability(self, _handle: Any, /) -> Any:  # noqa: N802
        raise NotSupported(3)

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        return 2

    def nvmlDeviceGetHandleByIndex(self, index: int, /) -> Any:  # noqa: N802
        return index

    def nvmlDeviceGetUUID(self, handle: Any, /) -> str | bytes:  # noqa: N802
        return f"GPU-{handle}".encode()

    def nvmlDeviceGetName(self, handle: Any, /) -> str | bytes:  # noqa: N802
        return f"Model {handle}"

    def nvmlDeviceGetArchitecture(self, handle: Any, /) -> int:  # noqa: N802
        return 9 if handle is not None else 0

    def nvmlDeviceGetMemoryInfo(self, handle: Any, version: int | None = None) -> Any:  # noqa: N802
        if version is None:
            return SimpleNamespace(total=(handle + 1) << 30)
        return SimpleNamespace(total=(handle + 1) << 30, reserved=self.reserved_bytes)

    def nvmlDeviceGetMigMode(self, _handle: Any, /) -> Any:  # noqa: N802
        return [0, 0]

    def nvmlDeviceGetMaxMigDeviceCount(self, _handle: Any, /) -> int:  # noqa: N802
        return 0

    def nvmlDeviceGetMigDeviceHandleByIndex(self, _handle: Any, index: int, /) -> Any:  # noqa: N802
        raise FakeError(6 + 0 * index)

    def nvmlDeviceGetGpuInstanceId(self, _handle: Any, /) -> int:  # noqa: N802
        raise NotSupported(3)

    def nvmlDeviceGetComputeInstanceId(self, _handle: Any, /) -> int:  # noqa: N802
        raise NotSupported(3)

    def nvmlDeviceGetAttributes_v2(self, _handle: Any, /) -> Any:  # noqa: N802
        raise NotSupported(3)

    def nvmlDeviceGetPciInfo(self, handle: Any, /) -> Any:  # noqa: N802
        return SimpleNamespace(busId=f"00000000:{handle}B:00.0".encode())

    def nvmlDeviceGetMinorNumber(self, handle: Any, /) -> int:  # noqa: N802
        return 4 + int(handle)

    def nvmlDeviceGetNumaNodeId(self, handle: Any, /) -> int:  # noqa: N802
        return 7 + int(handle)


def fails_with(error: Exception, *, at: int | None = None, otherwise: Any = None) -> Callable[..., Any]:
    def call(*arguments: Any, **_named: Any) -> Any:
        if at is None or arguments == (at,):
            raise error
        return otherwise

    return call


def no_memory_of_its_own(handle: int, version: int | None = None) -> Any:  # noqa: ARG001 - NVML's name
    """Say what a GPU says that has none but the CPU's."""
    if handle == 0:
        raise NotSupported(3)
    return SimpleNamespace(total=1 << 30, reserved=0)


def without_v2(error: Exception) -> Callable[..., Any]:
    def memory(_handle: int, version: int | None = None) -> Any:
        if version is not None:
            raise error
        return SimpleNamespace(total=1 << 30)

    return memory
