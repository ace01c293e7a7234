# ruff: noqa: D102, N802 - the names are NVML's, and what they do too
"""
A simulated NVML: the part of the module `pynvml` that the plugin uses, over a simulated node.

Where GPUs fail it does as the real one: a GPU that was lost, or an NVML that has failed, stays so for whoever has
initialised it, until it is initialised anew; waiting for events of a lost GPU fails at once; a reset lets the energy
counter begin again. Unlike the real one it keeps an XID until somebody waits for it: no line of a script is missed.
"""

import time
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

from plugin.gpus.gpu import Gpu, MigInstance
from plugin.simulated.fault_script import FaultScript
from plugin.simulated.gpus import SimulatedNode
from plugin.simulated.nvml_errors import (
    DRIVER_NOT_LOADED,
    GPU_IS_LOST,
    NOT_FOUND,
    NOT_SUPPORTED,
    TIMEOUT,
    UNINITIALIZED,
    UNKNOWN,
    FunctionNotFoundError,
    NotSupportedError,
    SimulatedNvmlError,
)

_DRIVER = "simulated"
_MOST_INSTANCES = 7  # of a GPU
_XID_EVENT = 0x8
_DOUBLE_BIT_ECC_EVENT = 0x2
_SUPPORTED_EVENTS = _XID_EVENT | _DOUBLE_BIT_ECC_EVENT
_RECOVERY_ACTION_FIELD = 230
_UNSIGNED_INT = 1  # the type of a field's value
_RESET_GPU = 1
_EARLIER_ENERGY_MJ = 10**9  # taken before the start
_MILLIWATTS = 300_000


class SimulatedNvml:
    """
    The GPUs of *node*, *clock* seconds after the start; *sleep* waits for that many.

    A handle is the GPU itself, a set of events the types that are listened for by UUID. One thread at a time calls.
    """

    NVMLError = SimulatedNvmlError
    NVMLError_FunctionNotFound = FunctionNotFoundError
    NVMLError_NotSupported = NotSupportedError

    def __init__(
        self, node: SimulatedNode, *, clock: Callable[[], float], sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._node = node
        self._script = FaultScript(node.faults)
        self._clock = clock
        self._sleep = sleep
        self._users = 0  # who have initialised it
        self._since = 0.0  # when the first of them did, in seconds after the start
        self._told: set[int] = set()  # faults that somebody has been told of, by their place

    def nvmlInit(self) -> None:
        now = self._clock()
        if self._script.nvml_failed(since=now, until=now):
            raise SimulatedNvmlError(DRIVER_NOT_LOADED)
        if not self._users:
            self._since = now
        self._users += 1

    def nvmlShutdown(self) -> None:
        if not self._users:
            raise SimulatedNvmlError(UNINITIALIZED)
        self._users -= 1

    def nvmlSystemGetDriverVersion(self) -> str:
        self._check()
        return _DRIVER

    def nvmlSystemGetCudaDriverVersion_v2(self) -> int:
        self._check()
        raise NotSupportedError(NOT_SUPPORTED)

    def nvmlDeviceGetCudaComputeCapability(self, handle: Gpu, /) -> Sequence[int]:
        self._reached(handle)
        raise NotSupportedError(NOT_SUPPORTED)

    def nvmlDeviceGetCount(self) -> int:
        self._check()
        return len(self._node.gpus)

    def nvmlDeviceGetHandleByIndex(self, index: int, /) -> Gpu:
        return self._reached(self._node.gpus[index])

    def nvmlDeviceGetUUID(self, handle: Gpu, /) -> str:
        return self._reached(handle).uuid

    def nvmlDeviceGetName(self, handle: Gpu, /) -> str:
        gpu = self._reached(handle)
        return f"{gpu.model} MIG {gpu.profile}" if gpu.instance else gpu.model

    def nvmlDeviceGetArchitecture(self, handle: Gpu, /) -> int:
        self._reached(handle)
        raise NotSupportedError(NOT_SUPPORTED)

    def nvmlDeviceGetMemoryInfo(self, handle: Gpu, version: int | None = None) -> Any:  # noqa: ARG002 - it knows both
        gpu = self._reached(handle)
        reserved_bytes = gpu.reserved_bytes or 0
        return SimpleNamespace(total=gpu.memory_bytes + reserved_bytes, reserved=reserved_bytes)

    def nvmlDeviceGetMigMode(self, handle: Gpu, /) -> Any:
        if self._reached(handle).uuid not in self._node.in_mig_mode:
            raise NotSupportedError(NOT_SUPPORTED)
        return [1, 1]

    def nvmlDeviceGetMaxMigDeviceCount(self, handle: Gpu, /) -> int:
        return _MOST_INSTANCES if self._reached(handle).uuid in self._node.in_mig_mode else 0

    def nvmlDeviceGetMigDeviceHandleByIndex(self, handle: Gpu, index: int, /) -> Gpu:
        instances = [one for one in self._node.instances if one.physical_uuid == self._reached(handle).uuid]
        if index >= len(instances):
            raise SimulatedNvmlError(NOT_FOUND)
        return instances[index]

    def nvmlDeviceGetGpuInstanceId(self, handle: Gpu, /) -> int:
        return _instance(self._reached(handle)).gpu_instance

    def nvmlDeviceGetComputeInstanceId(self, handle: Gpu, /) -> int:
        return _instance(self._reached(handle)).compute_instance

    def nvmlDeviceGetAttributes_v2(self, handle: Gpu, /) -> Any:
        self._reached(handle)
        raise NotSupportedError(NOT_SUPPORTED)  # the name says the profile

    def nvmlDeviceGetPciInfo(self, handle: Gpu, /) -> Any:
        self._reached(handle)
        raise NotSupportedError(NOT_SUPPORTED)  # or the NUMA node of a real device would be taken

    def nvmlDeviceGetMinorNumber(self, handle: Gpu, /) -> int:
        return _known(self._reached(handle).minor)

    def nvmlDeviceGetNumaNodeId(self, handle: Gpu, /) -> int:
        return _known(self._reached(handle).numa_node)

    def nvmlDeviceGetTopologyCommonAncestor(self, one: Gpu, other: Gpu, /) -> int:
        self._reached(one)
        self._reached(other)
        raise NotSupportedError(NOT_SUPPORTED)  # what is known of them is their NUMA nodes

    def nvmlDeviceGetNvLinkState(self, handle: Gpu, link: int, /) -> int:  # noqa: ARG002 - NVML's signature
        self._reached(handle)
        raise NotSupportedError(NOT_SUPPORTED)

    def nvmlDeviceGetNvLinkRemotePciInfo(self, handle: Gpu, link: int, /) -> Any:  # noqa: ARG002 - NVML's signature
        self._reached(handle)
        raise NotSupportedError(NOT_SUPPORTED)

    def nvmlDeviceGetComputeMode(self, handle: Gpu, /) -> int:
        self._reached(handle)
        raise NotSupportedError(NOT_SUPPORTED)  # no program runs on it that a mode could keep off

    def nvmlDeviceGetTotalEnergyConsumption(self, handle: Gpu, /) -> int:
        self._reached(handle)
        now = self._clock()
        reset = self._script.last_reset(handle, now)
        if reset is None:
            return _EARLIER_ENERGY_MJ + int(_MILLIWATTS * now)
        return int(_MILLIWATTS * (now - reset))

    def nvmlDeviceGetFieldValues(self, handle: Gpu, fields: Sequence[int], /) -> Sequence[Any]:
        self._reached(handle)
        return [self._field(handle, number) for number in fields]

    def nvmlDeviceGetSupportedEventTypes(self, handle: Gpu, /) -> int:
        self._reached(handle)
        return _SUPPORTED_EVENTS

    def nvmlDeviceRegisterEvents(self, handle: Gpu, types: int, event_set: dict[str, int], /) -> None:
        self._reached(handle)
        if types & ~_SUPPORTED_EVENTS:
            raise NotSupportedError(NOT_SUPPORTED)
        event_set[handle.uuid] = types

    def nvmlEventSetCreate(self) -> dict[str, int]:
        self._check()
        return {}

    def nvmlEventSetWait_v2(self, event_set: dict[str, int], timeout_ms: int, /) -> Any:
        deadline = self._clock() + timeout_ms / 1000
        while True:
            self._check()
            now = self._clock()
            if event := self._event(event_set, now):
                return event
            if any(self._lost(gpu) for gpu in self._node.gpus if gpu.uuid in event_set):
                raise SimulatedNvmlError(GPU_IS_LOST)
            if now >= deadline:
                raise SimulatedNvmlError(TIMEOUT)
            begins = self._script.next_fault(now)
            self._sleep((deadline if begins is None else min(deadline, begins)) - now)

    def nvmlEventSetFree(self, event_set: dict[str, int], /) -> None:
        event_set.clear()

    def _check(self) -> None:
        if not self._users:
            raise SimulatedNvmlError(UNINITIALIZED)
        if self._script.nvml_failed(since=self._since, until=self._clock()):
            raise SimulatedNvmlError(UNKNOWN)

    def _reached(self, gpu: Gpu) -> Gpu:
        self._check()
        if self._lost(gpu):
            raise SimulatedNvmlError(GPU_IS_LOST)
        return gpu

    def _lost(self, gpu: Gpu) -> bool:
        return self._script.was_lost(gpu, since=self._since, until=self._clock())

    def _field(self, gpu: Gpu, number: int) -> Any:
        if number != _RECOVERY_ACTION_FIELD:
            return SimpleNamespace(nvmlReturn=NOT_SUPPORTED, valueType=_UNSIGNED_INT, value=SimpleNamespace(uiVal=0))
        value = SimpleNamespace(uiVal=_RESET_GPU if self._script.needs_reset(gpu, self._clock()) else 0)
        return SimpleNamespace(nvmlReturn=0, valueType=_UNSIGNED_INT, value=value)

    def _event(self, event_set: dict[str, int], now: float) -> Any:
        """Take the next XID that has come for one of *event_set*; None if there is none."""
        for place, fault in self._script.xids(now):
            if place not in self._told and event_set.get(fault.gpu_uuid, 0) & _XID_EVENT:
                self._told.add(place)
                gpu = next(gpu for gpu in self._node.gpus if gpu.uuid == fault.gpu_uuid)
                return SimpleNamespace(device=gpu, eventType=_XID_EVENT, eventData=fault.xid)
        return None


def _instance(gpu: Gpu) -> MigInstance:
    if gpu.instance is None:
        raise NotSupportedError(NOT_SUPPORTED)
    return gpu.instance


def _known(value: int | None) -> int:
    if value is None:
        raise NotSupportedError(NOT_SUPPORTED)
    return value
