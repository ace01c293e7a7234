"""The plugin as a process of its own: what an administrator starts, reads and ends."""

import fcntl
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from plugin.health.state import read_node_health
from plugin.simulated.device_manager import Request
from plugin.simulated.kubelet import SimulatedKubelet
from plugin.state_files import boot_id
from tests.plugin.plugin_process import ROOT, Start

NAME = "gpu-share.dev/vgpu"


def test_a_pod_gets_its_share_from_the_real_command_before_and_after_a_restart_of_the_kubelet(
    start: Start, directory: Path
) -> None:
    with SimulatedKubelet(directory) as kubelet:
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
        assert [path.name for path in directory.iterdir()] == ["kubelet.sock"]


def test_no_allocation_waits_for_a_log_that_nobody_reads(directory: Path) -> None:
    reading, writing = os.pipe()
    fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, 4096)  # about ten lines
    options = ["--simulate", "8xH200", "--kubelet-dir", str(directory), "--state-dir", str(directory / "state")]
    options += ["--cdi-dir", str(directory / "cdi"), "--pod-resources", str(directory / "pod-resources.sock")]
    with SimulatedKubelet(directory) as kubelet:
        plugin = subprocess.Popen([sys.executable, "-m", "gpu_share", "plugin", *options], stderr=writing, cwd=ROOT)
        try:
            kubelet.wait_for(NAME)
            for number in range(80):
                kubelet.allocate(Request(pod=f"default/{number}", container="main", resource=NAME, count=1))
            plugin.send_signal(signal.SIGTERM)
            assert plugin.wait(10) == 0
        finally:
            plugin.kill()
            plugin.wait()
            os.close(reading)
            os.close(writing)


def test_a_time_sliced_node_advertises_its_own_resource_and_holds_nobody(start: Start, directory: Path) -> None:
    resource = "gpu-share.dev/vgpu-timesliced"
    with SimulatedKubelet(directory) as kubelet:
        start("--simulate", "1xL4", "--strategy", "time-slicing")
        kubelet.wait_for(resource)
        received = kubelet.allocate(Request(pod="default/a", container="main", resource=resource, count=2))
    assert set(received.environment) == {"NVIDIA_VISIBLE_DEVICES", "GPU_SHARE_FRACTION", "GPU_SHARE_MEMORY_MIB"}
    assert received.mounts == ()


def test_the_start_says_what_is_in_force_and_which_gpus_there_are(start: Start, directory: Path) -> None:
    line = start("--simulate", "1xL4", "--allocation-policy", "spread").logged("starting")
    assert line["settings"]["allocation_policy"] == "spread"
    assert line["settings"]["kubelet_dir"] == str(directory)
    assert (line["vgpus_per_gpu"], line["pipe_directory"]) == (10, "/tmp/nvidia-mps")
    assert [(gpu["model"], gpu["memory_bytes"], gpu["resource"]) for gpu in line["gpus"]] == [("L4", 23034 << 20, NAME)]


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_without_a_trace_while_there_is_no_kubelet(start: Start, directory: Path, ending: int) -> None:
    plugin = start("--simulate", "1xL4")
    plugin.logged("waiting for the kubelet")
    code, written = plugin.ends(by=ending)
    assert code == 0
    assert [json.loads(line)["message"] for line in written.splitlines()] == ["shutting down"]
    assert list(directory.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["--simulate", "2xH999"], 2, "--simulate 2xH999: unknown model"),
        (["--simulate", "1xL4", "--policies", "/nowhere"], 2, "/nowhere"),
        (["--simulate", "1xL4", "--kubelet-dir", "/nowhere"], 1, "--kubelet-dir /nowhere: not a directory"),
    ],
)
def test_what_cannot_be_used_is_one_line(start: Start, arguments: list[str], code: int, sentence: str) -> None:
    ended, written = start(*arguments).ends()
    assert ended == code
    assert sentence in written
    assert written.count("\n") == 1


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


def changed(how: str, directory: Path, tmp_path: Path, *arguments: str) -> list[str]:
    """Give the command of a plugin in whose program something is changed before it starts."""
    places = ["--kubelet-dir", str(directory), "--state-dir", str(tmp_path), "--cdi-dir", str(tmp_path / "cdi")]
    program = f"import sys\nimport gpu_share\n{how}gpu_share.main()"
    return [sys.executable, "-c", program, "plugin", "--simulate", "1xL4", *places, *arguments]


@pytest.mark.parametrize(
    "dying",
    [
        "plugin.device_plugin.registration.ResourceServer.run",
        "plugin.health.reconciler.Reconciler.run",
        "plugin.health.monitor.Monitor.run",
    ],
)
def test_a_thread_that_dies_ends_the_process(directory: Path, tmp_path: Path, dying: str) -> None:
    how = (
        "from pkgutil import resolve_name\n"
        "def die(self): raise RuntimeError('died')\n"
        "owner, _, method = sys.argv.pop().rpartition('.')\n"
        "module, _, name = owner.rpartition('.')\n"
        "setattr(resolve_name(f'{module}:{name}'), method, die)\n"
    )
    command = changed(how, directory, tmp_path, dying)
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=20, check=False)
    assert ended.returncode == 1
    lines = [json.loads(line) for line in ended.stderr.splitlines()]
    assert "RuntimeError: died" in next(line["traceback"] for line in lines if line["message"] == "the plugin failed")


@pytest.mark.parametrize("name", ["nvml", "kubelet", "occupancy", "tenants", "reconciler", "http"])
def test_a_thread_that_cannot_be_had_ends_the_process_or_is_told(directory: Path, tmp_path: Path, name: str) -> None:
    how = (
        "import threading\n"
        "name, starts = sys.argv.pop(), threading.Thread.start\n"
        "def start(self):\n"
        '    if self.name == name: raise RuntimeError("can\'t start new thread")\n'
        "    starts(self)\n"
        "threading.Thread.start = start\n"
    )
    command = changed(how, directory, tmp_path, "--metrics-bind", "127.0.0.1:0", name)
    with SimulatedKubelet(directory):  # whose stream must not keep half of a plugin alive
        plugin = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True)
        assert plugin.stderr is not None
        try:
            told = next(text for text in plugin.stderr if "can't start new thread" in text)
            if name == "http":
                plugin.send_signal(signal.SIGTERM)
            assert plugin.wait(20) == (0 if name == "http" else 1)
            assert "Traceback" not in told + plugin.stderr.read()
        finally:
            plugin.kill()
            plugin.wait()
            plugin.stderr.close()


def test_a_thread_that_dies_is_not_forgotten_over_one_that_hangs(directory: Path, tmp_path: Path) -> None:
    how = (
        "from plugin.health.reconciler import Reconciler\n"
        "from plugin.health.monitor import Monitor\n"
        "def die(self): raise RuntimeError('died')\n"
        "Reconciler.run, Monitor.stop = die, lambda self: None\n"
    )
    command = changed(how, directory, tmp_path)
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, timeout=20, check=False)
    assert ended.returncode == 1


def test_importing_grpc_starts_no_thread_that_signals_could_go_to() -> None:
    # `run` holds the signals back in its own thread and in those started later; an earlier one would get them.
    program = "import os, plugin.process; print(len(os.listdir('/proc/self/task')))"
    ended = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == "1"


def test_a_second_plugin_on_a_node_ends_at_once_and_the_first_stays_registered(start: Start, directory: Path) -> None:
    with SimulatedKubelet(directory) as kubelet:
        start("--simulate", "1xL4")
        kubelet.wait_for(NAME)
        code, written = start("--simulate", "1xL4").ends()
        assert code == 1
        assert "another gpu-share plugin runs on this node: end it first" in written
        assert written.count("\n") == 1
        assert kubelet.allocatable(NAME) == 10
        assert kubelet.registrations == [NAME]


def test_a_plugin_after_one_that_was_killed_starts(start: Start, directory: Path) -> None:
    with SimulatedKubelet(directory) as kubelet:
        first = start("--simulate", "1xL4")
        kubelet.wait_for(NAME)
        first.process.kill()
        first.process.wait()
        start("--simulate", "1xL4").logged("registered with the kubelet")
