"""What a part of a node takes up while it runs, and what needs a restart, over the files that people change."""

import logging
from collections.abc import Collection
from pathlib import Path

import pytest

from plugin.errors import HandoverError, HoldingsError
from plugin.health.state import Pending
from plugin.restart import ClusterChanges, RestartNeeded, StartChanges
from policies.cluster import Cluster
from policies.contract import Handover
from policies.nodes import NodeRule
from policies.reading.store import PolicyStore


class Node:
    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.has("")
        cluster = PolicyStore(directory).current.cluster
        self.divided_by: list[int] = []
        self.restarts = 0
        self.number = cluster.vgpus_per_gpu
        self.loses = False  # GPUs would not be shared by what has changed
        self.cannot = ""  # why GPUs cannot be divided by another number
        self.handover: Collection[Handover] = cluster.handover
        self.handed_over_by: list[set[str]] = []
        self.beside: list[int] = []  # the number of each file that was taken as far as it can be
        self.changes = ClusterChanges(directory, RestartNeeded(cluster, node_name="gpu-1", hands_over=True), self)

    @property
    def vgpus_per_gpu(self) -> int:
        return self.number

    def divide_by(self, vgpus_per_gpu: int) -> None:
        if self.cannot:
            raise HoldingsError(self.cannot)
        self.divided_by.append(vgpus_per_gpu)
        self.number = vgpus_per_gpu

    def hand_over_by(self, ways: Collection[Handover]) -> None:
        if self.cannot:
            raise HandoverError(self.cannot)
        self.handed_over_by.append({*ways})
        self.handover = ways

    def lost_by(self, newest: Cluster) -> str:
        return f"{newest.vgpus_per_gpu} are too many" if self.loses else ""

    def stays_by(self, newest: Cluster) -> str:  # noqa: ARG002 - as the plugin has it
        return ""

    def go_on_beside(self, newest: Cluster) -> None:
        self.beside.append(newest.vgpus_per_gpu)

    def restart(self) -> None:
        self.restarts += 1

    def look(self) -> tuple[str, ...]:
        """Say what needs a restart."""
        needs_restart, not_taken = self.changes.look()
        assert not not_taken
        return needs_restart

    def has(self, text: str) -> None:
        new = self.directory / ".new"
        new.write_text(text)
        new.replace(self.directory / "_cluster.yaml")


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


def test_a_broken_file_is_logged_once_and_changes_nothing(node: Node, caplog: pytest.LogCaptureFixture) -> None:
    node.has("nodes: [{offer: whole}]")
    assert node.look() == ("nodes",)
    caplog.clear()
    for text in ("vgpusPerGpu: 0", "vgpusPerGpu: 0 # still"):
        node.has(text)
        for _ in range(2):
            needs_restart, not_taken = node.changes.look()
            assert needs_restart == ("nodes",)
            assert not_taken.startswith(f"{node.directory}/_cluster.yaml:1: vgpusPerGpu: ")
            assert not_taken.endswith("; the one that was read before stays in force")
    assert node.restarts == 1, "a start would end by it"
    (record,) = caplog.records
    assert (record.message, record.__dict__["file"]) == ("policy file broken", f"{node.directory}/_cluster.yaml")
    assert "stays in force" in record.__dict__["effect"]
    node.has("vgpusPerGpu: 10 # good")
    assert node.look() == ()


@pytest.mark.parametrize("content", ["vgpusPerGpu: 0", "vgpus: 10", "{", b"\xff", "vgpusPerGpu: 0\nhandover: [x]"])
def test_a_broken_file_is_not_taken_until_it_is_good_beside_what_else_is_not(node: Node, content: str | bytes) -> None:
    node.cannot = "the disk is full"
    node.has("vgpusPerGpu: 20")
    refused = Pending(not_taken="vgpusPerGpu 10 -> 20: the disk is full")
    assert node.changes.look() == refused
    node.has("")
    (node.directory / "_cluster.yaml").write_bytes(content if isinstance(content, bytes) else content.encode())
    broken = node.changes.look().not_taken
    assert broken.startswith(f"{node.directory}/_cluster.yaml")
    assert broken.endswith(f"stays in force; {refused.not_taken}")
    node.cannot = ""
    assert node.changes.look().not_taken.endswith("stays in force")
    assert node.number == 20
    node.has("vgpusPerGpu: 20 # good")
    assert node.look() == ()


def test_a_start_that_waits_for_its_gpus_does_not_happen_once_the_file_is_broken(node: Node) -> None:
    node.loses = True
    node.has("nodes: [{offer: whole}]")
    assert node.changes.look() == Pending(not_taken="nodes: a start would not share all GPUs: 10 are too many")
    node.has("nodes: [")
    node.loses = False
    assert node.changes.look().needs_restart == ("nodes",)
    assert node.restarts == 0
    node.has("nodes: [{offer: whole}]")
    assert node.look() == ("nodes",)
    assert node.restarts == 1


def test_a_directory_that_vanishes_is_said_and_changes_nothing(node: Node, caplog: pytest.LogCaptureFixture) -> None:
    away = node.directory.with_name("away")
    node.directory.rename(away)
    for _ in range(2):
        needs_restart, not_taken = node.changes.look()
        assert not needs_restart
        assert not_taken.startswith(f"{node.directory}: ")
    assert [record.message for record in caplog.records] == ["policy file broken"]
    away.rename(node.directory)
    (node.directory / "_cluster.yaml").unlink()
    assert node.look() == ()
    node.has("nodes: [{offer: whole}]")
    assert node.look() == ("nodes",)


def test_a_volume_is_looked_at_by_its_link_and_not_by_its_files(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    for number, text in enumerate(("", "nodes: [{offer: whole}]")):
        data = node.directory / f"..{number}"
        data.mkdir()
        (data / "_cluster.yaml").write_text(text)
        (node.directory / "..new").symlink_to(data.name)
        (node.directory / "..new").replace(node.directory / "..data")
        node.look()
    assert node.look() == ("nodes",)
    monkeypatch.setattr("os.scandir", None)
    monkeypatch.setattr("pathlib.Path.stat", None)
    monkeypatch.setattr("pathlib.Path.open", None)
    assert node.look() == ("nodes",)


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
