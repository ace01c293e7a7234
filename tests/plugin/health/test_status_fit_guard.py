"""What `gpu-share plugin status` tells of vGPUs that are hidden."""

import json
from pathlib import Path

from plugin.health.state import FitGuardState, GpuRoom, write_node_health
from tests.plugin.health.published import healthy, node, status


def test_what_is_hidden_is_said_with_why_and_leaves_all_healthy(tmp_path: Path) -> None:
    name = "gpu-share.dev/vgpu"
    rooms = (
        GpuRoom(uuid="GPU-0", resource=name, free=3, hidden=0),
        GpuRoom(uuid="GPU-1", resource=name, free=1, hidden=1),
        GpuRoom(uuid="GPU-2", resource="gpu-share.dev/vgpu-timesliced", free=10, hidden=0),
    )
    write_node_health(tmp_path, node(healthy(0), healthy(1), healthy(2), fit_guard=FitGuardState(gpus=rooms)))
    ran = status(tmp_path)
    assert ran.returncode == 0
    why = "with them the scheduler could send what fits on no GPU; the most that is free on one is 3, on GPU-0"
    assert ran.stdout.splitlines()[-2:] == [
        f"fit guard: 1 of 4 free {name} hidden: {why}",
        "fit guard: none of 10 free gpu-share.dev/vgpu-timesliced hidden",
    ]
    assert json.loads(status(tmp_path, "-o", "json").stdout)["fit_guard"]["gpus"][1]["hidden"] == 1


def test_a_guard_that_knows_no_tenants_says_that_it_hides_nothing(tmp_path: Path) -> None:
    write_node_health(tmp_path, node(healthy(0), fit_guard=FitGuardState(unknown="the kubelet does not answer")))
    assert status(tmp_path).stdout.splitlines()[-1] == "fit guard: no vGPU is hidden: the kubelet does not answer"
