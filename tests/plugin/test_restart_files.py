"""A `_cluster.yaml` that is broken, gone, or in a volume, while a part of a node follows it."""

import logging
from pathlib import Path

import pytest

from plugin.health.state import Pending
from tests.plugin.followed_node import Node


@pytest.fixture
def node(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> Node:
    caplog.set_level(logging.INFO)
    return Node(tmp_path)


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
