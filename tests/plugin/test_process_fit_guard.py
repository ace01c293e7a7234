"""What the real command hides from a kubelet, and what `gpu-share plugin status` says of it."""

import subprocess
import sys
from pathlib import Path

import pytest

from plugin.simulated.device_manager import Request
from plugin.simulated.kubelet import SimulatedKubelet
from tests.plugin.plugin_process import ROOT, Start
from tests.plugin.waiting import wait_until

pytestmark = pytest.mark.exhaustive

NAME = "gpu-share.dev/vgpu"


def node(directory: Path) -> SimulatedKubelet:
    return SimulatedKubelet(directory, pod_resources=directory / "pod-resources.sock")


def allocate(kubelet: SimulatedKubelet, **sizes: int) -> None:
    for name, size in sizes.items():
        kubelet.allocate(Request(pod=f"team/{name}", container="main", resource=NAME, count=size))


def status(state_dir: Path) -> str:
    command = [sys.executable, "-m", "gpu_share", "plugin", "status", "--state-dir", str(state_dir)]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT).stdout


def test_what_fits_nowhere_is_hidden_and_status_says_so_also_after_a_restart_of_the_kubelet(
    start: Start, directory: Path, tmp_path: Path
) -> None:
    with node(directory) as kubelet:
        start("--simulate", "2xH200")
        assert kubelet.wait_for(NAME) == 16
        allocate(kubelet, seven=7)
        kubelet.wait_until(lambda: kubelet.allocatable(NAME) == 17)
        allocate(kubelet, nine=9)
        kubelet.wait_until(lambda: kubelet.allocatable(NAME) == 19)
        wait_until(lambda: f"fit guard: 1 of 4 free {NAME} hidden: " in status(tmp_path))
        kubelet.restart()
        assert kubelet.wait_for(NAME) == 19


def test_a_share_goes_where_it_would_go_without_the_guard_and_stays_there_after_kill_9(
    start: Start, directory: Path, tmp_path: Path
) -> None:
    with node(directory) as kubelet:
        plugin = start("--simulate", "2xH200")
        kubelet.wait_for(NAME)
        allocate(kubelet, small=2, half=5)
        kubelet.wait_until(lambda: kubelet.allocatable(NAME) == 17)  # 7 that are held, and all of the other GPU
        allocate(kubelet, whole=10)
        wait_until(lambda: "vGPUs: 10 of 10 granted, 0 free" in status(tmp_path))
        assert "vGPUs: 7 of 10 granted, 3 free" in status(tmp_path)
        plugin.process.kill()
        plugin.process.wait()
        start("--simulate", "2xH200")
        kubelet.wait_until(lambda: kubelet.allocatable(NAME) == 20)
        wait_until(lambda: "vGPUs: 10 of 10 granted, 0 free" in status(tmp_path))
        assert "vGPUs: 7 of 10 granted, 3 free" in status(tmp_path)


def test_without_the_guard_all_that_is_free_is_shown(start: Start, directory: Path, tmp_path: Path) -> None:
    with node(directory) as kubelet:
        start("--simulate", "2xH200", "--fit-guard", "off")
        assert kubelet.wait_for(NAME) == 20
        allocate(kubelet, seven=7, nine=9)
        assert kubelet.allocatable(NAME) == 20
        wait_until(lambda: "GPUs: 2" in status(tmp_path))
        assert "fit guard" not in status(tmp_path)
