"""The plugin as a process of its own, over the bindings of NVML and a library that plays it."""

import json
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from plugin.gpus.numbers import FILE
from plugin.health.state import Fault, write_node_health
from plugin.mps.state import MpsGpu, MpsState, write_state
from plugin.presence import alone
from plugin.simulated.device_manager import Request
from plugin.simulated.kubelet import SimulatedKubelet
from plugin.state_files import boot_id, boot_seconds
from tests.plugin.health.published import ago, healthy, node, status
from tests.plugin.nvml_library import Script, build
from tests.plugin.plugin_process import ROOT, Start
from tests.plugin.waiting import wait_until

NAME = "gpu-share.dev/vgpu"
FIRST, SECOND = (f"GPU-00000000-0000-0000-0000-00000000000{index}" for index in (0, 1))


@pytest.fixture(scope="module")
def build_nvml(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., str]:
    """Compile a libnvidia-ml.so.1; gives the directory that it lies in."""
    return lambda *options: str(build(tmp_path_factory.mktemp("nvml"), *options).parent)


@pytest.fixture(scope="module")
def nvml(build_nvml: Callable[..., str]) -> str:
    return build_nvml()


def test_the_gpus_of_nvml_are_shared_with_their_numa_nodes(start: Start, nvml: str, tmp_path: Path) -> None:
    calls = tmp_path / "calls"
    plugin = start(LD_LIBRARY_PATH=nvml, FAKE_NVML="healthy", FAKE_NVML_CALLS=str(calls))
    line = plugin.logged("starting")
    assert line["driver"] == "580.95.05"
    assert line["gpus"] == [
        {
            "uuid": f"GPU-00000000-0000-0000-0000-00000000000{index}",
            "index": index,
            "minor": index,
            "model": "NVIDIA H200",
            "memory_bytes": 143000 << 20,
            "numa_node": index,
            "mps_clients": 60,
            "reserved_bytes": 771 << 20,
            "architecture": "",
            "pcie_root": "",
            "resource": NAME,
        }
        for index in (0, 1)
    ]
    assert plugin.ends(by=signal.SIGTERM)[0] == 0
    called = calls.read_text().split()
    assert (called[0], called[-1], called.count("init"), called.count("shutdown")) == ("init", "shutdown", 1, 1)


def test_an_old_nvml_without_the_newer_functions_is_enough(start: Start, build_nvml: Callable[..., str]) -> None:
    line = start(LD_LIBRARY_PATH=build_nvml("-DOLD"), FAKE_NVML="healthy").logged("starting")
    assert [gpu["numa_node"] for gpu in line["gpus"]] == [None, None]
    assert [(gpu["memory_bytes"], gpu["reserved_bytes"]) for gpu in line["gpus"]] == [(143771 << 20, None)] * 2


@pytest.mark.parametrize(
    ("scenario", "gpu", "reason"), [("lost", "1", "GPU is lost"), ("mig", "0", "GPU-.*1 is in MIG mode")]
)
def test_a_gpu_that_cannot_be_shared_is_left_out_with_its_reason(
    start: Start, nvml: str, scenario: str, gpu: str, reason: str
) -> None:
    plugin = start(LD_LIBRARY_PATH=nvml, FAKE_NVML=scenario)
    skipped = plugin.logged("GPU skipped")
    assert skipped["level"] == "warning"
    assert reason.partition(".*")[2] in skipped["reason"]
    assert [found["uuid"][-1] for found in plugin.logged("starting")["gpus"]] == [gpu]


@pytest.mark.parametrize(
    ("scenario", "sentence"),
    [
        ("uninitialized", "NVML: Driver Not Loaded: load the NVIDIA driver"),
        ("unknown", "NVML: an error newer than the bindings: see nvidia-smi"),
        ("empty", "NVML sees no GPU"),
        ("broken", "GPU 0 of 2 cannot be shared: GPU is lost; GPU 1 of 2 cannot be shared: GPU is lost"),
    ],
)
def test_without_a_gpu_it_ends_with_one_line(start: Start, nvml: str, scenario: str, sentence: str) -> None:
    code, written = start(LD_LIBRARY_PATH=nvml, FAKE_NVML=scenario).ends()
    assert code == 1
    assert sentence in written
    assert written.count("\n") == 1


def test_without_nvml_it_ends_with_one_line(start: Start) -> None:
    code, written = start().ends()
    assert code == 1
    assert "libnvidia-ml.so.1: install the NVIDIA driver" in written
    assert written.count("\n") == 1


def test_it_waits_for_gpus_where_told_to_and_can_be_ended_meanwhile(start: Start, nvml: str) -> None:
    plugin = start("--wait-for-gpus", LD_LIBRARY_PATH=nvml, FAKE_NVML="empty")
    assert "NVML sees no GPU" in plugin.logged("waiting for GPUs")["reason"]
    assert plugin.ends(by=signal.SIGTERM) == (0, "")


def test_a_critical_xid_reaches_the_kubelet_and_is_known_to_the_next_plugin(
    start: Start, nvml: str, directory: Path, tmp_path: Path
) -> None:
    name = "gpu-share.dev/vgpu-timesliced"
    script = Script(tmp_path)
    script.say("tells_nothing")
    arguments = ("--strategy", "time-slicing")
    with SimulatedKubelet(directory) as kubelet:
        plugin = start(*arguments, LD_LIBRARY_PATH=nvml, **script.environment)
        kubelet.wait_until(lambda: kubelet.allocatable(name) == 20)
        script.say("xid 1 79")
        kubelet.wait_until(lambda: kubelet.allocatable(name) == 10)
        assert "XID 79" in plugin.logged("GPU unhealthy")["why"]
        assert plugin.ends(by=signal.SIGTERM)[0] == 0
        (tmp_path / "later").mkdir()
        later = Script(tmp_path / "later")
        later.say("tells_nothing")
        following = start(*arguments, LD_LIBRARY_PATH=nvml, **later.environment)
        kubelet.wait_until(lambda: kubelet.allocatable(name) == 10)
        assert following.logged("GPU unhealthy")["gpu"] == SECOND


def test_a_gpu_shared_by_mps_is_shared_once_its_daemon_is_ready(
    start: Start, nvml: str, directory: Path, tmp_path: Path
) -> None:
    with SimulatedKubelet(directory) as kubelet:
        plugin = start(LD_LIBRARY_PATH=nvml)
        assert "gpu-share mps" in plugin.logged("GPU unhealthy")["why"]
        kubelet.wait_until(lambda: kubelet.capacity(NAME) == 20)
        assert kubelet.allocatable(NAME) == 0
        ready = MpsGpu(state="ready", since="now", checked_seconds=boot_seconds())
        write_state(tmp_path, MpsState(boot_id=boot_id(), gpus={FIRST: ready}))
        with alone(tmp_path, "mps"):
            kubelet.wait_until(lambda: kubelet.allocatable(NAME) == 10)
        kubelet.wait_until(lambda: kubelet.allocatable(NAME) == 0)


def test_one_process_serves_a_node_that_shares_each_gpu_in_its_own_way(
    start: Start, directory: Path, tmp_path: Path
) -> None:
    policies = tmp_path / "policies"
    policies.mkdir()
    (policies / "_cluster.yaml").write_text(
        "nodes:\n"
        "- {model: H200, indexes: [0], offer: whole}\n"
        "- {model: H200, indexes: [1], offer: time-slicing}\n"
        "- {model: H200, indexes: [2], offer: none}\n"
    )
    (policies / "_default.yaml").write_text((ROOT / "policies/files/_default.yaml").read_text())
    with SimulatedKubelet(directory) as kubelet:
        plugin = start("--simulate", "4xH200", "--policies", str(policies))
        names = ("gpu-share.dev/gpu", "gpu-share.dev/vgpu-timesliced", NAME)
        assert [kubelet.wait_for(name) for name in names] == [1, 10, 10]
        whole = kubelet.allocate(Request(pod="default/a", container="main", resource=names[0], count=1))
        assert whole.environment["GPU_SHARE_FRACTION"] == "1"
        resources = [gpu["resource"] for gpu in plugin.logged("starting")["gpus"]]
        assert resources == [names[0], names[1], None, names[2]]
        assert plugin.ends(by=signal.SIGTERM)[0] == 0
        assert [path.name for path in directory.iterdir()] == ["kubelet.sock"]


def test_a_gpu_is_shared_as_in_the_run_before_though_nvml_counts_it_otherwise(
    start: Start, nvml: str, tmp_path: Path
) -> None:
    policies = tmp_path / "policies"
    policies.mkdir()
    (policies / "_cluster.yaml").write_text("nodes: [{indexes: [0], offer: whole, allocation: device-plugin}]\n")
    (policies / "_default.yaml").write_text((ROOT / "policies/files/_default.yaml").read_text())
    arguments = ("--policies", str(policies))

    def resources() -> list[str]:
        plugin = start(*arguments, LD_LIBRARY_PATH=nvml, FAKE_NVML="healthy")
        gpus = plugin.logged("starting")["gpus"]
        assert plugin.ends(by=signal.SIGTERM)[0] == 0
        return [gpu["resource"] for gpu in gpus]

    assert resources() == ["gpu-share.dev/gpu", NAME]
    kept = tmp_path / FILE
    assert json.loads(kept.read_text())["numbers"] == {FIRST: 0, SECOND: 1}
    kept.write_text(json.dumps({"indexes": [[0]], "numbers": {FIRST: 1, SECOND: 0}}))  # NVML counted them so before
    assert resources() == [NAME, "gpu-share.dev/gpu"]


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_though_nvml_hangs(start: Start, nvml: str, tmp_path: Path, ending: int) -> None:
    script = Script(tmp_path)
    plugin = start(LD_LIBRARY_PATH=nvml, **script.environment)
    plugin.logged("waiting for the kubelet")
    script.say("hang")
    assert plugin.ends(by=ending)[0] == 0


def test_a_signal_ends_it_though_nvml_hangs_from_the_start(start: Start, nvml: str, tmp_path: Path) -> None:
    script = Script(tmp_path)
    script.say("hang")
    plugin = start(LD_LIBRARY_PATH=nvml, **script.environment)
    wait_until(lambda: script.calls["init"] == 1)
    assert plugin.ends(by=signal.SIGTERM) == (0, "")


def test_what_is_waited_for_is_the_status_and_faults_of_an_earlier_plugin_come_back_with_the_gpus(
    start: Start, nvml: str, tmp_path: Path
) -> None:
    fault = Fault(source="xid", why="XID 63", since=ago(hours=1), comes_back="once it is reset", xid=63)
    write_node_health(tmp_path, node(healthy(0, uuid=FIRST, faults=(fault,))))
    script = Script(tmp_path)
    script.say("count 0", "tells_nothing")
    plugin = start("--wait-for-gpus", "--strategy", "time-slicing", LD_LIBRARY_PATH=nvml, **script.environment)
    plugin.logged("waiting for GPUs")
    wait_until(lambda: "no GPU is shared yet: no GPU to share: NVML sees no GPU" in status(tmp_path).stdout)
    script.say("count 2")
    assert plugin.logged("GPU unhealthy")["gpu"] == FIRST
    ran = status(tmp_path)
    assert (ran.returncode, "XID 63" in ran.stdout) == (1, True)


def test_a_plugin_that_was_killed_leaves_no_good_news_behind(start: Start, nvml: str, tmp_path: Path) -> None:
    plugin = start("--strategy", "time-slicing", LD_LIBRARY_PATH=nvml)
    plugin.logged("starting")
    wait_until(lambda: status(tmp_path).returncode == 0)
    plugin.process.kill()
    plugin.process.wait()
    ran = status(tmp_path)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert f"its process {plugin.process.pid} is gone" in ran.stderr


def test_a_plugin_that_found_no_gpu_says_so_after_its_end(start: Start, nvml: str, tmp_path: Path) -> None:
    start(LD_LIBRARY_PATH=nvml, FAKE_NVML="uninitialized").ends()
    assert "is gone, and no GPU was shared: NVML: Driver Not Loaded: load the NVIDIA driver" in status(tmp_path).stderr
