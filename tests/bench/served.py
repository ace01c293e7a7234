"""What a review costs through TLS: CPU, waiting times and memory, beside an empty route on this server and another."""

import os
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from tests.bench.callers import Measured, memory_mib
from tests.bench.callers import measure as measured
from tests.bench.pods import SIZES, review_of
from tests.webhook.serving import Server, is_ready, start, wait_for

_ROUNDS = 3  # taken in turn, so that a machine that slows down slows all alike

# All servers have sessions of their own: the kernel shares the processor between sessions first.


def measure(policies: Path, certificates: Path, directory: Path) -> Iterator[str]:
    """Measure with one worker and with two."""
    yield "CPU and p99 of a review: ours, in ratio to the empty route here (and on gunicorn's threads with Flask)"
    for workers in (1, 2):
        with _servers(policies, certificates, directory, workers) as servers:
            idle = memory_mib(servers["ours"])
            yield from _loads(servers, workers)
            loaded = memory_mib(servers["ours"])
            named = f"{workers} worker{'s'[: workers - 1]}"
            yield f"{named}: memory {idle:.0f} MiB idle, {loaded:.0f} MiB loaded (PSS, master included)"


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


def _loads(servers: Mapping[str, Server], workers: int) -> Iterator[str]:
    typical = review_of(SIZES["typical"])
    for connections in (1, 8, 64):
        load = partial(measured, body=typical, connections=connections, calls=4000)
        yield _line(f"{connections} connection{'s'[: connections - 1]}", workers, _in_turn(servers, load))
    for name in ("small", "large"):
        load = partial(measured, body=review_of(SIZES[name]), connections=1, calls=2000)
        yield _line(f"{name} pods", workers, _in_turn(servers, load))
    load = partial(measured, body=typical, connections=2, calls=600, per_second=300)
    yield _line("300 a second", workers, _in_turn(servers, load))
    load = partial(measured, body=typical, connections=4, calls=400, renewed=True)
    yield _line("new connections", workers, _in_turn(servers, load))


def _in_turn(servers: Mapping[str, Server], load: Callable[[Server], Measured]) -> dict[str, Measured]:
    """Take the median of each number over the rounds."""
    rounds: dict[str, list[Measured]] = {name: [] for name in servers}
    for _ in range(_ROUNDS):
        for name, server in servers.items():
            rounds[name].append(load(server))
    return {
        name: Measured(
            statistics.median(one.cpu_us for one in made),
            statistics.median(one.p50_ms for one in made),
            statistics.median(one.p99_ms for one in made),
        )
        for name, made in rounds.items()
    }


def _line(name: str, workers: int, made: Mapping[str, Measured]) -> str:
    ours, empty, reference = made["ours"], made["empty"], made["reference"]
    return (
        f"{workers} worker{'s'[: workers - 1]}, {name:16}: CPU {ours.cpu_us:5.0f} us, "
        f"ratio {ours.cpu_us / empty.cpu_us:.2f} ({ours.cpu_us / reference.cpu_us:.2f}); p50 {ours.p50_ms:.2f} ms; "
        f"p99 {ours.p99_ms:.2f} ms, ratio {ours.p99_ms / empty.p99_ms:.2f} ({ours.p99_ms / reference.p99_ms:.2f})"
    )


@contextmanager
def _servers(policies: Path, certificates: Path, directory: Path, workers: int) -> Iterator[dict[str, Server]]:
    with ExitStack() as stack:
        servers = {
            "ours": start(policies, certificates, directory / f"ours-{workers}.log", workers=workers),
            "empty": _empty(policies, certificates, directory / f"empty-{workers}.log", workers),
            "reference": _reference(certificates, workers),
        }
        for server in servers.values():
            stack.callback(server.stop)
        yield servers


def _pair(certificates: Path) -> list[str]:
    return [str(certificates / "tls.crt"), str(certificates / "tls.key")]


def _empty(policies: Path, certificates: Path, log: Path, workers: int) -> Server:
    command = [sys.executable, "-m", "tests.bench.empty_server", str(policies), *_pair(certificates), str(workers)]
    with log.open("wb") as stderr:
        server = Server(
            subprocess.Popen(command, stderr=stderr, start_new_session=True), log=log, ca=certificates / "ca.crt"
        )
    wait_for(lambda: server.lines("serving"))
    server.port = int(server.lines("serving")[0]["address"].rpartition(":")[2])
    wait_for(lambda: is_ready(server))
    return server


def _reference(certificates: Path, workers: int) -> Server:
    with socket.create_server(("127.0.0.1", 0), backlog=2048) as listening:
        descriptor = listening.fileno()
        command = [sys.executable, "-m", "tests.bench.reference_server", str(descriptor), *_pair(certificates)]
        process = subprocess.Popen(
            [*command, str(workers)], stderr=subprocess.DEVNULL, pass_fds=[descriptor], start_new_session=True
        )
        port = int(listening.getsockname()[1])
    server = Server(process, log=Path(os.devnull), ca=certificates / "ca.crt", port=port)
    wait_for(lambda: is_ready(server))
    return server
