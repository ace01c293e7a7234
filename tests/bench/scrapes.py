"""What it costs to be looked at: a scrape of a full node, and of a webhook, in processor time and memory."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

from plugin.health.state import write_node_health
from plugin.pod_resources.occupancy import write_occupancy
from plugin.state_files import boot_id, boot_seconds
from plugin.telemetry.node import node_state, read_facts
from plugin.telemetry.samples import mps_samples, plugin_samples
from plugin.usage.record import GpuUse, write_use
from policies import node_state as schema
from program import metrics
from tests.bench import telemetry_memory
from tests.bench.counted import counted, scraped
from tests.plugin.health.published import healthy, node, occupancy, occupant, occupied, taken, use
from webhook.counters import Page

_GPUS, _TENANTS = 8, 10  # of each GPU
_TIMES = 50
_COUNTS = 200_000
_MOMENT = "2026-01-01T00:00:00+00:00"


def measure(directory: Path) -> Iterator[str]:
    state_dir = directory / "full"
    state_dir.mkdir()
    _fill(state_dir)
    boot = boot_id()

    def scrape() -> bytes:
        return metrics.answer(
            plugin_samples(node_state(read_facts(state_dir, boot_id=boot), part="plugin", node="n"))
        ).body

    def scrape_use() -> bytes:
        return metrics.answer(mps_samples(node_state(read_facts(state_dir, boot_id=boot), part="mps", node="n"))).body

    def state() -> bytes:
        return schema.write(node_state(read_facts(state_dir, boot_id=boot), part="plugin", node="n"))

    for what, call in (("/metrics of the plugin", scrape), ("/metrics of mps", scrape_use), ("/state", state)):
        milliseconds, size = _cost(call)
        yield f"{what}, 8 GPUs with 80 tenants: {milliseconds:.1f} ms of processor time (goal 20), {size // 1024} KiB"
    yield from telemetry_memory.measure(state_dir)
    yield from _counting()


def _cost(call: Callable[[], bytes]) -> tuple[float, int]:
    """Measure the best of several rounds: others use the machine as well."""
    size = len(call())
    best = float("inf")
    for _ in range(5):
        began = time.process_time()
        for _ in range(_TIMES):
            call()
        best = min(best, (time.process_time() - began) / _TIMES)
    return best * 1000, size


def _counting() -> Iterator[str]:
    page = Page()
    page.take()
    best = float("inf")
    for _ in range(5):
        began = time.process_time()
        for _ in range(_COUNTS):
            page.add(("granted", "", "team-a"), 0.0001)
        best = min(best, (time.process_time() - began) / _COUNTS)
    yield f"a review is counted in {best * 1e6:.2f} µs (goal: below 2 % of a review, some 2 µs)"
    pages = counted(workers=4, policies=1000)
    milliseconds, size = _cost(lambda: scraped(pages).body)
    yield f"/metrics of 4 workers with 1,000 policies each: {milliseconds:.1f} ms, {size // 1024} KiB"


def _fill(state_dir: Path) -> None:
    """Write what the parts of a node with eight full GPUs would write, as measured in a while: it stays fresh."""
    later = boot_seconds() + 600
    tenants = tuple(
        occupant(f"resnet-7d9c5b7f5b-{number:05}", 1, memory_limit_mib=14000, thread_percentage=10, since=_MOMENT)
        for number in range(_TENANTS)
    )
    use_of_gpu = GpuUse(
        containers=tuple(taken(one, memory_bytes=2**30, sm_ratio=0.1) for one in tenants), complete=True
    )
    write_node_health(state_dir, node(*map(healthy, range(_GPUS)), heartbeat_seconds=later))
    write_occupancy(state_dir, occupancy(*[occupied(*tenants)] * _GPUS, looked_seconds=later))
    write_use(state_dir, use(*[use_of_gpu] * _GPUS, measured_seconds=later))
