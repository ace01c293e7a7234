"""Everything is killed and starts again in any order: a GPU is never healthy without its MPS daemon."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Event, Thread

import pytest

from plugin.health.state import read_node_health
from plugin.mps.state import PROGRAM, PublishedMpsFaults
from plugin.presence import lives
from plugin.simulated.kubelet import SimulatedKubelet
from plugin.state_files import boot_id
from tests.plugin.mps.bench import A, B, Bench, Running, Start
from tests.plugin.mps.isolated import needs_mounts
from tests.plugin.mps.standin import alive, kill_all
from tests.plugin.nvml_library import build
from tests.plugin.plugin_process import Plugin
from tests.plugin.waiting import wait_until

pytestmark = pytest.mark.exhaustive

NAME = "gpu-share.dev/vgpu"


def kill(running: Running, bench: Bench) -> None:
    """Kill a supervisor and all of its daemons, as the end of its container does."""
    running.process.kill()
    running.process.wait()
    kill_all(bench.pipes)
    wait_until(lambda: not list(alive(bench.pipes)))


@contextmanager
def never_without_a_daemon(bench: Bench, *readers: Callable[[], object]) -> Iterator[list[object]]:
    """Ask *readers* all the while: none of them may say a word of a healthy GPU while no daemon lives."""
    ended, wrong = Event(), list[object]()

    def look() -> None:
        while not ended.is_set():
            said = [reader() for reader in readers]
            if any(said) and not list(alive(bench.pipes)):
                wrong.append(said)

    watching = Thread(target=look)
    watching.start()
    try:
        yield wrong
    finally:
        ended.set()
        watching.join()


@needs_mounts
def test_what_a_killed_run_said_is_invalid_before_the_next_one_is_seen(bench: Bench, start: Start) -> None:
    first = start()
    bench.is_now("ready", A, B)
    known = PublishedMpsFaults(bench.state_dir, boot_id=boot_id())
    assert known([A, B]) == {}
    kill(first, bench)
    assert list(known([A, B])) == [A, B]

    def healthy(faults: PublishedMpsFaults) -> list[str]:
        return [uuid for uuid in (A, B) if uuid not in faults([A, B])]

    # A plugin that ran before, and one that starts at any moment.
    readers = (lambda: healthy(known), lambda: healthy(PublishedMpsFaults(bench.state_dir, boot_id=boot_id())))
    (bench.nvml / "hangs").write_text("1")
    with never_without_a_daemon(bench, *readers) as wrong:
        second = start()
        wait_until(lambda: lives(bench.state_dir, PROGRAM) is True)
        wait_until(lambda: "found no GPU yet" in known([A])[A])
        (bench.nvml / "hangs").unlink()
        bench.is_now("ready", A, B)
        wait_until(lambda: known([A, B]) == {})
    assert wrong == []
    assert second.ends(by=signal.SIGTERM)[0] == 0


@needs_mounts
def test_a_supervisor_that_waits_for_gpus_has_taken_back_what_the_last_one_said(bench: Bench, start: Start) -> None:
    first = start()
    bench.is_now("ready", A, B)
    kill(first, bench)
    bench.has()
    start("wait")
    wait_until(lambda: lives(bench.state_dir, PROGRAM) is True)
    faults = PublishedMpsFaults(bench.state_dir, boot_id=boot_id())([A, B])
    assert set(faults.values()) == {"gpu-share mps has started, and found no GPU yet: see its log if that lasts"}


@needs_mounts
def test_the_end_of_a_daemon_is_seen_at_once_and_not_at_the_next_look(bench: Bench, start: Start) -> None:
    start("slow looks")
    bench.is_now("ready", A, B)
    (daemon,) = (one for one in alive(bench.pipes) if one.directory.endswith(A))
    os.kill(daemon.pid, signal.SIGKILL)
    wait_until(lambda: bench.state().gpus[A].state != "ready", timeout_seconds=5)
    assert bench.state().gpus[B].state == "ready"


class Node:
    """A plugin of its own process, a kubelet, and the supervisor."""

    def __init__(self, bench: Bench, start: Start, kubelet: SimulatedKubelet, directory: Path, nvml: str) -> None:
        self.bench, self.start, self.kubelet = bench, start, kubelet
        options = {"policies": bench.policies, "state-dir": bench.state_dir, "kubelet-dir": directory}
        options["pod-resources"] = directory / "pod-resources.sock"  # not that of a kubelet of this machine
        self._arguments = [f"--{name}={value}" for name, value in options.items()]
        self._nvml = nvml
        self.stack = ExitStack()

    def plugin(self) -> Plugin:
        plugin = Plugin(*self._arguments, LD_LIBRARY_PATH=self._nvml, FAKE_NVML="healthy")
        self.stack.callback(plugin.close)
        return plugin

    def allocatable(self) -> int:
        return self.kubelet.allocatable(NAME)

    def why(self) -> str:
        """Say what the plugin has published of a GPU."""
        health = read_node_health(self.bench.state_dir)
        return " ".join(fault.why for gpu in health.gpus for fault in gpu.faults) if health else ""

    def shares(self, vgpus: int) -> None:
        wait_until(lambda: self.allocatable() == vgpus, timeout_seconds=30)


@pytest.fixture
def node(bench: Bench, start: Start, directory: Path, tmp_path: Path) -> Iterator[Node]:
    with SimulatedKubelet(directory) as kubelet:
        made = Node(bench, start, kubelet, directory, str(build(tmp_path).parent))
        with made.stack:
            yield made


@needs_mounts
@pytest.mark.parametrize("order", ["plugin first", "mps first", "plugin killed", "plugin in between"])
def test_no_vgpu_is_allocatable_without_a_daemon_in_whatever_order_they_start(node: Node, order: str) -> None:
    plugin = node.plugin() if order != "mps first" else None
    first = node.start()
    plugin = plugin or node.plugin()
    node.shares(20)
    kill(first, node.bench)
    if order == "plugin killed":
        plugin.process.kill()
        plugin.process.wait()
    node.shares(0)
    (node.bench.nvml / "hangs").write_text("1")  # the next supervisor takes its time
    with never_without_a_daemon(node.bench, node.allocatable) as wrong:
        second = node.start()
        wait_until(lambda: lives(node.bench.state_dir, PROGRAM) is True)
        if order in ("plugin killed", "plugin in between"):
            plugin.process.kill()
            plugin.process.wait()
            node.plugin()
        wait_until(lambda: "found no GPU yet" in node.why(), timeout_seconds=20)
        (node.bench.nvml / "hangs").unlink()
        node.shares(20)
    assert wrong == []
    assert second.process.poll() is None
