"""The plugin as a process of its own: what an administrator starts, reads and ends."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

import pytest

from plugin.boot_clock import boot_id, boot_seconds
from plugin.health.node_state import read_node_health
from plugin.mps.state import MpsGpu, MpsState, write_state
from plugin.simulated_kubelet import SimulatedKubelet
from plugin.simulated_manager import Request
from tests.plugin.nvml_library import Script, build
from tests.plugin.waiting import wait_until

NAME = "gpu-share.dev/vgpu"
ROOT = Path(__file__).parents[2]
FIRST, SECOND = (f"GPU-00000000-0000-0000-0000-00000000000{index}" for index in (0, 1))
ENDS_WITHIN_SECONDS = 10

Start = Callable[..., "Plugin"]


class Plugin:
    """A running `gpu-share plugin`; its log is read as it comes."""

    def __init__(self, *arguments: str, **variables: str) -> None:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("GPU_SHARE_")}
        self.process = subprocess.Popen(
            [sys.executable, "-W", "error", "-m", "gpu_share", "plugin", *arguments],
            cwd=ROOT,
            env=environment | variables,
            stderr=subprocess.PIPE,
            text=True,
        )

    @property
    def _stderr(self) -> IO[str]:
        assert self.process.stderr is not None
        return self.process.stderr

    def logged(self, message: str) -> dict[str, Any]:
        """Read on to the line with that message."""
        for text in self._stderr:
            line: dict[str, Any] = json.loads(text)
            if line["message"] == message:
                return line
        raise AssertionError(f"it ended without saying {message!r}")

    def ends(self, *, by: int = 0) -> tuple[int, str]:
        """Send a signal, or none; the exit code and what was written since."""
        if by:
            self.process.send_signal(by)
        _, written = self.process.communicate(timeout=ENDS_WITHIN_SECONDS)
        return self.process.returncode, written

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        self._stderr.close()


@pytest.fixture
def start(folder: Path, tmp_path: Path) -> Iterator[Start]:
    with ExitStack() as stack:

        def start(*arguments: str, **variables: str) -> Plugin:
            folders = ("--kubelet-dir", str(folder), "--state-dir", str(tmp_path))
            plugin = Plugin(*folders, *arguments, **variables)
            stack.callback(plugin.close)
            return plugin

        yield start


def test_a_pod_gets_its_share_from_the_real_command_before_and_after_a_restart_of_the_kubelet(
    start: Start, folder: Path
) -> None:
    with SimulatedKubelet(folder) as kubelet:
        plugin = start("--simulate", "2xH200")
        kubelet.wait_for(NAME)
        first = kubelet.allocate(Request(pod="default/a", container="main", resource=NAME, count=2))
        kubelet.restart()
        kubelet.wait_until(lambda: kubelet.allocatable(NAME) == 20, timeout_seconds=2)
        second = kubelet.allocate(Request(pod="default/b", container="main", resource=NAME, count=8))
        assert first.environment["NVIDIA_VISIBLE_DEVICES"] == second.environment["NVIDIA_VISIBLE_DEVICES"]
        assert second.environment["GPU_SHARE_FRACTION"] == "0.8"
        assert kubelet.registrations == [NAME, NAME]
        assert plugin.ends(by=signal.SIGTERM)[0] == 0
        assert [path.name for path in folder.iterdir()] == ["kubelet.sock"]


def test_a_time_sliced_node_offers_its_own_resource_and_holds_nobody(start: Start, folder: Path) -> None:
    resource = "gpu-share.dev/vgpu-timesliced"
    with SimulatedKubelet(folder) as kubelet:
        start("--simulate", "1xL4", "--strategy", "time-slicing")
        kubelet.wait_for(resource)
        received = kubelet.allocate(Request(pod="default/a", container="main", resource=resource, count=2))
    assert set(received.environment) == {"NVIDIA_VISIBLE_DEVICES", "GPU_SHARE_FRACTION", "GPU_SHARE_MEMORY_MIB"}
    assert received.mounts == ()


def test_the_start_says_what_is_in_force_and_which_gpus_there_are(start: Start, folder: Path) -> None:
    line = start("--simulate", "1xL4", "--allocation-policy", "spread").logged("starting")
    assert line["settings"]["allocation_policy"] == "spread"
    assert line["settings"]["kubelet_dir"] == str(folder)
    assert (line["vgpus_per_gpu"], line["pipe_directory"]) == (10, "/tmp/nvidia-mps")
    assert [(gpu["model"], gpu["memory_bytes"], gpu["resource"]) for gpu in line["gpus"]] == [("L4", 23034 << 20, NAME)]


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_without_a_trace_while_there_is_no_kubelet(start: Start, folder: Path, ending: int) -> None:
    plugin = start("--simulate", "1xL4")
    plugin.logged("waiting for the kubelet")
    code, written = plugin.ends(by=ending)
    assert code == 0
    assert [json.loads(line)["message"] for line in written.splitlines()] == ["ending"]
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["--simulate", "2xH999"], 2, "--simulate 2xH999: unknown model"),
        (["--simulate", "1xL4", "--policies", "/nowhere"], 2, "/nowhere"),
        (["--simulate", "1xL4", "--kubelet-dir", "/nowhere"], 1, "--kubelet-dir /nowhere: not a folder"),
    ],
)
def test_what_cannot_be_used_is_one_line(start: Start, arguments: list[str], code: int, sentence: str) -> None:
    ended, written = start(*arguments).ends()
    assert ended == code
    assert sentence in written
    assert written.count("\n") == 1


@pytest.fixture(scope="module")
def build_nvml(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., str]:
    """Compile a libnvidia-ml.so.1; gives the folder that it lies in."""
    return lambda *options: str(build(tmp_path_factory.mktemp("nvml"), *options).parent)


@pytest.fixture(scope="module")
def nvml(build_nvml: Callable[..., str]) -> str:
    return build_nvml()


def test_the_gpus_of_nvml_are_offered_with_their_numa_nodes(start: Start, nvml: str, tmp_path: Path) -> None:
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
            "memory_bytes": 143771 << 20,
            "numa_node": index,
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
    assert "libnvidia-ml.so.1 was not found: install the NVIDIA driver" in written
    assert written.count("\n") == 1


def test_it_waits_for_gpus_where_told_to_and_can_be_ended_meanwhile(start: Start, nvml: str) -> None:
    plugin = start("--wait-for-gpus", LD_LIBRARY_PATH=nvml, FAKE_NVML="empty")
    assert "NVML sees no GPU" in plugin.logged("waiting for GPUs")["reason"]
    assert plugin.ends(by=signal.SIGTERM) == (0, "")


def test_a_critical_xid_reaches_the_kubelet_and_is_known_to_the_next_plugin(
    start: Start, nvml: str, folder: Path, tmp_path: Path
) -> None:
    name = "gpu-share.dev/vgpu-timesliced"
    script = Script(tmp_path)
    script.say("tells_nothing")
    arguments = ("--strategy", "time-slicing")
    with SimulatedKubelet(folder) as kubelet:
        plugin = start(*arguments, LD_LIBRARY_PATH=nvml, **script.environment)
        kubelet.wait_until(lambda: kubelet.allocatable(name) == 20)
        script.say("xid 1 79")
        kubelet.wait_until(lambda: kubelet.allocatable(name) == 10)
        assert "XID 79" in plugin.logged("GPU unhealthy")["why"]
        assert plugin.ends(by=signal.SIGTERM)[0] == 0
        following = start(*arguments, LD_LIBRARY_PATH=nvml, FAKE_NVML_SCRIPT="")
        kubelet.wait_until(lambda: kubelet.allocatable(name) == 10)
        assert following.logged("GPU unhealthy")["gpu"] == SECOND


def test_a_gpu_shared_by_mps_is_offered_once_its_daemon_is_ready(
    start: Start, nvml: str, folder: Path, tmp_path: Path
) -> None:
    with SimulatedKubelet(folder) as kubelet:
        plugin = start(LD_LIBRARY_PATH=nvml)
        assert "gpu-share mps" in plugin.logged("GPU unhealthy")["why"]
        kubelet.wait_until(lambda: kubelet.capacity(NAME) == 20)
        assert kubelet.allocatable(NAME) == 0
        ready = MpsGpu(state="ready", since="now", checked_seconds=boot_seconds())
        write_state(tmp_path, MpsState(boot_id=boot_id(), gpus={FIRST: ready}))
        kubelet.wait_until(lambda: kubelet.allocatable(NAME) == 10)


def test_one_process_serves_a_node_that_offers_each_gpu_in_its_own_way(
    start: Start, folder: Path, tmp_path: Path
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
    with SimulatedKubelet(folder) as kubelet:
        plugin = start("--simulate", "4xH200", "--policies", str(policies))
        names = ("gpu-share.dev/gpu", "gpu-share.dev/vgpu-timesliced", NAME)
        assert [kubelet.wait_for(name) for name in names] == [1, 10, 10]
        whole = kubelet.allocate(Request(pod="default/a", container="main", resource=names[0], count=1))
        assert whole.environment["GPU_SHARE_FRACTION"] == "1"
        resources = [gpu["resource"] for gpu in plugin.logged("starting")["gpus"]]
        assert resources == [names[0], names[1], None, names[2]]
        assert plugin.ends(by=signal.SIGTERM)[0] == 0
        assert [path.name for path in folder.iterdir()] == ["kubelet.sock"]


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


def test_the_state_is_there_for_people_before_a_kubelet_is(start: Start, tmp_path: Path) -> None:
    plugin = start("--simulate", "2xH200")
    plugin.logged("starting")
    health = read_node_health(tmp_path)
    assert health is not None
    assert (health.pid, health.boot_id, health.driver) == (plugin.process.pid, boot_id(), "simulated")
    assert ([gpu.healthy for gpu in health.gpus], health.ended) == ([True, True], False)
    assert plugin.ends(by=signal.SIGTERM)[0] == 0
    left = read_node_health(tmp_path)
    assert left is not None
    assert (left.gpus, left.ended) == (health.gpus, True)


@pytest.mark.parametrize(
    "dying",
    [
        "plugin.kubelet.ResourceServer.run",
        "plugin.health.judge.Judge.run",
        "plugin.health.nvml_watcher.NvmlWatcher.run",
    ],
)
def test_a_thread_that_dies_ends_the_process(folder: Path, tmp_path: Path, dying: str) -> None:
    program = (
        "import sys\n"
        "from pkgutil import resolve_name\n"
        "import gpu_share\n"
        "def die(self): raise RuntimeError('died')\n"
        "owner, _, method = sys.argv.pop().rpartition('.')\n"
        "module, _, name = owner.rpartition('.')\n"
        "setattr(resolve_name(f'{module}:{name}'), method, die)\n"
        "gpu_share.main()"
    )
    arguments = ["plugin", "--simulate", "1xL4", "--kubelet-dir", str(folder), "--state-dir", str(tmp_path)]
    ended = subprocess.run(
        [sys.executable, "-c", program, *arguments, dying],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    assert ended.returncode == 1
    lines = [json.loads(line) for line in ended.stderr.splitlines()]
    assert "RuntimeError: died" in next(line["error"] for line in lines if line["message"] == "the plugin failed")


def test_a_thread_that_dies_is_not_forgotten_over_one_that_hangs(folder: Path, tmp_path: Path) -> None:
    program = (
        "import gpu_share\n"
        "from plugin.health.judge import Judge\n"
        "from plugin.health.nvml_watcher import NvmlWatcher\n"
        "def die(self): raise RuntimeError('died')\n"
        "Judge.run, NvmlWatcher.stop = die, lambda self: None\n"
        "gpu_share.main()"
    )
    arguments = ["plugin", "--simulate", "1xL4", "--kubelet-dir", str(folder), "--state-dir", str(tmp_path)]
    command = [sys.executable, "-c", program, *arguments]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, timeout=20, check=False)
    assert ended.returncode == 1


def test_importing_grpc_starts_no_thread_that_signals_could_go_to() -> None:
    # `run` holds the signals back in its own thread and in those started later; an earlier one would get them.
    program = "import os, plugin.process; print(len(os.listdir('/proc/self/task')))"
    ended = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == "1"
