"""A GPU in MIG mode whose instances, memory or number a driver tells in parts."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from plugin.gpus import mig
from plugin.health.gpu_state import Moment
from plugin.health.inventory import GpuInventory
from plugin.health.nvml_connection import KnownGpus, NvmlConnection
from plugin.health.state import NodeHealth
from plugin.simulated.gpus import simulated_node
from plugin.simulated.nvml import SimulatedNvml
from policies.contract import TIME_SLICING
from tests.plugin.health.test_missing import written_by
from tests.plugin.health.test_nvml_connection import error

INSTANCE = "MIG-00000000-0000-0000-0000-000000000001"


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


def inventory(before: NodeHealth | None = None) -> GpuInventory:
    """Know GPUs of each of which containers hold something."""
    return GpuInventory(
        strategy_of=lambda _: TIME_SLICING, application_xids=(), before=before, held=set, steady_seconds=0.0
    )


def why_with(known: GpuInventory, connection: NvmlConnection, *profiles: str) -> dict[str, str]:
    """Have the GPU one MIG instance of that profile, always of the same UUID, or none; why each known is unhealthy."""
    made = [replace(simulated_node(f"1xH100:1x{one}").instances[0], uuid=INSTANCE) for one in profiles]
    vars(connection._nvml).update(_node=replace(simulated_node("1xH100:1x1g.10gb"), instances=tuple(made)))
    known.take(connection.probe(), Moment(7.0, "now"))
    return {entry.gpu.profile: entry.why for entry in known.entries}


@pytest.mark.parametrize("restarts", [0, 1])
def test_an_instance_that_is_back_with_its_own_profile_is_healthy_whatever_had_its_uuid_meanwhile(
    restarts: int,
) -> None:
    known, connection = inventory(), cut()
    assert why_with(known, connection, "1g.10gb") == {"1g.10gb": ""}
    if restarts:
        known, connection = inventory(written_by(known)), cut()
    assert "NVML no longer lists it" in why_with(known, connection)["1g.10gb"]
    for _ in range(2):
        why = why_with(known, connection, "2g.20gb")["1g.10gb"]
        assert why == "it was destroyed, and a MIG instance of the profile 2g.20gb has its UUID now"
    assert "NVML no longer lists it" in why_with(known, connection)["1g.10gb"]
    assert why_with(known, connection, "1g.10gb") == {"1g.10gb": ""}
