"""What a review costs through TLS: CPU against an empty route, waiting times, memory."""

import contextlib
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from tests.bench.pods import SIZES, review_of
from tests.webhook.serving import Server, start, wait_for

_MIB = 1024


def measure(policies: Path, certificates: Path, directory: Path) -> Iterator[str]:
    body = review_of(SIZES["typical"])
    with contextlib.ExitStack() as stack:
        ours = start(policies, certificates, directory / "ours.log")
        stack.callback(ours.stop)
        empty = _start_empty(policies, certificates, directory / "empty.log")
        stack.callback(empty.stop)
        spent: dict[str, list[float]] = {"ours": [], "empty": []}
        for _ in range(5):
            spent["ours"].append(_cpu_per_call(ours, body))
            spent["empty"].append(_cpu_per_call(empty, body))
        one, other = (statistics.median(spent[name]) for name in ("ours", "empty"))
        yield f"CPU per review, TLS kept alive: {one:.0f} us, empty route {other:.0f} us, ratio {one / other:.2f}"
        for connections in (1, 8, 64):
            p50, p99 = _latency(ours, body, connections)
            base50, base99 = _latency(empty, body, connections)
            yield (
                f"{connections:2} connections: p50 {p50:.2f} ms, p99 {p99:.2f} ms "
                f"(empty route {base50:.2f} and {base99:.2f}, ratio of p99 {p99 / base99:.2f})"
            )
    for workers in (1, 2):
        server = start(policies, certificates, directory / f"{workers}.log", workers=workers)
        _cpu_per_call(server, body)
        yield f"memory with {workers} worker{'s'[: workers - 1]}: {_memory_mib(server):.0f} MiB (PSS, master included)"
        server.stop()


def measure_cold_start(example: Path) -> Iterator[str]:
    command = [sys.executable, "-m", "gpu_share", "preview", str(example)]
    times: dict[str, list[float]] = {"preview": [], "python": []}
    for _ in range(10):
        for name, one in (("preview", command), ("python", [sys.executable, "-c", "pass"])):
            began = time.perf_counter()
            subprocess.run(one, check=True, stdout=subprocess.DEVNULL)
            times[name].append((time.perf_counter() - began) * 1000)
    preview, python = statistics.median(times["preview"]), statistics.median(times["python"])
    yield f"preview from cold: {preview:.0f} ms, of which python itself {python:.0f} ms"


def _start_empty(policies: Path, certificates: Path, log: Path) -> Server:
    command = [sys.executable, "-m", "tests.bench.empty_server"]
    command += [str(policies), str(certificates / "tls.crt"), str(certificates / "tls.key")]
    with log.open("wb") as stderr:
        server = Server(subprocess.Popen(command, stderr=stderr), log=log, ca=certificates / "ca.crt")
    wait_for(lambda: server.lines("serving"))
    server.port = int(server.lines("serving")[0]["address"].rpartition(":")[2])
    return server


def _cpu_per_call(server: Server, body: bytes, calls: int = 400) -> float:
    """Microseconds of CPU that master and workers spend on one call."""
    with server.caller() as caller:
        caller.ask("POST", "/mutate", body)
        before = _cpu_seconds(server)
        for _ in range(calls):
            caller.ask("POST", "/mutate", body)
        return (_cpu_seconds(server) - before) / calls * 1e6


def _latency(server: Server, body: bytes, connections: int) -> tuple[float, float]:
    """Median and 99th percentile in milliseconds."""
    milliseconds: list[float] = []

    def call() -> None:
        with server.caller() as caller:
            caller.connection.connect()
            barrier.wait()
            for _ in range(1600 // connections):
                began = time.perf_counter()
                caller.ask("POST", "/mutate", body)
                milliseconds.append((time.perf_counter() - began) * 1000)

    barrier = threading.Barrier(connections)
    threads = [threading.Thread(target=call) for _ in range(connections)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ordered = sorted(milliseconds)
    return ordered[len(ordered) // 2], ordered[len(ordered) * 99 // 100]


def _processes(server: Server) -> list[int]:
    pid = server.process.pid
    return [pid, *map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())]


def _cpu_seconds(server: Server) -> float:
    """By the scheduler's clock, in nanoseconds, where the kernel has it."""
    return sum(int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9 for pid in _processes(server))


def _memory_mib(server: Server) -> float:
    lines = [line for pid in _processes(server) for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()]
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / _MIB
