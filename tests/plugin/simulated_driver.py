"""A simulated NVML with a clock that passes when somebody waits."""

from collections.abc import Callable
from typing import Any

from plugin.gpus.nvml import NvmlHealth
from plugin.simulated.faults import ScriptedFault
from plugin.simulated.gpus import SimulatedNode, simulated_gpus
from plugin.simulated.nvml import SimulatedNvml
from plugin.simulated.nvml_errors import SimulatedNvmlError

GPUS = simulated_gpus("2xH200")
FIRST, SECOND = (gpu.uuid for gpu in GPUS)
XID_EVENT = 0x8
RECOVERY_ACTION = 230


class Clock:
    """Seconds since the start; they pass when somebody sleeps."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds

    def sleep(self, seconds: float) -> None:
        assert seconds > 0
        self.seconds += seconds


def started(*faults: ScriptedFault) -> tuple[NvmlHealth, Clock]:
    clock = Clock()
    node = SimulatedNode(gpus=GPUS, faults=tuple(sorted(faults, key=lambda fault: fault.at_seconds)))
    nvml = SimulatedNvml(node, clock=clock, sleep=clock.sleep)
    nvml.nvmlInit()
    return nvml, clock


def error_of(call: Callable[[], Any]) -> int | None:
    try:
        call()
    except SimulatedNvmlError as error:
        return error.value
    return None


def recovery_action(nvml: NvmlHealth, index: int) -> int:
    (value,) = nvml.nvmlDeviceGetFieldValues(nvml.nvmlDeviceGetHandleByIndex(index), [RECOVERY_ACTION])
    assert (value.nvmlReturn, value.valueType) == (0, 1)
    return int(value.value.uiVal)


def energy_mj(nvml: NvmlHealth, index: int) -> int:
    return nvml.nvmlDeviceGetTotalEnergyConsumption(nvml.nvmlDeviceGetHandleByIndex(index))


def listening(nvml: NvmlHealth, *indexes: int) -> Any:
    event_set = nvml.nvmlEventSetCreate()
    for index in indexes:
        nvml.nvmlDeviceRegisterEvents(nvml.nvmlDeviceGetHandleByIndex(index), XID_EVENT, event_set)
    return event_set
