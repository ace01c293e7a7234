"""What the plugin does with GPUs that MPS cannot share, or not among so many."""

from pathlib import Path

import pytest

from plugin.health.state import read_node_health
from plugin.health.status import show
from plugin.simulated.kubelet import SimulatedKubelet
from tests.plugin.nvml_library import Script, build
from tests.plugin.plugin_process import Start
from tests.plugin.test_process_policies import policies
from tests.plugin.waiting import wait_until

NAME = "gpu-share.dev/vgpu"
FIRST = "GPU-00000000-0000-0000-0000-000000000000"


@pytest.fixture(scope="module")
def nvml(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(build(tmp_path_factory.mktemp("nvml")).parent)


def test_a_gpu_that_mps_cannot_share_is_not_advertised_under_mps_and_status_says_why(
    start: Start, nvml: str, tmp_path: Path, directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = Script(tmp_path)
    script.say("pascal 0")
    with SimulatedKubelet(directory) as kubelet:
        plugin = start(LD_LIBRARY_PATH=nvml, **script.environment)
        kubelet.wait_until(lambda: kubelet.capacity(NAME) == 10)
        why = f"GPU 0 of 2 cannot be shared: {FIRST} is older than Volta, and MPS limits nothing there"
        assert why in plugin.logged("GPU skipped")["reason"]
        show(tmp_path, output="text")
    assert f"not shared: {why}" in capsys.readouterr().out
    script.say("pascal 1")
    code, written = start(
        "--strategy=mps", f"--state-dir={tmp_path / 'other'}", LD_LIBRARY_PATH=nvml, **script.environment
    ).ends()
    assert (code, written.count("is older than Volta")) == (1, 2)
    sliced = start(
        "--strategy=time-slicing", f"--state-dir={tmp_path / 'sliced'}", LD_LIBRARY_PATH=nvml, **script.environment
    )
    assert [gpu["mps_clients"] for gpu in sliced.logged("starting")["gpus"]] == [0, 0]


@pytest.mark.parametrize(("cuda", "vgpus"), [(13000, 49), (13000, 48), (13010, 60)])
def test_more_vgpus_than_mps_serves_clients_with_this_driver_are_an_error(
    start: Start, nvml: str, tmp_path: Path, cuda: int, vgpus: int
) -> None:
    script = Script(tmp_path)
    script.say(f"cuda {cuda}")
    (tmp_path / "many").mkdir()
    (tmp_path / "many" / "_cluster.yaml").write_text(f"vgpusPerGpu: {vgpus}\n")
    plugin = start(f"--policies={tmp_path / 'many'}", LD_LIBRARY_PATH=nvml, **script.environment)
    if vgpus != 49:
        assert len(plugin.logged("starting")["gpus"]) == 2
        return
    code, written = plugin.ends()
    assert code == 1
    assert f"vgpusPerGpu 49 is more than the 48 clients that MPS serves on {FIRST} with this driver" in written


def test_a_number_that_is_raised_above_the_clients_is_not_taken_and_the_status_says_why(
    start: Start, nvml: str, tmp_path: Path, directory: Path
) -> None:
    script = Script(tmp_path)
    script.say("cuda 13000")
    options = (f"--policies={tmp_path / 'policies'}", f"--state-dir={tmp_path / 'state'}", "--strategy=mps")
    policies(tmp_path / "policies", _cluster="vgpusPerGpu: 10")
    with SimulatedKubelet(directory) as kubelet:
        start(*options, LD_LIBRARY_PATH=nvml, **script.environment)
        kubelet.wait_until(lambda: kubelet.capacity(NAME) == 20)
        policies(tmp_path / "policies", _cluster="vgpusPerGpu: 49")
        why = f"vgpusPerGpu 10 -> 49: vgpusPerGpu 49 is more than the 48 clients that MPS serves on {FIRST}"
        wait_until(lambda: not_taken(tmp_path / "state").startswith(why))
        assert kubelet.capacity(NAME) == 20
        policies(tmp_path / "policies", _cluster="vgpusPerGpu: 48")
        kubelet.wait_until(lambda: kubelet.capacity(NAME) == 96)
        wait_until(lambda: not_taken(tmp_path / "state") == "")


def test_a_plugin_that_waits_for_gpus_starts_anew_when_its_number_is_corrected(
    start: Start, nvml: str, tmp_path: Path
) -> None:
    script = Script(tmp_path)
    script.say("cuda 13000")
    policies(tmp_path / "policies", _cluster="vgpusPerGpu: 49")
    options = (f"--policies={tmp_path / 'policies'}", f"--state-dir={tmp_path / 'state'}", "--wait-for-gpus")
    plugin = start(*options, LD_LIBRARY_PATH=nvml, **script.environment)
    wait_until(lambda: "more than the 48 clients" in waits_for(tmp_path / "state"))
    policies(tmp_path / "policies", _cluster="vgpusPerGpu: 48")
    code, _ = plugin.ends()
    assert code == 0
    assert len(start(*options, LD_LIBRARY_PATH=nvml, **script.environment).logged("starting")["gpus"]) == 2


def waits_for(state_dir: Path) -> str:
    known = read_node_health(state_dir)
    return known.waiting.why if known and known.waiting else ""


def not_taken(state_dir: Path) -> str:
    known = read_node_health(state_dir)
    return known.not_taken if known else ""
