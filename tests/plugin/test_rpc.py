"""A node that has no more threads for a while: what serves goes on, or ends, and is never deaf."""

import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from plugin.device_plugin.v1beta1 import api_pb2, api_pb2_grpc
from plugin.rpc import channel
from plugin.simulated.device_manager import Request
from plugin.simulated.kubelet import SimulatedKubelet
from tests.plugin.mps.tenants import held
from tests.plugin.mps.tenants import kubelet as listing_kubelet
from tests.plugin.plugin_process import ROOT, Start
from tests.programs import ended

NAME = "gpu-share.dev/vgpu"
SOCKET = "gpu-share.dev_vgpu.sock"
_SOURCE = Path(__file__).with_name("no_threads.c")
_COMPILER = shutil.which("gcc") or shutil.which("cc")


@dataclass(frozen=True, slots=True)
class Threads:
    """The threads of programs that have *environment*."""

    environment: dict[str, str]
    used_up: Path

    @contextmanager
    def are_used_up(self) -> Iterator[None]:
        self.used_up.touch()
        try:
            yield
        finally:
            self.used_up.unlink()


@pytest.fixture
def threads(tmp_path: Path) -> Threads:
    if _COMPILER is None:
        pytest.skip("no C compiler: threads cannot be used up")
    library = tmp_path / "no_threads.so"
    subprocess.run([_COMPILER, "-Wall", "-Werror", "-shared", "-fPIC", "-o", library, _SOURCE, "-ldl"], check=True)
    used_up = tmp_path / "no-threads"
    return Threads({"LD_PRELOAD": str(library), "NO_THREADS": str(used_up)}, used_up)


_ASKS = """
import subprocess, sys
from pathlib import Path
from plugin.errors import TenantsError
from plugin.pod_resources.tenants import read_tenants
for _ in sys.stdin:
    subprocess.run(["true"], check=True)
    try:
        print(*(one.name for one in read_tenants(Path(sys.argv[1]), {"gpu-share.dev/vgpu"})), flush=True)
    except TenantsError as error:
        print(error, flush=True)
"""


def test_a_process_that_asks_the_kubelet_and_runs_programs_does_not_end_for_want_of_threads(
    directory: Path, threads: Threads
) -> None:
    socket = directory / "pods"
    command = [sys.executable, "-W", "error", "-c", _ASKS, str(socket)]
    environment = os.environ | threads.environment
    piped = subprocess.Popen(command, cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with ended(piped) as asking:
        stdin, stdout = asking.stdin, asking.stdout
        assert stdin is not None
        assert stdout is not None

        def answer() -> str:
            stdin.write(b"\n")
            stdin.flush()
            return stdout.readline().decode()

        assert "UNAVAILABLE" in answer()
        threading.Event().wait(1.0)  # in which gRPC ends its threads, if nothing keeps them
        with threads.are_used_up():
            assert "UNAVAILABLE" in answer()
            threading.Event().wait(0.5)
            with listing_kubelet(socket, held("team/a", "GPU-1", vgpus=1)):
                assert answer() == "team/a/main\n"
        stdin.close()
        assert asking.wait(10) == 0


def test_a_plugin_answers_again_once_there_are_threads(start: Start, directory: Path, threads: Threads) -> None:
    with SimulatedKubelet(directory) as kubelet:
        plugin = start("--simulate", "2xH200", **threads.environment)
        kubelet.wait_for(NAME)
        with threads.are_used_up(), ThreadPoolExecutor(16) as calls:
            for called in [calls.submit(_options, directory) for _ in range(64)]:
                called.result()
        kubelet.allocate(Request(pod="default/a", container="main", resource=NAME, count=2))
        assert plugin.ends(by=signal.SIGTERM)[0] == 0


def _options(directory: Path) -> None:
    with channel(directory / SOCKET) as dialled:
        api_pb2_grpc.DevicePluginStub(dialled).GetDevicePluginOptions(api_pb2.Empty(), timeout=10)


def test_a_plugin_registers_again_once_there_are_threads(start: Start, directory: Path, threads: Threads) -> None:
    with SimulatedKubelet(directory) as kubelet:
        plugin = start("--simulate", "2xH200", **threads.environment)
        kubelet.wait_for(NAME)
        with threads.are_used_up():
            kubelet.restart()
            assert "can't start new thread" in plugin.logged("cannot serve, trying again")["reason"]
        kubelet.wait_until(lambda: kubelet.allocatable(NAME) == 20)
        assert kubelet.registrations == [NAME, NAME]
        assert plugin.ends(by=signal.SIGTERM)[0] == 0


def test_a_plugin_can_be_ended_without_threads(start: Start, directory: Path, threads: Threads) -> None:
    with SimulatedKubelet(directory) as kubelet:
        plugin = start("--simulate", "2xH200", **threads.environment)
        kubelet.wait_for(NAME)
        with threads.are_used_up():
            code, written = plugin.ends(by=signal.SIGTERM)
        assert code == 0
        assert "Traceback" not in written
        assert not (directory / SOCKET).exists()


def test_a_plugin_that_cannot_call_the_kubelet_for_want_of_threads_calls_it_later(
    start: Start, directory: Path, threads: Threads
) -> None:
    plugin = start("--simulate", "2xH200", **threads.environment)
    plugin.logged("waiting for the kubelet")
    kubelet = SimulatedKubelet(directory)
    with threads.are_used_up():
        kubelet._listen()  # our socket stays
        assert "can't start new thread" in plugin.logged("not registered, trying again")["reason"]
    kubelet.wait_for(NAME)
    kubelet.stop()
    assert plugin.ends(by=signal.SIGTERM)[0] == 0


_HEARS_NOBODY = """
import sys, threading
from pathlib import Path
from plugin.errors import ThreadsError
from plugin.rpc import serving
starts = threading.Thread.start
def start(self):
    if self.name.endswith("(_serve)"):  # as gRPC calls the function that hears
        raise RuntimeError("can't start new thread")
    starts(self)
threading.Thread.start = start
directory = Path(sys.argv[1])
try:
    with serving(directory / "socket", lambda _: None, unseen=directory / "unseen", threads=2, name="test"):
        print("serves")
except ThreadsError as error:
    print(error)
"""


def test_a_server_that_gets_no_thread_to_hear_with_lets_its_process_end(directory: Path) -> None:
    command = [sys.executable, "-W", "error", "-c", _HEARS_NOBODY, str(directory)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=20, check=True)
    assert "socket: cannot serve: can't start new thread: the node has none left, or this pod\n" in ended.stdout


_BEGINS = """
import sys
from plugin.errors import ThreadsError
from plugin.rpc import keep_running
print("begins", flush=True)
sys.stdin.readline()
try:
    keep_running()
    print("runs")
except ThreadsError as error:
    print(error)
"""


def test_a_process_for_which_grpc_gets_too_few_threads_at_first_is_told(threads: Threads) -> None:
    command = [sys.executable, "-W", "error", "-c", _BEGINS]
    environment = os.environ | threads.environment
    piped = subprocess.Popen(command, cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with ended(piped) as begins:
        assert begins.stdin is not None
        assert begins.stdout is not None
        assert begins.stdout.readline() == b"begins\n"
        with threads.are_used_up():
            begins.stdin.write(b"\n")
            begins.stdin.flush()
            threading.Event().wait(0.7)
        assert begins.wait(30) == 0
        assert begins.stdout.read() == b"gRPC has too few threads: the node has none left, or this pod\n"


@pytest.mark.parametrize("left", [1, 2, 4, 6, 12])
def test_a_plugin_for_which_some_threads_are_left_says_that_they_are_too_few(
    start: Start, threads: Threads, left: int
) -> None:
    plugin = start("--simulate", "2xH200", **threads.environment, THREADS_LEFT=str(left))
    code, written = plugin.ends()
    assert code == 1
    assert "too few threads: the node has none left, or this pod" in written
