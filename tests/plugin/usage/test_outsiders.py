"""Who uses a shared GPU without a share of it, from NVML and the kubelet's word; and who only looks like it."""

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from plugin.usage.record import ContainerUse, GpuUse, ProcessesUse
from tests.plugin.health.published import occupant, occupied
from tests.plugin.mps.bench import A, B
from tests.plugin.usage.measured_node import Node

MIB = 2**20
RESNET = occupant("resnet", 3)

Seen = Callable[[], GpuUse]  # measured now, on the first GPU


@pytest.fixture
def seen(node: Node, library: Path) -> Seen:
    return lambda: node.measured(library)[A]


def names(use: GpuUse) -> list[str] | None:
    return None if use.outsiders is None else [f"{one.pod}/{one.container}" for one in use.outsiders]


def test_a_container_without_a_share_is_named_once_it_was_there_before_and_after_the_kubelet_said_so(
    node: Node, seen: Seen
) -> None:
    node.has("hog", 11, 12)
    node.has("resnet", 21)
    node.says("compute", A, f"11 {100 * MIB}", f"12 {50 * MIB}", f"21 {7 * MIB}")
    node.looks(RESNET)
    assert names(seen()) == []
    assert names(seen()) == []  # nobody has asked since
    node.looks(RESNET)
    hog = ContainerUse(namespace="team-a", pod="hog", container="main", processes=2, memory_bytes=150 * MIB)
    assert seen().outsiders == (hog,)
    assert seen().outsiders == (hog,)  # it stays so while nobody asks anew


def test_a_container_that_has_just_started_is_no_outsider(node: Node, seen: Seen) -> None:
    node.looks()
    node.has("resnet", 21)
    node.says("compute", A, f"21 {MIB}")
    assert names(seen()) == []
    node.looks(RESNET)
    assert names(seen()) == []


def test_a_container_that_came_and_went_between_two_questions_and_came_again_is_no_outsider(
    node: Node, seen: Seen
) -> None:
    node.looks()
    node.has("resnet", 21)
    node.says("compute", A, f"21 {MIB}")
    seen()
    node.ends(21)
    node.looks()
    node.has("resnet", 21)  # another container of the same name, which has a share again
    assert names(seen()) == []


def test_whoever_has_a_share_of_another_gpu_is_an_outsider_here(node: Node, seen: Seen) -> None:
    node.has("resnet", 21)
    node.says("compute", A, f"21 {MIB}")
    seen()
    node.looks(gpus={A: occupied(all_named=True), B: occupied(RESNET, all_named=True)})
    assert names(seen()) == ["resnet/main"]


def test_what_may_be_an_init_container_of_a_pod_with_a_share_is_named_once_its_others_run(
    node: Node, seen: Seen
) -> None:
    node.has("resnet", 31, container="setup")
    node.says("compute", A, f"31 {MIB}")
    seen()
    node.looks(RESNET)
    assert names(seen()) == []
    node.has("resnet", 21)
    node.says("compute", A, f"31 {MIB}", f"21 {MIB}")
    node.looks(RESNET)
    assert names(seen()) == ["resnet/setup"]


def test_nobody_is_named_where_something_is_held_by_no_container_that_the_kubelet_names(node: Node, seen: Seen) -> None:
    node.has("setup", 31)
    node.says("compute", A, f"31 {MIB}")
    seen()
    node.looks(gpus={A: occupied(RESNET, granted=5)})
    assert names(seen()) is None
    node.looks(gpus={A: occupied(RESNET, granted=None, all_named=True)})
    assert names(seen()) is None


@pytest.mark.parametrize(("unknown", "asked_seconds"), [("the kubelet does not answer", 1e9), ("", None), ("", 0.0)])
def test_nobody_is_named_where_it_is_not_known_who_holds_shares(
    node: Node, seen: Seen, unknown: str, asked_seconds: float | None
) -> None:
    node.has("hog", 11)
    node.says("compute", A, f"11 {MIB}")
    seen()
    node.looks(unknown=unknown, asked_seconds=asked_seconds)
    assert names(seen()) is None


@pytest.mark.parametrize("lacking", ["link", "list"])
def test_that_there_is_nobody_is_not_known_while_it_is_not_known_whose_a_process_is(
    node: Node, seen: Seen, lacking: str
) -> None:
    node.has("other", 31, logged=lacking != "link")
    node.has("hog", 11)
    node.says("compute", A, f"31 {MIB}")
    if lacking == "list":
        (node.nvml / f"clients-{A}").unlink()  # of MPS, which this driver does not list
    node.looks(occupant("other", 1))
    assert names(seen()) is None
    node.says("compute", A, f"31 {MIB}", f"11 {MIB}")
    seen()
    node.looks(occupant("other", 1))
    assert names(seen()) == ["hog/main"]


def test_nobody_is_named_on_a_gpu_that_is_not_shared(node: Node, seen: Seen) -> None:
    node.has("hog", 11)
    node.says("compute", A, f"11 {MIB}")
    seen()
    node.looks(gpus={B: occupied(all_named=True)})
    assert names(seen()) is None


def test_what_runs_in_our_own_pods_is_rightful(node: Node, seen: Seen) -> None:
    node.has("gpu-share-mps-x7k2p", 99, container="mps", namespace="gpu-share")
    node.has("hog", 11)
    node.says("compute", A, f"99 {30 * MIB}", f"11 {MIB}")
    seen()
    node.looks()
    assert names(seen()) == ["hog/main"]


def test_of_many_those_are_named_that_take_most(node: Node, seen: Seen) -> None:
    for number in range(60):
        node.has(f"p{number}", 100 + number)
    node.says("clients", A, *(f"{100 + number} {number * MIB}" for number in range(60)))
    seen()
    node.looks()
    assert names(seen()) == [f"p{number}/main" for number in reversed(range(10, 60))]


def test_programs_of_the_node_are_counted_once_they_stay(node: Node, seen: Seen) -> None:
    node.has_own(7)
    node.has_own(8)
    node.says("compute", A, f"7 {3 * MIB}", f"8 {MIB}")
    assert seen().of_node is None
    node.has_own(9)
    node.says("compute", A, f"7 {3 * MIB}", f"8 {MIB}", f"9 {MIB}")
    assert seen().of_node == ProcessesUse(processes=2, memory_bytes=4 * MIB)
    node.says("compute", A, "7 -1", f"8 {MIB}", f"9 {MIB}")
    assert seen().of_node == ProcessesUse(processes=3)


@pytest.mark.parametrize("program", ["nvidia-cuda-mps-server", "nvidia-persistenced"])
def test_mps_and_the_driver_are_no_programs_of_the_node(node: Node, seen: Seen, program: str) -> None:
    node.has_own(99, program)
    node.has_own(7)
    node.says("compute", A, f"99 {30 * MIB}", f"7 {MIB}")
    seen()
    assert seen().of_node == ProcessesUse(processes=1, memory_bytes=MIB)


def test_what_only_draws_is_no_program_of_the_node(node: Node, seen: Seen) -> None:
    for pid in (6, 7, 8):
        node.has_own(pid)
    node.says("draws", A, f"6 {MIB}", f"7 {MIB}")
    node.says("compute", A, f"7 {MIB}")
    node.says("clients", A, f"8 {MIB}")
    seen()
    assert seen().of_node == ProcessesUse(processes=2, memory_bytes=2 * MIB)


def test_what_an_earlier_program_has_measured_says_of_nobody_that_it_has_no_share() -> None:
    assert msgspec.json.decode(b'{"containers": [], "complete": true}', type=GpuUse).outsiders is None
