"""A plugin that is started again after one of the node's GPUs has failed, while containers hold shares of it."""

import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from plugin.health.state import NODE_FILE
from plugin.simulated.device_manager import Request
from plugin.simulated.kubelet import SimulatedKubelet
from plugin.state_files import boot_id
from plugin.telemetry.metrics import HEALTHY
from plugin.telemetry.node import node_state, read_facts
from plugin.telemetry.samples import plugin_samples
from policies.node_state import NodeState, read, write
from tests.plugin.health.published import status
from tests.plugin.nvml_library import Script, build
from tests.plugin.plugin_process import Plugin, Start
from tests.plugin.waiting import wait_until

pytestmark = pytest.mark.exhaustive

NAME = "gpu-share.dev/vgpu-timesliced"
FIRST, SECOND = (f"GPU-00000000-0000-0000-0000-00000000000{index}" for index in (0, 1))
OF_FIRST = 10  # healthy vGPUs where those of GPU 1 are not: 6 that a pod holds and 4 free ones
SOON = 30.0


@pytest.fixture(scope="module")
def nvml(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(build(tmp_path_factory.mktemp("nvml")).parent)


@pytest.fixture
def kubelet(directory: Path) -> Iterator[SimulatedKubelet]:
    with SimulatedKubelet(directory, pod_resources=directory / "pod-resources.sock") as kubelet:
        yield kubelet


@pytest.fixture
def script(tmp_path: Path) -> Script:
    return Script(tmp_path)


@pytest.fixture
def policies(tmp_path: Path) -> Path:
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies" / "_cluster.yaml").write_text("vgpusPerGpu: 10\n")
    return tmp_path / "policies"


@pytest.fixture
def again(start: Start, nvml: str, kubelet: SimulatedKubelet, script: Script, policies: Path) -> Callable[[], Plugin]:
    """Give a pod 0.6 of each of two GPUs, and end the plugin; this starts the next one."""

    def begun() -> Plugin:
        options = ("--policies", str(policies), "--strategy", "time-slicing")
        return start(*options, LD_LIBRARY_PATH=nvml, **script.environment)

    plugin = begun()
    kubelet.wait_until(lambda: kubelet.allocatable(NAME) == 20)
    for uuid, pod in ((FIRST, "a"), (SECOND, "b")):
        request = Request(pod=f"team/{pod}", container="main", resource=NAME, count=6)
        assert kubelet.allocate(request).environment["NVIDIA_VISIBLE_DEVICES"] == uuid
    wait_until(lambda: len(kubelet.holders(NAME)) == 12)
    assert plugin.ends(by=signal.SIGTERM)[0] == 0
    return begun


def state(directory: Path) -> NodeState:
    return read(write(node_state(read_facts(directory, boot_id=boot_id()), part="plugin", node="node")))


def tenants(directory: Path) -> dict[str, list[str]]:
    return {gpu.uuid: [one.pod for one in gpu.tenants] for gpu in state(directory).gpus}


def health_of(kubelet: SimulatedKubelet, pod: str) -> set[bool]:
    """Say how the kubelet takes the vGPUs that a pod holds to be."""
    healthy = {one.id: one.healthy for one in kubelet.devices(NAME)}
    return {healthy[one] for one, (holder, _) in kubelet.holders(NAME).items() if holder == f"team/{pod}"}


@pytest.mark.parametrize("line", ["count 1", "lost 1", "nameless 1"])
def test_a_gpu_that_failed_while_no_plugin_ran_is_unhealthy_and_its_tenants_are_named(
    again: Callable[[], Plugin], kubelet: SimulatedKubelet, script: Script, tmp_path: Path, line: str
) -> None:
    script.say(line)
    again()
    kubelet.wait_until(lambda: kubelet.allocatable(NAME) == OF_FIRST)
    assert (health_of(kubelet, "a"), health_of(kubelet, "b")) == ({True}, {False})
    wait_until(lambda: tenants(tmp_path) == {FIRST: ["a"], SECOND: ["b"]})
    ran = status(tmp_path)
    assert (ran.returncode, "GPUs: 2, 1 of them unhealthy" in ran.stdout) == (1, True)
    assert "tenant: 0.6 team/b/main" in ran.stdout
    assert ("NVML no longer lists it" if line != "lost 1" else "GPU is lost") in ran.stdout
    values = {one.labels[2]: one.value for one in plugin_samples(state(tmp_path)) if one.metric is HEALTHY}
    assert values == {FIRST: 1.0, SECOND: 0.0}


def test_one_that_was_taken_out_is_forgotten_once_nobody_holds_anything_of_it(
    again: Callable[[], Plugin], kubelet: SimulatedKubelet, script: Script, tmp_path: Path
) -> None:
    script.say("count 1")
    again()
    wait_until(lambda: tenants(tmp_path) == {FIRST: ["a"], SECOND: ["b"]})
    kubelet.free("team/b")
    wait_until(lambda: status(tmp_path).returncode == 0, timeout_seconds=SOON)
    assert tenants(tmp_path) == {FIRST: ["a"]}
    kubelet.wait_until(lambda: kubelet.allocatable(NAME) == OF_FIRST)


def test_one_that_is_found_again_is_healthy_with_its_tenants(
    again: Callable[[], Plugin], kubelet: SimulatedKubelet, script: Script, tmp_path: Path
) -> None:
    script.say("nameless 1")
    again()
    wait_until(lambda: tenants(tmp_path) == {FIRST: ["a"], SECOND: ["b"]})
    script.take_back("nameless 1")
    kubelet.wait_until(lambda: health_of(kubelet, "b") == {True}, timeout_seconds=2 * SOON)
    wait_until(lambda: status(tmp_path).returncode == 0)


def test_what_is_held_of_it_is_unhealthy_though_nobody_remembers_the_gpu(
    again: Callable[[], Plugin], kubelet: SimulatedKubelet, script: Script, tmp_path: Path
) -> None:
    (tmp_path / NODE_FILE).unlink()
    script.say("count 1")
    again()
    kubelet.wait_until(lambda: kubelet.allocatable(NAME) == OF_FIRST)
    assert (health_of(kubelet, "a"), health_of(kubelet, "b")) == ({True}, {False})


def test_what_is_held_of_a_gpu_that_is_left_to_others_by_now_is_healthy(
    again: Callable[[], Plugin], kubelet: SimulatedKubelet, policies: Path, tmp_path: Path
) -> None:
    (policies / "_cluster.yaml").write_text("vgpusPerGpu: 10\nnodes: [{indexes: [1], offer: none}]\n")
    again()
    kubelet.wait_until(lambda: health_of(kubelet, "b") == {True})
    wait_until(lambda: tenants(tmp_path) == {FIRST: ["a"]})
    assert status(tmp_path).returncode == 0
