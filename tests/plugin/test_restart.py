"""What needs a restart, over the files that an administrator changes."""

import logging
from pathlib import Path

import pytest

from plugin.restart import ClusterChanges, RestartNeeded
from policies.cluster import Cluster
from policies.reading.store import PolicyStore


class Node:
    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.has("")
        cluster = PolicyStore(directory).current.cluster
        self.changes = ClusterChanges(directory, RestartNeeded(cluster, node_name="gpu-1", hands_over=True))

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
        ("vgpusPerGpu: 10", ()),
        ("exemptNamespaces: [a]\nframeworks: []", ()),
        ("vgpusPerGpu: 20", ("vgpusPerGpu 10 -> 20",)),
        ("resourceNames: {mps: a.example/b}", ("resourceNames.mps gpu-share.dev/vgpu -> a.example/b",)),
        ("mps: {pipeDirectory: /run/mps}", ("mps.pipeDirectory /tmp/nvidia-mps -> /run/mps",)),
        ("nodes: [{node: 'gpu-*', offer: whole}]", ("nodes",)),
        ("nodes: [{model: '*T4*', offer: whole}]", ("nodes",)),
        ("nodes: [{node: 'other-*', offer: whole}]", ()),
        ("vgpusPerGpu: 5\nnodes: [{offer: none}]", ("vgpusPerGpu 10 -> 5", "nodes")),
        ("handover: [cdi, devices]", ("handover envvar -> cdi,devices",)),
        ("handover: [envvar, envvar]", ()),
    ],
)
def test_what_this_node_reads_at_its_start_needs_a_restart(node: Node, text: str, changes: tuple[str, ...]) -> None:
    assert node.changes.look() == ()
    node.has(text)
    assert node.changes.look() == changes
    assert node.changes.look() == changes


def test_each_change_is_logged_once(node: Node, caplog: pytest.LogCaptureFixture) -> None:
    for text in ("vgpusPerGpu: 20", "vgpusPerGpu: 20\nframeworks: []", "vgpusPerGpu: 30", "", "vgpusPerGpu: 20"):
        node.has(text)
        node.changes.look()
        node.changes.look()
    assert [(record.message, record.__dict__.get("changed")) for record in caplog.records] == [
        ("restart needed", ("vgpusPerGpu 10 -> 20",)),
        ("restart needed", ("vgpusPerGpu 10 -> 30",)),
        ("restart no longer needed", None),
        ("restart needed", ("vgpusPerGpu 10 -> 20",)),
    ]


def test_a_broken_file_is_logged_once_and_changes_nothing(node: Node, caplog: pytest.LogCaptureFixture) -> None:
    node.has("vgpusPerGpu: 20")
    assert node.changes.look() == ("vgpusPerGpu 10 -> 20",)
    caplog.clear()
    for text in ("vgpusPerGpu: 0", "vgpusPerGpu: 0 # still"):
        node.has(text)
        assert node.changes.look() == ("vgpusPerGpu 10 -> 20",)
        assert node.changes.look() == ("vgpusPerGpu 10 -> 20",)
    (record,) = caplog.records
    assert (record.message, record.__dict__["file"]) == ("policy file broken", f"{node.directory}/_cluster.yaml")
    assert "a restart would fail" in record.__dict__["effect"]
    node.has("vgpusPerGpu: 10")
    assert node.changes.look() == ()


def test_a_directory_that_vanishes_is_said_and_changes_nothing(node: Node, caplog: pytest.LogCaptureFixture) -> None:
    away = node.directory.with_name("away")
    node.directory.rename(away)
    assert node.changes.look() == node.changes.look() == ()
    assert [record.message for record in caplog.records] == ["policy file broken"]
    away.rename(node.directory)
    (node.directory / "_cluster.yaml").unlink()
    assert node.changes.look() == ()
    node.has("vgpusPerGpu: 20")
    assert node.changes.look() == ("vgpusPerGpu 10 -> 20",)


def test_a_volume_is_looked_at_by_its_link_and_not_by_its_files(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    for number, text in enumerate(("", "vgpusPerGpu: 20")):
        data = node.directory / f"..{number}"
        data.mkdir()
        (data / "_cluster.yaml").write_text(text)
        (node.directory / "..new").symlink_to(data.name)
        (node.directory / "..new").replace(node.directory / "..data")
        node.changes.look()
    assert node.changes.look() == ("vgpusPerGpu 10 -> 20",)
    monkeypatch.setattr("os.scandir", None)
    monkeypatch.setattr("pathlib.Path.stat", None)
    monkeypatch.setattr("pathlib.Path.open", None)
    assert node.changes.look() == ("vgpusPerGpu 10 -> 20",)


def test_a_process_that_hands_no_gpus_over_does_not_care_how(tmp_path: Path) -> None:
    cluster = PolicyStore(tmp_path).current.cluster
    needed = RestartNeeded(cluster, node_name="gpu-1")
    needed.compare(Cluster(handover=("cdi",)))
    assert needed.changes == ()
