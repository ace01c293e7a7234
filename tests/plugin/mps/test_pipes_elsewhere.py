"""Plugin and `gpu-share mps` that run by different policy files: containers never meet a directory without a daemon."""

import json
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from plugin.health.status import show
from plugin.simulated.device_manager import Request, UnexpectedAdmissionError
from plugin.simulated.kubelet import SimulatedKubelet
from tests.plugin.mps.bench import A, B, Bench, Running, Start
from tests.plugin.mps.isolated import needs_mounts
from tests.plugin.mps.tenants import RESOURCE
from tests.plugin.nvml_library import Script, build
from tests.plugin.plugin_process import Plugin
from tests.plugin.waiting import wait_until

pytestmark = [needs_mounts, pytest.mark.exhaustive, pytest.mark.usefixtures("idle")]

Started = Callable[[], Plugin]


@pytest.fixture
def started(bench: Bench, root: Path) -> Iterator[Started]:
    """Give what starts the plugin, beside a kubelet in `kubelet-dir`."""
    library = root / "library"
    library.mkdir()
    variables = {"LD_LIBRARY_PATH": str(build(library).parent), **Script(library).environment}
    running: list[Plugin] = []

    def start() -> Plugin:
        arguments = (
            f"--policies={bench.policies}",
            f"--kubelet-dir={root / 'kubelet-dir'}",
            f"--state-dir={bench.state_dir}",
            f"--pod-resources={root / 'kubelet'}",
            f"--cdi-dir={root / 'cdi'}",
            f"--cdi-static-dir={root / 'static'}",
            f"--lib-dir={root / 'lib'}",
        )
        plugin = Plugin(*arguments, before=(), **variables)
        running.append(plugin)
        return plugin

    yield start
    for one in running:
        one.close()


class Node(NamedTuple):
    """Both parts, by the same policy file, and the kubelet."""

    kubelet: SimulatedKubelet
    mps: Running
    plugin: Plugin


@pytest.fixture
def node(bench: Bench, start: Start, started: Started, root: Path) -> Iterator[Node]:
    mps = start()
    bench.is_now("ready", A, B)
    bench.cluster("handover: [cdi]\n")
    (root / "kubelet-dir").mkdir()
    with SimulatedKubelet(root / "kubelet-dir") as kubelet:
        plugin = started()
        kubelet.wait_until(lambda: kubelet.allocatable(RESOURCE) == 16)
        assert pipes_of(root) == {str(bench.pipes)}
        yield Node(kubelet, mps, plugin)


def pipes_of(root: Path) -> set[str]:
    """Return the directories that containers are led to, whatever share they have."""
    (file,) = (root / "cdi").glob("*.json")
    variables = [
        name for one in json.loads(file.read_text())["devices"] for name in one["containerEdits"].get("env", ())
    ]
    found = (one.partition("=")[2] for one in variables if one.startswith("CUDA_MPS_PIPE_DIRECTORY="))
    return {str(Path(one).parent) for one in found}


def test_where_the_daemons_still_serve_in_the_former_directory_nobody_new_gets_a_share_and_others_keep_theirs(
    node: Node, bench: Bench, start: Start, started: Started, capsys: pytest.CaptureFixture[str]
) -> None:
    kubelet, new = node.kubelet, bench.root / "p2"
    bench.says("_cluster", f"handover: [cdi]\nmps: {{pipeDirectory: {new}}}\n")
    node.plugin.process.wait(timeout=20)
    started()
    kubelet.wait_until(
        lambda: bool(kubelet.devices(RESOURCE)) and kubelet.allocatable(RESOURCE) == 0, timeout_seconds=20
    )
    why = f"gpu-share mps serves in {bench.pipes}, and gpu-share plugin tells containers {new}: replace the pod"
    wait_until(lambda: show(bench.state_dir, output="text") == 1 and why in capsys.readouterr().out)
    assert pipes_of(bench.root) == {str(bench.pipes)}
    node.mps.ends(signal.SIGTERM)
    start()
    kubelet.wait_until(lambda: kubelet.allocatable(RESOURCE) == 16, timeout_seconds=20)
    assert pipes_of(bench.root) == {str(new)}


def test_where_they_serve_in_a_directory_that_the_plugin_has_not_taken_up_nobody_new_gets_a_share(
    node: Node, bench: Bench, start: Start
) -> None:
    kubelet, new = node.kubelet, bench.root / "p2"
    bench.says("_cluster", f"handover: [cdi]\nvgpusPerGpu: 61\nmps: {{pipeDirectory: {new}}}\n")
    node.mps.ends(signal.SIGTERM)
    kubelet.wait_until(lambda: kubelet.allocatable(RESOURCE) == 0)
    start()
    bench.is_now("ready", A, B)
    wait_until(lambda: pipes_of(bench.root) == {str(new)})
    assert node.plugin.process.poll() is None
    with pytest.raises(UnexpectedAdmissionError):
        kubelet.allocate(Request(pod="team/new", container="main", resource=RESOURCE, count=2))
