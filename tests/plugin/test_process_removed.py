"""What somebody removes of the plugin's files while it runs."""

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from plugin.gpus.gpu import VGpuId
from plugin.health.state import read_node_health
from plugin.presence import PLUGIN, lives
from plugin.shares.parts_file import FILE as PARTS
from plugin.shares.parts_file import read_parts
from plugin.simulated.device_manager import Request
from plugin.simulated.kubelet import SimulatedKubelet
from tests.plugin.mps.isolated import mounted, needs_mounts
from tests.plugin.plugin_process import ROOT, Plugin, Start
from tests.plugin.shares.cdi_runtime import read_directory
from tests.plugin.waiting import wait_until

pytestmark = pytest.mark.exhaustive

NAME = "gpu-share.dev/vgpu"
FILE = "gpu-share_gpu-share.dev_vgpu.json"
TWO_LOOKS_SECONDS = 2.5


@pytest.fixture
def kubelet(directory: Path) -> Iterator[SimulatedKubelet]:
    with SimulatedKubelet(directory, pod_resources=directory / "pod-resources.sock") as kubelet:
        yield kubelet


@pytest.fixture
def plugin(start: Start, kubelet: SimulatedKubelet, tmp_path: Path) -> Plugin:
    """Give a plugin that hands over by CDI, and that a kubelet knows."""
    policies = tmp_path / "policies"
    policies.mkdir()
    (policies / "_cluster.yaml").write_text("handover: [cdi]\n")
    plugin = start("--simulate", "2xH200", "--policies", str(policies), "--state-dir", str(tmp_path / "state"))
    kubelet.wait_for(NAME)
    return plugin


def test_a_specification_that_was_removed_is_written_again(plugin: Plugin, tmp_path: Path) -> None:
    before = read_directory(tmp_path / "cdi")
    (tmp_path / "cdi").rename(tmp_path / "before")
    wait_until((tmp_path / "cdi" / FILE).exists)
    assert read_directory(tmp_path / "cdi") == before
    assert plugin.logged("CDI specification was removed or changed: written again")["file"].endswith(FILE)


def test_a_specification_that_was_replaced_is_put_back(plugin: Plugin, tmp_path: Path) -> None:
    path = tmp_path / "cdi" / FILE
    before = path.read_bytes()
    path.write_text("{}")
    wait_until(lambda: path.read_bytes() == before)
    plugin.logged("CDI specification was removed or changed: written again")


def test_where_it_cannot_be_written_again_the_plugin_ends_as_it_would_at_the_start(
    plugin: Plugin, tmp_path: Path
) -> None:
    (tmp_path / "link").symlink_to("/proc/nowhere")
    (tmp_path / "cdi").rename(tmp_path / "before")
    (tmp_path / "link").replace(tmp_path / "cdi")
    code, written = plugin.ends()
    failures = [json.loads(line) for line in written.splitlines() if '"error"' in line]
    assert code == 1
    assert [line["message"] for line in failures] == ["the plugin failed"]
    assert "give the plugin this directory of the host, writable" in failures[0]["reason"]


@pytest.mark.usefixtures("plugin")
def test_while_what_is_held_cannot_be_written_nothing_is_allocatable_and_status_says_why(
    kubelet: SimulatedKubelet, tmp_path: Path
) -> None:
    path = tmp_path / "state" / PARTS
    wait_until(lambda: kubelet.allocatable(NAME) > 0)
    before = kubelet.allocatable(NAME)
    path.unlink()
    path.mkdir()
    wait_until(lambda: kubelet.allocatable(NAME) == 0)
    command = [sys.executable, "-m", "gpu_share", "plugin", "status", "--state-dir", str(path.parent)]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert said.returncode == 1
    assert f"cause: what is held cannot be written: {path.parent}" in said.stdout
    path.rmdir()
    wait_until(lambda: kubelet.allocatable(NAME) == before)
    kubelet.allocate(Request(pod="default/a", container="main", resource=NAME, count=2))


def held(state_dir: Path) -> set[VGpuId]:
    parts = read_parts(state_dir)
    return {*parts.held} if parts else set()


@pytest.mark.usefixtures("plugin")
def test_a_state_directory_that_was_removed_is_made_again_with_all_that_others_read(
    kubelet: SimulatedKubelet, tmp_path: Path
) -> None:
    state = tmp_path / "state"
    kubelet.allocate(Request(pod="default/a", container="main", resource=NAME, count=2))
    before = held(state)
    assert len(before) == 2
    state.rename(tmp_path / "before")
    wait_until(lambda: lives(state, PLUGIN) is True)
    wait_until(lambda: held(state) == before and read_node_health(state) is not None)


def failures(written: str) -> list[str]:
    lines = [json.loads(line) for line in written.splitlines() if '"the plugin failed"' in line]
    return [line["reason"] for line in lines]


@needs_mounts
def test_where_the_nodes_directory_is_removed_under_its_mount_the_plugin_ends_to_be_started_with_the_new_one(
    start: Start, kubelet: SimulatedKubelet, tmp_path: Path
) -> None:
    host, mount = tmp_path / "host", tmp_path / "mount"
    host.mkdir()
    mount.mkdir()
    arguments = ("--simulate", "2xH200", "--state-dir", str(mount))
    plugin = start(*arguments, before=mounted(host, mount))
    kubelet.wait_for(NAME)
    kubelet.allocate(Request(pod="default/a", container="main", resource=NAME, count=2))
    host.rename(tmp_path / "before")
    shutil.rmtree(tmp_path / "before")
    host.mkdir()
    code, written = plugin.ends()
    assert code == 1
    assert "somebody removed the directory on the node" in failures(written)[0]
    start(*arguments, before=mounted(host, mount))
    wait_until(lambda: len(held(host)) == 2)


@needs_mounts
def test_where_the_kubelets_directory_is_made_anew_the_plugin_ends_and_the_next_one_is_registered_there(
    start: Start, directory: Path
) -> None:
    host, mount = directory / "host", directory / "mount"
    mount.mkdir()
    host.mkdir()
    arguments = ("--simulate", "2xH200", "--kubelet-dir", str(mount))
    with SimulatedKubelet(host, pod_resources=directory / "pod-resources.sock") as kubelet:
        plugin = start(*arguments, before=mounted(host, mount))
        kubelet.wait_for(NAME)
    shutil.rmtree(host)
    host.mkdir()
    with SimulatedKubelet(host, pod_resources=directory / "pod-resources.sock") as kubelet:
        code, written = plugin.ends()
        assert code == 1
        assert f"--kubelet-dir {mount}: somebody removed the directory on the node" in failures(written)[0]
        start(*arguments, before=mounted(host, mount))
        kubelet.wait_for(NAME)


@needs_mounts
@pytest.mark.parametrize("option", ["--pod-resources", "--cdi-dir", "--cdi-static-dir"])
def test_where_another_directory_of_the_node_is_removed_under_its_mount_the_plugin_ends_too(
    start: Start, kubelet: SimulatedKubelet, tmp_path: Path, option: str
) -> None:
    host, mount = tmp_path / "host", tmp_path / "mount"
    host.mkdir()
    mount.mkdir()
    place = mount / "kubelet.sock" if option == "--pod-resources" else mount
    plugin = start("--simulate", "2xH200", option, str(place), before=mounted(host, mount))
    kubelet.wait_for(NAME)
    shutil.rmtree(host)
    code, written = plugin.ends()
    assert code == 1
    assert f"{option} {mount}: somebody removed the directory on the node" in failures(written)[0]


def test_a_kubelets_directory_that_is_removed_and_made_anew_without_a_mount_is_served_in(
    plugin: Plugin, kubelet: SimulatedKubelet, directory: Path
) -> None:
    kubelet.stop()
    directory.rename(directory.with_suffix(".before"))
    shutil.rmtree(directory.with_suffix(".before"))
    plugin.logged("cannot serve, trying again")
    time.sleep(TWO_LOOKS_SECONDS)
    directory.mkdir()
    with SimulatedKubelet(directory, pod_resources=directory / "pod-resources.sock") as another:
        another.wait_for(NAME)
