"""What containers were given by CDI lies ready for their next start, whatever has changed since."""

import json
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from plugin.health.state import NodeHealth, read_node_health
from plugin.simulated.device_manager import Request
from plugin.simulated.gpus import simulated_gpus
from plugin.simulated.kubelet import SimulatedKubelet
from tests.plugin.device_plugin.kubelet_file import entries, write_checkpoint
from tests.plugin.plugin_process import Plugin, Start
from tests.plugin.shares.cdi_runtime import read_directory
from tests.plugin.waiting import wait_until

pytestmark = pytest.mark.exhaustive

NAME = "gpu-share.dev/vgpu"


@pytest.fixture
def kubelet(directory: Path) -> Iterator[SimulatedKubelet]:
    with SimulatedKubelet(directory, pod_resources=directory / "pod-resources.sock") as kubelet:
        yield kubelet


class Node:
    """A node whose plugin is started anew, with another `_cluster.yaml`."""

    def __init__(self, start: Start, kubelet: SimulatedKubelet, directory: Path) -> None:
        self._start = start
        self._kubelet = kubelet
        self._directory = directory
        self._plugin: Plugin | None = None

    def starts(self, cluster: str, *, gpus: str) -> None:
        if self._plugin:
            self._plugin.ends(by=signal.SIGTERM)
        policies = self._directory / "policies"
        policies.mkdir(exist_ok=True)
        (policies / "_cluster.yaml").write_text(cluster)
        places = ("--policies", str(policies), "--state-dir", str(self._directory / "state"))
        self._plugin = self._start("--simulate", gpus, "--fit-guard", "off", *places)
        self._plugin.logged("starting")

    def gives(self, pod: str, *, vgpus: int) -> str:
        self._kubelet.wait_for(NAME)
        return self._kubelet.allocate(Request(pod=pod, container="main", resource=NAME, count=vgpus)).cdi_devices[0]

    def loses_run(self) -> None:
        """Have the machine restart: what is in /run has gone, and the kubelet has its checkpoint."""
        assert self._plugin
        self._plugin.ends(by=signal.SIGTERM)
        self._plugin = None
        shutil.rmtree(self._directory / "state")
        self.loses_specifications()

    def loses_specifications(self) -> None:
        shutil.rmtree(self._directory / "cdi", ignore_errors=True)

    def has(self, *devices: str) -> bool:
        return (self._directory / "cdi").exists() and {*devices} <= set(read_directory(self._directory / "cdi"))


@pytest.fixture
def node(start: Start, kubelet: SimulatedKubelet, tmp_path: Path) -> Node:
    return Node(start, kubelet, tmp_path)


def test_a_gpu_that_gets_a_resource_and_a_number_of_its_own_takes_no_device_from_a_container(
    node: Node, tmp_path: Path
) -> None:
    (tmp_path / "mixed.yaml").write_text("gpus:\n- {model: L4}\n- {model: H200}\n")
    gpus = str(tmp_path / "mixed.yaml")
    node.starts("handover: [cdi]\n", gpus=gpus)
    given = [node.gives(f"team/{pod}", vgpus=5) for pod in range(4)]
    assert len({*given}) == 2
    node.starts('handover: [cdi]\nnodes: [{model: "*L4*", device: l4, vgpusPerGpu: 4}]\n', gpus=gpus)
    wait_until(lambda: any("vgpu-model-l4" in name for name in read_directory(tmp_path / "cdi")))
    assert node.has(*given)


@pytest.mark.parametrize(
    "cluster",
    [
        "handover: [cdi]\nresourceNames: {mps: example.com/vgpu}\n",
        'handover: [cdi]\nnodes: [{model: "*", device: h200, vgpusPerGpu: 4}]\n',
        'handover: [cdi]\nnodes: [{model: "*", offer: time-slicing}]\n',
        "handover: [cdi]\nvgpusPerGpu: 20\n",
        "handover: [envvar]\n",
    ],
)
def test_after_a_change_a_device_is_made_again_that_was_removed_or_went_with_a_restart_of_the_machine(
    node: Node, kubelet: SimulatedKubelet, directory: Path, cluster: str
) -> None:
    node.starts("handover: [cdi]\n", gpus="2xH200")
    given = node.gives("team/a", vgpus=2)
    write_checkpoint(directory, entries(kubelet))
    node.starts(cluster, gpus="2xH200")
    assert node.has(given)
    node.loses_specifications()
    wait_until(lambda: node.has(given))
    node.loses_run()
    node.starts(cluster, gpus="2xH200")
    wait_until(lambda: node.has(given))


def test_nvidias_variable_is_needed_until_what_began_before_nvidias_devices_has_ended(
    node: Node, kubelet: SimulatedKubelet, directory: Path, tmp_path: Path
) -> None:
    def health() -> NodeHealth:
        found = read_node_health(tmp_path / "state")
        assert found is not None
        return found

    def is_needed() -> bool:
        toolkit = health().toolkit
        return toolkit is not None and toolkit.variable_needed is True

    node.starts("handover: [cdi]\n", gpus="2xH200")
    node.gives("team/earlier", vgpus=2)
    earlier = entries(kubelet)
    write_checkpoint(directory, earlier)
    devices = [{"name": gpu.uuid, "containerEdits": {"env": ["A=B"]}} for gpu in simulated_gpus("2xH200")]
    theirs = {"cdiVersion": "0.5.0", "kind": "nvidia.com/gpu", "devices": devices}
    (tmp_path / "cdi" / "nvidia.json").write_text(json.dumps(theirs))
    wait_until(lambda: "NVIDIA's own CDI device of each GPU" in health().handover)
    assert node.gives("team/later", vgpus=1).startswith("nvidia.com/gpu=")
    write_checkpoint(directory, entries(kubelet))
    wait_until(is_needed, timeout_seconds=30)
    write_checkpoint(directory, [one for one in entries(kubelet) if one not in earlier])
    wait_until(lambda: not is_needed(), timeout_seconds=30)
