"""What a part of a node takes up while it runs, and what needs a restart, over the files that people change."""

import logging
from pathlib import Path

import pytest

from plugin.health.state import Pending
from plugin.restart import RestartNeeded, StartChanges
from policies.cluster import Cluster
from policies.nodes import NodeRule
from policies.reading.store import PolicyStore
from tests.plugin.followed_node import Node


@pytest.fixture
def node(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> Node:
    caplog.set_level(logging.INFO)
    return Node(tmp_path)


@pytest.mark.parametrize(
    ("text", "changes"),
    [
        ("", ()),
        ("vgpusPerGpu: 20", ()),
        ("exemptNamespaces: [a]\nframeworks: []", ()),
        ("resourceNames: {mps: a.example/b}", ("resourceNames.mps gpu-share.dev/vgpu -> a.example/b",)),
        ("mps: {pipeDirectory: /run/mps}", ("mps.pipeDirectory /tmp/nvidia-mps -> /run/mps",)),
        ("nodes: [{node: 'gpu-*', offer: whole}]", ("nodes",)),
        ("nodes: [{model: '*T4*', offer: whole}]", ("nodes",)),
        ("nodes: [{node: 'other-*', offer: whole}]", ()),
        ("vgpusPerGpu: 5\nnodes: [{offer: none}]", ("nodes",)),
        ("handover: [cdi, devices]", ()),
        ("handover: [envvar, envvar]", ()),
    ],
)
def test_what_this_node_reads_at_its_start_needs_a_restart(node: Node, text: str, changes: tuple[str, ...]) -> None:
    assert node.look() == ()
    node.has(text)
    assert node.look() == changes
    assert node.look() == changes
    assert bool(node.restarts) == bool(changes)


def test_another_number_is_taken_once_and_needs_no_restart(node: Node, caplog: pytest.LogCaptureFixture) -> None:
    for text in ("vgpusPerGpu: 20", "vgpusPerGpu: 20\nframeworks: []", "vgpusPerGpu: 5", ""):
        node.has(text)
        assert node.look() == node.look() == ()
    assert (node.divided_by, node.restarts) == ([20, 5, 10], 0)
    said = [record.__dict__.get("changed") for record in caplog.records]
    assert said == ["vgpusPerGpu 10 -> 20", "vgpusPerGpu 20 -> 5", "vgpusPerGpu 5 -> 10"]


def test_other_ways_of_handing_over_are_taken_once_and_need_no_restart(
    node: Node, caplog: pytest.LogCaptureFixture
) -> None:
    for text in ("handover: [cdi, devices]", "handover: [devices, cdi]", "handover: [cdi]", ""):
        node.has(text)
        assert node.look() == node.look() == ()
    assert (node.handed_over_by, node.restarts) == ([{"cdi", "devices"}, {"cdi"}, {"envvar"}], 0)
    said = [record.__dict__.get("changed") for record in caplog.records]
    assert said == ["handover envvar -> cdi,devices", "handover cdi,devices -> cdi", "handover cdi -> envvar"]


def test_ways_that_cannot_be_taken_are_said_and_taken_later_and_nothing_restarts_into_them(node: Node) -> None:
    node.cannot = "the disk is full"
    node.has("handover: [cdi]\nnodes: [{offer: whole}]")
    handover = "handover envvar -> cdi: the disk is full"
    nodes = "nodes: a start would not share all GPUs: handover cannot be taken"
    refused = Pending(not_taken=f"{nodes}; {handover}")
    assert node.changes.look() == node.changes.look() == refused
    assert node.restarts == 0
    node.cannot = ""
    assert node.look() == ("nodes",)
    assert (node.handed_over_by, node.restarts) == ([{"cdi"}], 1)


def test_they_are_taken_beside_what_is_not(node: Node) -> None:
    node.loses = True
    node.has("vgpusPerGpu: 20\nhandover: [cdi]\nnodes: [{offer: whole}]")
    assert node.changes.look() == Pending(not_taken="nodes: a start would not share all GPUs: 20 are too many")
    assert (node.handed_over_by, node.divided_by, node.beside) == ([{"cdi"}], [20], [20])


def test_a_number_that_cannot_be_taken_is_said_and_taken_later(node: Node, caplog: pytest.LogCaptureFixture) -> None:
    node.cannot = "the disk is full"
    node.has("vgpusPerGpu: 20")
    refused = Pending(not_taken="vgpusPerGpu 10 -> 20: the disk is full")
    assert node.changes.look() == node.changes.look() == refused
    (record,) = caplog.records
    assert (record.message, record.__dict__["reason"]) == ("not taken yet: vgpusPerGpu 10 -> 20", "the disk is full")
    node.cannot = ""
    assert node.look() == ()
    assert node.divided_by == [20]


def test_a_change_by_which_gpus_would_not_be_shared_is_not_taken_and_ends_nothing(
    node: Node, caplog: pytest.LogCaptureFixture
) -> None:
    node.loses, node.cannot = True, "the disk is full"
    node.has("vgpusPerGpu: 50\nnodes: [{offer: whole}]")
    nodes = "nodes: a start would not share all GPUs: 50 are too many"
    refused = Pending(not_taken=f"vgpusPerGpu 10 -> 50: the disk is full; {nodes}")
    assert node.changes.look() == node.changes.look() == refused
    told = ["restart needed", "not taken: nodes", "not taken yet: vgpusPerGpu 10 -> 50"]
    assert [record.message for record in caplog.records] == told
    assert (node.restarts, node.divided_by) == (0, [])
    node.cannot = ""
    assert node.changes.look() == node.changes.look() == Pending(not_taken=nodes)
    assert node.divided_by == [50], "by which webhooks grant, whatever becomes of nodes"
    node.loses = False
    assert node.look() == ("nodes",)
    assert node.restarts == 1


def test_a_number_that_was_taken_up_all_the_same_is_taken_back(node: Node) -> None:
    node.cannot = "the disk is full"
    node.has("vgpusPerGpu: 20")
    assert node.changes.look() == Pending(not_taken="vgpusPerGpu 10 -> 20: the disk is full")
    node.cannot, node.number = "", 20
    node.has("vgpusPerGpu: 10")
    assert node.look() == ()
    assert node.divided_by == [10]


@pytest.mark.parametrize(
    ("text", "differs"),
    [
        ("", False),
        ("vgpusPerGpu: 20", True),
        ("nodes: [{offer: whole}]", True),
        ("handover: [cdi]", True),
        ("handover: [envvar]", False),
        ("vgpusPerGpu: 0", False),
    ],
)
def test_who_waits_for_gpus_sees_what_a_start_would_take_up(tmp_path: Path, text: str, *, differs: bool) -> None:
    (tmp_path / "_cluster.yaml").write_text("")
    cluster = PolicyStore(tmp_path).current.cluster
    changes = StartChanges(tmp_path, RestartNeeded(cluster, node_name="a"), cluster)
    assert not changes.look()
    (tmp_path / "_cluster.yaml").write_text(f"{text} # new")
    assert changes.look() is differs


def test_each_change_is_logged_once(node: Node, caplog: pytest.LogCaptureFixture) -> None:
    whole, none = "nodes: [{offer: whole}]", "mps: {pipeDirectory: /run/mps}"
    for text in (whole, f"{whole}\nframeworks: []", none, "", whole):
        node.has(text)
        node.look()
        node.look()
    assert [(record.message, record.__dict__.get("changed")) for record in caplog.records] == [
        ("restart needed", ("nodes",)),
        ("restart needed", ("mps.pipeDirectory /tmp/nvidia-mps -> /run/mps",)),
        ("restart no longer needed", None),
        ("restart needed", ("nodes",)),
    ]


def test_a_process_that_hands_no_gpus_over_does_not_care_how(tmp_path: Path) -> None:
    cluster = PolicyStore(tmp_path).current.cluster
    needed = RestartNeeded(cluster, node_name="gpu-1")
    needed.compare(Cluster(handover=("cdi",)))
    assert needed.changes == ()
    needed.compare(Cluster(vgpus_per_instance={"1g.10gb": 4}))  # ceilings follow it
    assert needed.changes == ()


def test_another_number_of_a_device_concerns_who_hands_it_out_alone() -> None:
    before, after = (Cluster(nodes=(NodeRule(device="t4", vgpus_per_gpu=number),)) for number in (4, 8))
    for hands_over, changes in ((True, ("nodes",)), (False, ())):
        needed = RestartNeeded(before, node_name="gpu-1", hands_over=hands_over)
        needed.compare(after)
        assert needed.changes == changes
