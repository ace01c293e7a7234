"""The `_cluster.yaml` that `gpu-share mps` keeps for a start while that of now is broken."""

import os
import shutil
from pathlib import Path

import pytest

from plugin.last_cluster import KeptPolicies
from policies.ceiling import largest_vgpus
from policies.cluster import Cluster
from policies.contract import MPS
from policies.errors import PolicyError
from policies.policy_set import PolicySet

GOOD = "vgpusPerGpu: 8\nnodes: [{offer: time-slicing}]\n"
BROKEN = "ofTheNextVersion: true\n"


class Node:
    """A directory of policies, and one that outlives a restart of the machine."""

    def __init__(self, root: Path) -> None:
        self.policies, self.lib = root / "policies", root / "lib"
        self.policies.mkdir()
        self.cluster = self.policies / "_cluster.yaml"
        self.kept = self.lib / "last-cluster" / "_cluster.yaml"

    def start(self) -> KeptPolicies:
        return KeptPolicies(self.policies, lib_dir=self.lib)

    def in_force(self) -> PolicySet:
        return self.start().current


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def breaks(node: Node, how: str) -> None:
    if how == "broken":
        node.cluster.write_text(BROKEN)
    elif how == "a link to nowhere":
        node.cluster.unlink()
        node.cluster.symlink_to("/nowhere")
    else:
        node.cluster.rename(node.policies / how)


@pytest.mark.parametrize("how", ["broken", "_cluster.yml", "_Cluster.yaml", "a link to nowhere"])
def test_the_last_good_one_is_kept_over_any_number_of_starts_however_that_of_now_is_wrong(node: Node, how: str) -> None:
    node.cluster.write_text(GOOD)
    running = node.start()
    breaks(node, how)
    running.refresh()
    assert node.kept.read_text() == GOOD
    for _ in range(3):
        assert node.in_force().cluster.vgpus_per_gpu == 8
    assert node.kept.read_text() == GOOD


def test_one_that_was_taken_away_is_not_kept_and_built_in_defaults_are(node: Node) -> None:
    node.cluster.write_text(GOOD)
    running = node.start()
    node.cluster.unlink()
    running.refresh()
    assert running.current.cluster == Cluster()
    node.cluster.write_text(BROKEN)
    assert node.in_force().cluster == Cluster()


LEFT = ["nothing", "an empty directory", "half of a write", "another version", "a directory", "a pipe", "no text"]


@pytest.mark.parametrize("left", LEFT)
def test_where_none_is_kept_a_start_with_a_broken_one_ends_as_it_would_without(node: Node, left: str) -> None:
    node.cluster.write_text(BROKEN)
    if left != "nothing":
        node.kept.parent.mkdir(parents=True)
    if left == "half of a write":
        (node.kept.parent / "._cluster.yaml.1.new").write_text("vgpusPerG")
    if left == "another version":
        node.kept.write_text("ofTheVersionBefore: true\n")
    if left == "a directory":
        node.kept.mkdir()
    if left == "a pipe":
        os.mkfifo(node.kept)
    if left == "no text":
        node.kept.write_bytes(b"\xff\0" * 100)
    with pytest.raises(PolicyError) as caught:
        node.start()
    assert [problem.field for problem in caught.value.problems] == ["ofTheNextVersion"]


def test_nothing_is_known_of_policies_that_are_broken_beside_it(node: Node) -> None:
    node.cluster.write_text(GOOD)
    node.start()
    node.cluster.write_text(BROKEN)
    (node.policies / "_default.yaml").write_text(BROKEN)
    (node.policies / "team.yaml").write_text(BROKEN)
    found = node.in_force()
    assert found.cluster.vgpus_per_gpu == 8
    assert found.default.broken is not None
    assert found.of("team").broken is not None
    assert largest_vgpus(found, MPS) == 8


def test_a_namespace_that_is_broken_beside_it_does_not_get_the_default_policy(node: Node) -> None:
    node.cluster.write_text(GOOD)
    node.start()
    node.cluster.write_text(BROKEN)
    (node.policies / "_default.yaml").write_text('share: {maximum: "0.2"}\n')
    (node.policies / "team.yaml").write_text(BROKEN)
    found = node.in_force()
    assert found.default.broken is None
    assert found.of("team").broken is not None
    assert largest_vgpus(found, MPS) == 8


def test_policies_that_are_good_beside_it_hold(node: Node) -> None:
    node.cluster.write_text(GOOD)
    node.start()
    node.cluster.write_text(BROKEN)
    (node.policies / "team.yaml").write_text("strategy: mps\n")
    assert node.in_force().of("team").policy.strategy == MPS


def test_a_good_one_again_is_kept_from_then_on(node: Node) -> None:
    node.cluster.write_text(GOOD)
    running = node.start()
    for text in (BROKEN, GOOD.replace("8", "9")):
        node.cluster.write_text(text)
        running.refresh()
    node.cluster.write_text(BROKEN)
    assert node.in_force().cluster.vgpus_per_gpu == 9


def test_one_that_somebody_removes_is_kept_again(node: Node) -> None:
    node.cluster.write_text(GOOD)
    running = node.start()
    shutil.rmtree(node.kept.parent)
    running.refresh()
    node.cluster.write_text(BROKEN)
    assert node.in_force().cluster.vgpus_per_gpu == 8


def test_a_place_that_cannot_be_written_to_stops_nobody(node: Node) -> None:
    node.lib.mkdir()
    node.kept.parent.write_text("a file")
    node.cluster.write_text(GOOD)
    assert node.in_force().cluster.vgpus_per_gpu == 8


def test_a_start_by_the_kept_one_is_one_line_with_which_that_is_of_when_why_and_what_to_do(
    node: Node, caplog: pytest.LogCaptureFixture
) -> None:
    node.cluster.write_text(GOOD)
    node.start()
    assert caplog.records == []
    os.utime(node.kept, (1795713910, 1795713910))
    node.cluster.write_text(BROKEN)
    (node.policies / "_default.yaml").write_text("nonsense: 1\n")
    node.start().refresh()
    (said,) = [vars(record) for record in caplog.records]
    assert said["message"] == "started by the last good _cluster.yaml: that of now is broken"
    assert (said["file"], said["kept"]) == (str(node.kept), "2026-11-26T17:25:10+00:00")
    assert said["reason"].startswith(f"{node.cluster}:1: ofTheNextVersion: unknown field")
    assert said["hint"] == "correct it, or replace this pod if its fields are of a newer version"


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        (
            "_cluster.yml",
            "/_cluster.yml: expected _cluster.yaml, _default.yaml or <namespace>.yaml: rename or remove the file",
        ),
        ("a link to nowhere", "/_cluster.yaml: cannot be read: No such file or directory"),
    ],
)
def test_a_start_by_the_kept_one_names_the_file_that_is_in_its_place(
    node: Node, caplog: pytest.LogCaptureFixture, how: str, reason: str
) -> None:
    node.cluster.write_text(GOOD)
    node.start()
    breaks(node, how)
    node.start()
    (said,) = [vars(record) for record in caplog.records]
    assert said["reason"] == f"{node.policies}{reason}"


def test_of_many_things_that_are_wrong_the_line_has_one_and_how_many_more(
    node: Node, caplog: pytest.LogCaptureFixture
) -> None:
    node.cluster.write_text(GOOD)
    node.start()
    node.cluster.write_text("vgpusPerGpu: 0\nnonsense: 1\n")
    node.start()
    (said,) = [vars(record) for record in caplog.records]
    assert said["reason"].startswith(f"{node.cluster}:1: vgpusPerGpu: ")
    assert said["reason"].endswith(" (and 1 more)")
