"""What the node's side costs: calls over the socket, memory, start, restarts of the kubelet, and a long random walk."""

import contextlib
import logging
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

import grpc

from plugin.device_plugin.v1beta1 import api_pb2, api_pb2_grpc
from plugin.gpus.gpu import Pool
from plugin.simulated.gpus import simulated_gpus
from plugin.simulated.kubelet import SimulatedKubelet
from plugin.sockets import target
from tests.bench.allocations import Allocations, latency
from tests.bench.supervisor import supervised
from tests.plugin.device_plugin.walk import NAME, RandomNode
from tests.plugin.nvml_library import Script, build

_CALLS = 3000
_STARTS = 5
_RESTARTS = 1000
_STEPS = 100_000
_FLOOD = 50_000
_KIB_PER_MIB = 1024
_UNTIL_IT_HANGS_SECONDS = 6.0  # the plugin looks at the GPUs every 5
_WATCH_SECONDS = 15.0
_IN_MEMORY = "/dev/shm"  # as /run is, where the state is on a node


def measure(directory: Path) -> Iterator[str]:
    policies = directory / "many"
    policies.mkdir()
    (policies / "_cluster.yaml").write_text("vgpusPerGpu: 60\n")
    yield from _measure_calls(directory, policies)
    yield from _measure_over_nvml(directory, policies)
    yield from _measure_flood(directory)
    yield from _measure_supervisor()
    yield from _measure_starts(directory)
    yield from _measure_restarts(directory)
    (directory / "walk").mkdir()
    yield from _walk(directory / "walk")


def _measure_calls(directory: Path, policies: Path) -> Iterator[str]:
    with (
        _node(directory / "calls") as kubelet,
        _plugin(directory / "calls", "8xH200", "--policies", str(policies)) as plugin,
    ):
        kubelet.wait_for(NAME)
        with grpc.insecure_channel(target(directory / "calls" / "gpu-share.dev_vgpu.sock")) as channel:
            stub = api_pb2_grpc.DevicePluginStub(channel)
            empty, _ = latency(lambda: stub.GetDevicePluginOptions(api_pb2.Empty()), calls=_CALLS)
            node = Allocations(kubelet, NAME, stub, Random(1))  # noqa: S311 - the same pods in every run
            preferred, allocate = node.measure(pods=_CALLS)
        for name, (p50, p99) in (("Allocate", allocate), ("GetPreferredAllocation", preferred)):
            yield (
                f"{name} at 8 GPUs x 60 vGPUs, 12 pods of 3 to 20: p50 {p50:.2f} ms, p99 {p99:.2f} ms (goal 5), "
                f"ratio to an empty call {p50 / empty:.1f}"
            )
        yield f"memory of the plugin, 8 simulated GPUs x 60 vGPUs: {_memory(plugin.pid)} (goal 45)"


def _measure_over_nvml(directory: Path, policies: Path) -> Iterator[str]:
    """Allocate while the driver hangs: a call of NVML in it would never return."""
    library, script = build(directory), Script(directory)
    script.say("count 8")
    name = "gpu-share.dev/vgpu-timesliced"
    environment = {"LD_LIBRARY_PATH": str(library.parent), "FAKE_NVML": "healthy", **script.environment}
    arguments = ("--policies", str(policies), "--strategy", "time-slicing")
    with _node(directory / "nvml") as kubelet, _plugin(directory / "nvml", None, *arguments, **environment) as plugin:
        kubelet.wait_for(name)
        yield f"memory of the plugin over NVML's bindings: {_memory(plugin.pid)} (goal 45)"
        wanted = api_pb2.ContainerAllocateRequest(devices_ids=[device.id for device in kubelet.devices(name)][:20])
        allocate = api_pb2.AllocateRequest(container_requests=[wanted])
        with grpc.insecure_channel(target(directory / "nvml" / "gpu-share.dev_vgpu-timesliced.sock")) as channel:
            stub = api_pb2_grpc.DevicePluginStub(channel)
            before, _ = latency(lambda: stub.Allocate(allocate), calls=_CALLS)
            script.say("hang")
            time.sleep(_UNTIL_IT_HANGS_SECONDS)
            after, p99 = latency(lambda: stub.Allocate(allocate), calls=_CALLS)
            script.take_back("hang")
        yield f"Allocate while NVML hangs: p50 {after:.2f} ms, p99 {p99:.2f} ms, ratio to before {after / before:.2f}"


def _measure_flood(directory: Path) -> Iterator[str]:
    """A GPU's own error behind thousands that programs have caused on another."""
    (directory / "flood").mkdir()
    script = Script(directory / "flood")
    name = "gpu-share.dev/vgpu-timesliced"
    environment = {"LD_LIBRARY_PATH": str(directory), "FAKE_NVML_SCRIPT": str(script.path)}
    script.say("tells_nothing")
    with (
        _node(directory / "flooded") as kubelet,
        _plugin(directory / "flooded", None, "--strategy", "time-slicing", **environment) as plugin,
    ):
        kubelet.wait_until(lambda: kubelet.allocatable(name) == 20)
        seconds, began = _cpu_seconds(plugin.pid), time.perf_counter()
        script.say(f"flood 0 31 {_FLOOD}", "xid 1 79")
        kubelet.wait_until(lambda: kubelet.allocatable(name) == 10)
        after = time.perf_counter() - began
        spent = _cpu_seconds(plugin.pid) - seconds
    yield (
        f"XID 79 behind {_FLOOD} XIDs of programs, until the kubelet knows: {after:.2f} s (goal 1), "
        f"{spent:.2f} s of one core"
    )


def _measure_supervisor() -> Iterator[str]:
    gpus = [f"GPU-00000000-0000-0000-0000-00000000000{number}" for number in range(8)]
    with supervised(gpus) as (process, programs_run):
        yield f"memory of gpu-share mps with 8 daemons: {_memory(process.pid)}"
        seconds, runs = _cpu_seconds(process.pid), programs_run()
        time.sleep(_WATCH_SECONDS)
        spent, ran = _cpu_seconds(process.pid) - seconds, programs_run() - runs
        yield (
            f"gpu-share mps watching 8 daemons: {100 * spent / _WATCH_SECONDS:.1f} % of a core itself, "
            f"{ran / _WATCH_SECONDS:.1f} commands to daemons a second"
        )


def _measure_starts(directory: Path) -> Iterator[str]:
    seconds = []
    python = []
    for number in range(_STARTS):
        with _node(directory / f"start-{number}") as kubelet:
            began = time.perf_counter()
            with _plugin(directory / f"start-{number}", "8xH200"):
                kubelet.wait_for(NAME)
                seconds.append(time.perf_counter() - began)
        began = time.perf_counter()
        subprocess.run([sys.executable, "-c", "pass"], check=True)
        python.append(time.perf_counter() - began)
    median, bare = statistics.median(seconds), statistics.median(python)
    yield f"start to registered: {median:.2f} s (goal 1.5), of which python itself {bare:.2f} s"


def _measure_restarts(directory: Path) -> Iterator[str]:
    seconds = []
    away = Random(6)  # noqa: S311 - no secret
    with (
        _node(directory / "restarts") as kubelet,
        _plugin(directory / "restarts", "2xH200", "--fit-guard", "off") as plugin,
    ):
        kubelet.wait_for(NAME)
        before = _held(plugin.pid)
        for _ in range(_RESTARTS):
            kubelet.stop()
            time.sleep(away.random() * 0.1)  # at once, the end of the stream would still be what wakes the plugin
            began = time.perf_counter()
            kubelet.start()
            kubelet.wait_until(lambda: kubelet.allocatable(NAME) == 20)
            seconds.append(time.perf_counter() - began)
        after = _held(plugin.pid)
        known = len(kubelet.registrations)
    p99 = sorted(seconds)[int(0.99 * len(seconds))]
    yield (
        f"{_RESTARTS} restarts of the kubelet: {known} registrations of {_RESTARTS + 1}, "
        f"p50 {statistics.median(seconds):.2f} s, p99 {p99:.2f} s (goal 1), slowest {max(seconds):.2f} s, "
        f"descriptors {before[0]} -> {after[0]}, threads {before[1]} -> {after[1]}"
    )


def _walk(directory: Path) -> Iterator[str]:
    logging.getLogger("plugin").setLevel(logging.CRITICAL)
    pool = Pool(gpus=simulated_gpus("8xH200"), vgpus_per_gpu=10)
    node = RandomNode(pool=pool, random=Random(5), directory=directory)  # noqa: S311 - no secret
    began = time.perf_counter()
    for _ in range(_STEPS):
        node.step()
    steps = ", ".join(f"{kind} {times}" for kind, times in node.steps.most_common())
    yield (
        f"{_STEPS} random steps in {time.perf_counter() - began:.0f} s ({steps}): no vGPU handed out twice, "
        "no GPU over its whole, no share on an unhealthy one"
    )


@contextlib.contextmanager
def _node(directory: Path) -> Iterator[SimulatedKubelet]:
    directory.mkdir()
    pod_resources = directory / "pod-resources.sock"
    with SimulatedKubelet(directory, random=Random(1), pod_resources=pod_resources) as kubelet:  # noqa: S311 - the same devices in every run
        yield kubelet


@contextlib.contextmanager
def _plugin(directory: Path, gpus: str | None, *more: str, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    with tempfile.TemporaryDirectory(dir=_IN_MEMORY) as state:
        arguments = ["--simulate", gpus] if gpus else []
        arguments += ["--kubelet-dir", str(directory), "--state-dir", state, *more]
        arguments += ["--cdi-dir", str(directory / "cdi"), "--pod-resources", str(directory / "pod-resources.sock")]
        process = subprocess.Popen(
            [sys.executable, "-m", "gpu_share", "plugin", *arguments],
            env=os.environ | environment,
            stderr=subprocess.DEVNULL,
        )
        try:
            yield process
        finally:
            process.terminate()
            process.wait()


def _held(pid: int) -> tuple[int, int]:
    """Count open descriptors and threads."""
    process = Path("/proc") / str(pid)
    return len(list((process / "fd").iterdir())), len(list((process / "task").iterdir()))


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _memory(pid: int) -> str:
    """Say what a process takes of the memory, with its part of what is shared and with all of it."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    mib = {
        name: int(line.split()[1]) // _KIB_PER_MIB
        for line in lines
        for name in ("Pss", "Rss")
        if line[:4] == f"{name}:"
    }
    return f"{mib['Pss']} MiB PSS, {mib['Rss']} RSS"
