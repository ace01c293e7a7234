"""How containers get their GPU by CDI while NVML does not reach one, of which NVIDIA's toolkit makes no device then."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from plugin.health.inventory import GpuInventory
from plugin.health.reports import Look
from tests.plugin.device_plugin.advertised import advertising
from tests.plugin.health.test_missing import FIRST, GPUS, LOST, SECOND, inventory, look, of_before

OF_EACH = "cdi, with NVIDIA's own CDI device of each GPU"


def following() -> GpuInventory:
    return inventory(of_before(), held={SECOND}, steady_seconds=0)


def running() -> GpuInventory:
    known = inventory(steady_seconds=0)
    look(known, 50, {FIRST: Look(), SECOND: Look()}, *GPUS)
    return known


@pytest.mark.parametrize("seen", [None, LOST, Look(in_mig_mode=True)])
@pytest.mark.parametrize("begun", [following, running])
def test_a_gpu_that_nvml_does_not_reach_needs_no_device_until_it_is_found_again(
    begun: Callable[[], GpuInventory], seen: Look | None, tmp_path: Path
) -> None:
    devices = [{"name": FIRST, "containerEdits": {"deviceNodes": [{"path": "/dev/nvidia0"}]}}]
    specification = {"cdiVersion": "0.5.0", "kind": "nvidia.com/gpu", "devices": devices}
    (tmp_path / "nvidia.json").write_text(json.dumps(specification))
    resources = advertising([], "cdi", cdi_static_dir=tmp_path, cdi_dir=tmp_path / "cdi")
    known = begun()
    look(known, 60, {FIRST: Look()} | ({SECOND: seen} if seen else {}), GPUS[0])
    assert resources.look_for_devices(known.entries, "") == OF_EACH
    look(known, 70, {FIRST: Look(), SECOND: Look()}, *GPUS, generation=2)
    assert known.entries[1].why == ""
    assert "for 1 of 2 GPUs" in resources.look_for_devices(known.entries, "")
