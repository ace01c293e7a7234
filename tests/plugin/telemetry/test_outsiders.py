"""Who uses a shared GPU without a share of it, from the files of a node's parts to scrapers and `/state`."""

import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from prometheus_client.parser import text_string_to_metric_families

from plugin.health.state import write_node_health
from plugin.pod_resources.occupancy import GpuOccupancy, write_occupancy
from plugin.state_files import boot_seconds
from plugin.telemetry.server import TelemetrySettings, serve
from plugin.usage.record import ContainerUse, GpuUse, ProcessesUse, write_use
from policies.node_state import Gpu, read
from policies.outsiders import OfNode, Outsider
from tests.plugin.health.published import healthy, node, occupancy, occupant, occupied, taken, use

GIB = 2**30
RESNET = occupant("resnet", 3)
SHARED = occupied(RESNET, all_named=True)
HOG = ContainerUse(namespace="team-b", pod="hog", container="main", processes=2, memory_bytes=3 * GIB)
USE = GpuUse(containers=(taken(RESNET), HOG), complete=True, outsiders=(HOG,), of_node=ProcessesUse(processes=1))
NAMED = (Outsider(namespace="team-b", pod="hog", container="main", processes=2, memory_bytes=3 * GIB),)
UNKNOWN = (None, OfNode(processes=1))


class Node:
    """The files of a node's parts, and `gpu-share mps` as scrapers and the API server's proxy see it."""

    def __init__(self, directory: Path, metrics: int, state: int) -> None:
        self._directory = directory
        self._metrics, self._state = (f"http://127.0.0.1:{port}" for port in (metrics, state))
        write_node_health(directory, node(healthy(0)))
        self.looks()

    def looks(self, shared: GpuOccupancy = SHARED, **said: Any) -> None:
        write_occupancy(self._directory, occupancy(shared, **{"asked_seconds": boot_seconds(), **said}))

    def measures(self, used: GpuUse = USE, **said: Any) -> None:
        write_use(self._directory, use(used, **said))

    def gpu(self) -> Gpu:
        (gpu,) = read(_get(f"{self._state}/state")).gpus
        return gpu

    def samples(self) -> dict[str, list[tuple[dict[str, str], float]]]:
        families = text_string_to_metric_families(_get(f"{self._metrics}/metrics").decode())
        samples = [one for family in families for one in family.samples]
        return {one.name: [(each.labels, each.value) for each in samples if each.name == one.name] for one in samples}


def _get(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=5) as answer:  # noqa: S310 - an address of this machine
        content: bytes = answer.read()
        return content


@pytest.fixture
def told(tmp_path: Path) -> Iterator[Node]:
    bind = ("127.0.0.1", 0)
    settings = TelemetrySettings(metrics_bind=bind, state_bind=bind)
    servers = serve(settings, part="mps", node="worker-1", state_dir=tmp_path)
    try:
        yield Node(tmp_path, *(one.port for one in servers))
    finally:
        for one in servers:
            one.close()


def test_who_has_no_share_is_in_the_document_and_in_metrics(told: Node) -> None:
    told.measures()
    gpu = told.gpu()
    assert (gpu.outsiders, gpu.of_node) == (NAMED, OfNode(processes=1))
    assert [one.pod for one in gpu.tenants] == ["resnet"]
    samples = told.samples()
    of_gpu = {"node": "worker-1", "gpu": "0", "gpu_uuid": "GPU-0"}
    of_hog = of_gpu | {"namespace": "team-b", "pod": "hog", "container": "main"}
    assert samples["gpu_share_processes_without_share"] == [(of_hog, 2)]
    assert samples["gpu_share_memory_used_without_share_bytes"] == [(of_hog, 3 * GIB)]
    assert samples["gpu_share_node_processes"] == [(of_gpu, 1)]
    assert "gpu_share_node_memory_used_bytes" not in samples
    assert [labels["pod"] for labels, _ in samples["gpu_share_processes"]] == ["resnet"]


def test_whoever_holds_a_share_by_now_is_not_named(told: Node) -> None:
    told.measures()
    told.looks(occupied(RESNET, occupant("hog", 1, namespace="team-b"), all_named=True))
    assert told.gpu().outsiders == ()


def test_whoever_held_a_share_when_it_was_measured_and_has_ended_since_is_not_named(told: Node) -> None:
    told.measures(GpuUse(containers=(taken(RESNET),), complete=True, outsiders=()))
    told.looks(occupied(all_named=True))
    gpu = told.gpu()
    assert (gpu.tenants, gpu.outsiders) == ((), ())


@pytest.mark.parametrize(
    ("shared", "said"),
    [
        (SHARED, {"unknown": "the kubelet does not answer"}),
        (SHARED, {"asked_seconds": None}),  # of a plugin that does not write it
        (SHARED, {"asked_seconds": 0.0}),
        (msgspec.structs.replace(SHARED, all_named=False), {}),
        (msgspec.structs.replace(SHARED, granted=None), {}),
    ],
)
def test_where_it_is_not_known_who_holds_shares_nobody_is_named(
    told: Node, shared: GpuOccupancy, said: dict[str, Any]
) -> None:
    told.measures()
    told.looks(shared, **said)
    gpu = told.gpu()
    assert (gpu.outsiders, gpu.of_node) == UNKNOWN
    assert "gpu_share_processes_without_share" not in told.samples()


def test_what_was_measured_too_long_ago_names_nobody(told: Node) -> None:
    told.measures(measured_seconds=0.0)
    gpu = told.gpu()
    assert (gpu.outsiders, gpu.of_node) == (None, None)
    assert "gpu_share_node_processes" not in told.samples()


def test_an_earlier_program_that_measures_leaves_it_open(told: Node) -> None:
    told.measures(GpuUse(containers=(taken(RESNET), HOG), complete=True))
    gpu = told.gpu()
    assert (gpu.outsiders, gpu.of_node) == (None, None)


@pytest.mark.parametrize(
    "hostile", [{"pod": "\x1b[2J"}, {"pod": "-hog"}, {"namespace": ""}, {"container": "x" * 254}, {"processes": 2**60}]
)
def test_a_name_that_no_object_can_have_is_left_out_and_hides_nobody_else(told: Node, hostile: dict[str, Any]) -> None:
    told.measures(msgspec.structs.replace(USE, outsiders=(msgspec.structs.replace(HOG, **hostile), HOG)))
    assert told.gpu().outsiders == NAMED


def test_a_gpu_of_which_nobody_says_that_it_is_shared_names_nobody(told: Node) -> None:
    told.measures()
    told.looks(gpus={})
    assert told.gpu().outsiders is None
