"""
What ten tenants of a tenth have of a real GPU: under MPS and by turns, beside one that has it alone.

Each runs the same program ten times, all at once. It comes in two sizes: one that fills the GPU, and one that uses a
few multiprocessors at a time, as most inference does.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from plugin.errors import DiscoveryError
from plugin.gpus.discovery import discover
from plugin.gpus.gpu import Gpu
from plugin.gpus.nvml import load_nvml
from tests.gpu.node import CLIENT, Node, running, runs

_TENANTS = 10
_RUNS = 10
_SIZES = {"fills the GPU": (1056, 25), "uses 8 multiprocessors": (8, 400)}  # blocks and launches of a run
_CLIENT_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class _Measured:
    """The seconds of each run of each tenant, and from the first one's beginning to the last one's end."""

    of_tenants: list[list[float]]
    all_seconds: float

    @property
    def runs_per_second(self) -> float:
        return sum(len(seconds) for seconds in self.of_tenants) / self.all_seconds

    def __str__(self) -> str:
        seconds = sorted(second for tenant in self.of_tenants for second in tenant)
        means = [statistics.fmean(tenant) for tenant in self.of_tenants]
        apart = f", tenants' means {max(means) / min(means):.2f} apart" if len(means) > 1 else ""
        return (
            f"{self.runs_per_second:.2f} runs per second; a run takes {statistics.median(seconds) * 1000:.0f} ms "
            f"({seconds[0] * 1000:.0f} to {seconds[-1] * 1000:.0f}{apart})"
        )


def measure() -> Iterator[str]:
    try:
        gpu = next(gpu for gpu in discover(load_nvml()).gpus if gpu.instance is None)
    except (DiscoveryError, StopIteration) as error:
        yield f"ten tenants of a tenth: not measured, since there is no GPU here: {str(error) or 'outside MIG mode'}"
        return
    for size, work in _SIZES.items():
        yield from _measure_size(gpu, size, work)


def _measure_size(gpu: Gpu, size: str, work: tuple[int, int]) -> Iterator[str]:
    seen = {"CUDA_VISIBLE_DEVICES": gpu.uuid, "PATH": os.environ["PATH"]}
    seen |= {"LD_LIBRARY_PATH": os.environ.get("LD_LIBRARY_PATH", "")}
    alone = _together(1, partial(_bare, seen), work)
    by_turns = _together(_TENANTS, partial(_bare, seen), work)
    with _node(gpu) as node:
        whole = _together(1, partial(_tenant, node, _TENANTS), work)
        tenth = _together(1, partial(_tenant, node, 1), work)
        shared = _together(_TENANTS, partial(_tenant, node, 1), work)
    yield f"a program that {size}, on {gpu.model}"
    yield f"  alone, without MPS: {alone}"
    for what, measured in (
        ("alone, under MPS with all of the GPU", whole),
        ("alone, under MPS with a tenth", tenth),
        (f"{_TENANTS} tenants by time-slicing", by_turns),
        (f"{_TENANTS} tenants under MPS with a tenth each", shared),
    ):
        yield f"  {what}: {measured}; throughput {measured.runs_per_second / alone.runs_per_second:.2f} of alone"


@contextmanager
def _node(gpu: Gpu) -> Iterator[Node]:
    with tempfile.TemporaryDirectory(prefix="gs-", dir="/tmp") as name:
        Path(name).chmod(0o755)  # as users other than root have to enter it
        with running(gpu, Path(name)) as node:
            yield node


def _together(tenants: int, start: "partial[subprocess.Popen[bytes]]", work: tuple[int, int]) -> _Measured:
    programs = [start("work", str(_RUNS), *map(str, work)) for _ in range(tenants)]
    for program in programs:
        runs(program)
    for program in programs:
        assert program.stdin is not None
        program.stdin.write(b"go\n")
        program.stdin.flush()
    answers = [json.loads(program.communicate(timeout=_CLIENT_SECONDS)[0].splitlines()[-1]) for program in programs]
    if wrong := [answer for answer in answers if answer["error"]]:
        raise RuntimeError(f"{len(wrong)} of {tenants} programs failed: {wrong[0]}")
    took = max(one["ended"] for one in answers) - min(one["began"] for one in answers)
    return _Measured([one["seconds"] for one in answers], took)


def _bare(environment: Mapping[str, str], *arguments: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, str(CLIENT), *arguments]
    return subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def _tenant(node: Node, vgpus: int, *arguments: str) -> subprocess.Popen[bytes]:
    return node.start(*arguments, environment=node.environment(vgpus))
