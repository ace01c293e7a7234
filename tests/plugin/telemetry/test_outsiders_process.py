"""Who uses a GPU without a share of it, by the real plugin and a kubelet that names no init containers."""

from pathlib import Path

import pytest

from plugin.simulated.device_manager import Request
from plugin.simulated.gpus import simulated_gpus
from plugin.simulated.kubelet import SimulatedKubelet
from plugin.state_files import boot_id, boot_seconds
from plugin.usage.record import ContainerUse, GpuUse, NodeUse, write_use
from policies.node_state import Gpu
from tests.plugin.health.published import status
from tests.plugin.plugin_process import Start
from tests.plugin.telemetry.test_process import BINDS, NAME, UID, address, state
from tests.plugin.waiting import wait_until

pytestmark = pytest.mark.exhaustive

(UUID,) = (gpu.uuid for gpu in simulated_gpus("1xH200"))
HOG = ContainerUse(namespace="team-b", pod="hog", container="main", processes=1)


def measured(directory: Path) -> None:
    on_gpu = {UUID: GpuUse(containers=(HOG,), complete=True, outsiders=(HOG,))}
    write_use(directory, NodeUse(boot_id=boot_id(), measured_seconds=boot_seconds(), gpus=on_gpu))


def test_who_has_no_share_is_named_while_no_init_container_may_be_meant_and_until_it_has_one(
    start: Start, directory: Path, tmp_path: Path
) -> None:
    pod_resources = directory / "pods.sock"
    with SimulatedKubelet(directory, pod_resources=pod_resources) as kubelet:
        plugin = start("--simulate", "1xH200", "--pod-resources", str(pod_resources), "--pod-uid", UID, *BINDS)
        document = address(plugin, "state")

        def gpu() -> Gpu:
            measured(tmp_path)
            (said,) = state(document).gpus
            return said

        def named() -> list[str] | None:
            outsiders = gpu().outsiders
            return None if outsiders is None else [one.pod for one in outsiders]

        kubelet.wait_for(NAME)
        kubelet.allocate(Request(pod="team-a/first", container="main", resource=NAME, count=1))
        wait_until(lambda: named() == ["hog"], timeout_seconds=15)
        assert "  without a share: team-b/hog/main has 1 process: " in status(tmp_path).stdout
        kubelet.allocate(Request(pod="team-a/job", container="setup", resource=NAME, count=2, kind="init"))
        wait_until(lambda: gpu().granted == 3, timeout_seconds=15)
        assert named() is None
        kubelet.allocate(Request(pod="team-a/job", container="main", resource=NAME, count=2))
        wait_until(lambda: named() == ["hog"], timeout_seconds=15)
        kubelet.allocate(Request(pod="team-b/hog", container="main", resource=NAME, count=1))
        wait_until(lambda: named() == [], timeout_seconds=15)
