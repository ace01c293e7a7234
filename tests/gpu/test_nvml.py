"""What the driver tells of a real GPU, as far as the watch over its health counts on it."""

import time
from collections.abc import Iterator

import pytest

from plugin.gpus.gpu import Gpu
from plugin.gpus.nvml import Nvml, load_nvml

XID_EVENTS = 0x8
RECOVERY_ACTION = 230
UNSIGNED_INT = 1  # of a field's value


@pytest.fixture
def nvml(gpu: Gpu) -> Iterator[Nvml]:  # noqa: ARG001 - where there is no GPU, there is no NVML
    nvml = load_nvml()
    nvml.nvmlInit()
    yield nvml
    nvml.nvmlShutdown()


def test_the_driver_tells_of_xids(nvml: Nvml, gpu: Gpu) -> None:
    handle = nvml.nvmlDeviceGetHandleByIndex(gpu.index)
    assert nvml.nvmlDeviceGetSupportedEventTypes(handle) & XID_EVENTS


def test_a_healthy_gpu_asks_for_no_recovery_or_the_driver_does_not_say(nvml: Nvml, gpu: Gpu) -> None:
    handle = nvml.nvmlDeviceGetHandleByIndex(gpu.index)
    (field,) = nvml.nvmlDeviceGetFieldValues(handle, [RECOVERY_ACTION])
    if field.nvmlReturn:
        pytest.skip(f"this driver does not know the field: error {field.nvmlReturn}")
    assert (field.valueType, field.value.uiVal) == (UNSIGNED_INT, 0)


def test_the_energy_counter_only_rises(nvml: Nvml, gpu: Gpu) -> None:
    handle = nvml.nvmlDeviceGetHandleByIndex(gpu.index)
    before = nvml.nvmlDeviceGetTotalEnergyConsumption(handle)
    time.sleep(1)
    assert nvml.nvmlDeviceGetTotalEnergyConsumption(handle) > before
