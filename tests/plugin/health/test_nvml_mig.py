"""A GPU in MIG mode whose instances, memory or number a driver tells in parts."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from plugin.gpus import mig
from plugin.health.nvml_connection import KnownGpus, NvmlConnection
from plugin.simulated.gpus import simulated_node
from plugin.simulated.nvml import SimulatedNvml
from tests.plugin.health.test_nvml_connection import error


def cut(**replaced: Callable[..., Any]) -> NvmlConnection:
    """Look at a GPU with one MIG instance."""
    nvml = SimulatedNvml(simulated_node("1xH100:1x1g.10gb"), clock=lambda: 0.0, sleep=lambda _: None)
    nvml.nvmlInit()
    vars(nvml).update(replaced)
    return NvmlConnection(nvml, KnownGpus(), generation=3, clock=lambda: 7.0, sysfs=Path("/nowhere"))


def refuse_memory_of_gpus(known: NvmlConnection, value: int) -> NvmlConnection:
    """Have NVML tell the memory of instances alone."""
    of_anything = known._nvml.nvmlDeviceGetMemoryInfo

    def of_instances(handle: Any, version: int | None = None) -> Any:
        if handle.instance is None:
            raise error(value)
        return of_anything(handle, version=version)

    vars(known._nvml).update(nvmlDeviceGetMemoryInfo=of_instances)
    return known


@pytest.mark.parametrize("value", [2, 3, 4, 13, 25])
def test_that_the_memory_of_a_gpu_in_mig_mode_is_not_told_costs_no_instance(value: int) -> None:
    probe = refuse_memory_of_gpus(cut(), value).probe()
    assert [gpu.profile for gpu in probe.gpus] == ["1g.10gb"]
    assert probe.skipped == ()


def test_why_the_instances_of_a_gpu_in_mig_mode_cannot_be_listed_is_said() -> None:
    probe = refuse_memory_of_gpus(cut(), 999).probe()
    assert probe.gpus == ()
    assert "is in MIG mode, and its instances cannot be listed: Uninitialized" in probe.skipped[0]


def test_a_gpu_that_is_renumbered_hands_over_the_nodes_of_its_new_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mig, "capabilities", lambda minor, _placed, **_: (100 * minor + 1, 100 * minor + 2))
    known = cut(nvmlDeviceGetMinorNumber=lambda _handle: 1)
    assert [gpu.instance and gpu.instance.capabilities for gpu in known.probe().gpus] == [(101, 102)]
    vars(known._nvml).update(nvmlDeviceGetMinorNumber=lambda _handle: 0)
    assert [gpu.instance and gpu.instance.capabilities for gpu in known.probe().gpus] == [(1, 2)]
