"""Which CDI devices lie ready: for what can be allocated, and for what containers hold, whatever it is called now."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from plugin.errors import HandoverError
from plugin.gpus.gpu import Gpu
from plugin.shares import cdi_directory
from plugin.shares.cdi import Grid, specification
from plugin.shares.cdi_form import is_ours
from plugin.shares.handover import HandoverSettings
from plugin.shares.specifications import HeldGrid, HeldGrids, Specifications
from plugin.shares.strategy import Sharing, TimeSlicing, Whole
from policies.contract import Handover
from tests.plugin.shares.cdi_runtime import read_directory
from tests.plugin.shares.two_gpus import MPS, NAME, A, B

OLD = "example.com/old"


class Node:
    """A node whose containers hold what a test says."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory / "cdi"
        self.held = HeldGrids(is_complete=True)

    def starts(
        self,
        *gpus: Gpu,
        of: int = 10,
        ways: tuple[Handover, ...] = ("cdi",),
        name: str = NAME,
        sharing: Sharing = MPS,
    ) -> None:
        """Start the plugin anew, with *gpus* as *name*."""
        settings = HandoverSettings(ways=frozenset(ways), cdi_dir=self.directory)
        self.specifications = Specifications(settings, lambda: self.held)
        self.specifications.see({gpu.uuid: (gpu, sharing) for gpu in gpus})
        self.specifications.advertise(name, [Grid(gpu, sharing, of) for gpu in gpus])
        self.specifications.restore()

    def holds(self, *grids: HeldGrid, is_complete: bool = True) -> None:
        self.held = HeldGrids(frozenset(grids), is_complete)

    def has(self, gpu: Gpu, *, of: int = 10, name: str = NAME) -> bool:
        names = {f"{name}={gpu.uuid}-{vgpus}of{of}" for vgpus in range(1, of + 1)}
        there = names & set(read_directory(self.directory)) if self.directory.exists() else set()
        assert there in (set(), names)
        return bool(there)

    def gives(self, gpu: Gpu, *, of: int = 10, name: str = NAME) -> list[Any]:
        """Say what containers with a share of *gpu* start with, the smallest share first."""
        there = read_directory(self.directory)
        return [there[f"{name}={gpu.uuid}-{vgpus}of{of}"] for vgpus in range(1, of + 1)]


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def held(gpu: Gpu, *, of: int = 10, name: str = NAME, by_cdi: bool = True) -> HeldGrid:
    return HeldGrid(resource=name, gpu_uuid=gpu.uuid, of=of, by_cdi=by_cdi)


def full(*_: object) -> None:
    raise HandoverError("no space left")


def test_what_is_held_by_another_name_or_number_lies_ready_until_nobody_holds_it(node: Node) -> None:
    node.holds(held(A, name=OLD), held(B, of=20))
    node.starts(A, B)
    assert node.has(A, name=OLD)
    assert not node.has(B, name=OLD)
    assert node.has(B, of=20)
    assert not node.has(A, of=20)
    node.holds()
    node.specifications.restore()
    assert not node.has(A, name=OLD)
    assert not node.has(B, of=20)
    assert node.has(A)
    assert node.has(B)


def test_it_is_made_again_where_somebody_has_removed_it_while_the_plugin_runs_or_does_not(node: Node) -> None:
    node.holds(held(A, name=OLD))
    node.starts(A)
    shutil.rmtree(node.directory)
    node.specifications.restore()
    assert node.has(A, name=OLD)
    shutil.rmtree(node.directory)
    node.starts(A)
    assert node.has(A, name=OLD)


def test_as_long_as_nobody_knows_who_holds_what_nothing_goes(node: Node) -> None:
    node.starts(A, of=20, name=OLD)
    node.starts(A, of=20)
    node.starts(B, of=20)
    before = set(read_directory(node.directory))
    node.holds(is_complete=False)
    node.starts(A)
    assert before <= set(read_directory(node.directory))
    node.holds()
    node.specifications.restore()
    assert not node.has(B, of=20)
    assert not node.has(A, of=20, name=OLD)


def test_what_is_held_of_a_gpu_that_is_not_seen_stays_as_it_was_and_is_made_when_it_is_back(node: Node) -> None:
    node.starts(A, B, of=20)
    node.holds(held(B, of=20))
    node.starts(A)
    assert node.has(B, of=20)
    shutil.rmtree(node.directory)
    node.specifications.restore()
    assert node.has(B, of=20)
    shutil.rmtree(node.directory)
    node.starts(A)
    assert not node.has(B, of=20)
    node.specifications.advertise(NAME, [Grid(gpu, MPS, 10) for gpu in (A, B)])
    assert node.has(B, of=20)


@pytest.mark.parametrize("everything", [{"is_complete": True}, {"is_complete": False}])
@pytest.mark.parametrize("of", [10, 7])
@pytest.mark.parametrize("sharing", [TimeSlicing(), Whole()])
def test_what_is_held_by_mps_keeps_its_limits_where_its_gpu_is_shared_otherwise_by_now(
    node: Node, sharing: Sharing, of: int, everything: dict[str, bool]
) -> None:
    node.starts(A, B, name=OLD)
    given, others = node.gives(A, name=OLD), node.gives(B, name=OLD)
    node.holds(held(A, name=OLD), held(B, name=OLD), **everything)
    for _ in range(2):
        node.starts(A, B, of=of, sharing=sharing)
        shutil.rmtree(node.directory)
        node.specifications.restore()
        assert (node.gives(A, name=OLD), node.gives(B, name=OLD)) == (given, others)
    node.starts(A, B)
    assert node.gives(A, name=OLD) == given
    node.starts(A, of=of, sharing=sharing)
    node.holds()
    node.specifications.restore()
    assert not node.has(A, name=OLD)


def test_what_new_containers_can_be_given_too_limits_as_the_gpu_is_shared_now(node: Node) -> None:
    node.starts(A)
    by_mps = node.gives(A)
    node.holds(held(A))
    node.starts(A, sharing=TimeSlicing())
    by_turns = node.gives(A)
    assert all("mounts" in one for one in by_mps)
    assert not any("mounts" in one for one in by_turns)


def test_what_is_held_by_turns_goes_through_the_daemon_once_its_gpu_has_one(node: Node) -> None:
    node.starts(A, name=OLD, sharing=TimeSlicing())
    node.holds(held(A, name=OLD))
    node.starts(A)
    assert node.gives(A, name=OLD) == node.gives(A)


def test_what_is_held_by_mps_and_has_been_lost_is_made_anew_as_its_gpu_is_shared_now(node: Node) -> None:
    node.starts(A, name=OLD)
    node.holds(held(A, name=OLD))
    shutil.rmtree(node.directory)
    node.starts(A, sharing=TimeSlicing())
    assert node.gives(A, name=OLD) == node.gives(A)


def test_without_cdi_what_containers_were_given_by_it_lies_ready_and_no_more_is_made_or_removed(node: Node) -> None:
    node.holds(held(A), held(B, by_cdi=False))
    node.starts(A, B, ways=("envvar",))
    assert node.has(A)
    assert not node.has(B)
    node.holds()
    node.starts(A, B, ways=("envvar",))
    assert node.has(A)


def test_without_cdi_and_what_was_given_by_it_the_directory_is_left_as_it_is(node: Node) -> None:
    node.starts(A, B)
    (file,) = node.directory.iterdir()
    before = file.stat()
    node.holds(held(A, of=20, by_cdi=False))
    node.starts(A, B, of=5, ways=("envvar", "devices"))
    assert [path.stat() for path in node.directory.iterdir()] == [before]


def test_without_cdi_a_directory_that_cannot_be_written_to_costs_no_container_of_now(
    node: Node, caplog: pytest.LogCaptureFixture
) -> None:
    node.directory.touch()
    node.holds(held(A))
    node.starts(A, ways=("envvar",))
    node.specifications.restore()
    (message,) = (record.message for record in caplog.records)
    assert message == "containers that were given a CDI device by an earlier run may not start again"


def test_a_gpu_that_cannot_be_a_device_leaves_those_that_can(node: Node) -> None:
    node.starts(A)
    odd = Gpu(uuid="0-GPU", index=1, minor=None, model="H200", memory_bytes=1 << 37, numa_node=None)
    with pytest.raises(HandoverError):
        node.specifications.advertise(NAME, [Grid(gpu, MPS, 10) for gpu in (A, odd)])
    node.specifications.restore()
    assert node.has(A)


@pytest.mark.parametrize("content", ["", "{", "[1]", json.dumps({"kind": "a.b/c", "devices": []})])
def test_a_file_that_says_nothing_is_replaced(node: Node, content: str) -> None:
    node.starts(A)
    (file,) = node.directory.iterdir()
    file.write_text(content)
    node.holds(held(B), is_complete=False)
    node.starts(A)
    assert node.has(A)
    assert not node.has(B)


def test_what_nobody_needs_stays_where_it_cannot_be_removed_and_what_is_needed_is_an_error(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    node.holds(held(A, of=20), held(B, name=OLD))
    node.starts(A, B)
    with monkeypatch.context() as nothing_can_be_written:
        nothing_can_be_written.setattr(cdi_directory, "write_specification", full)
        nothing_can_be_written.setattr(cdi_directory, "remove_stale", full)
        node.holds()
        node.specifications.restore()
        node.starts(A, B)
        assert (node.has(A), node.has(A, of=20), node.has(B, name=OLD)) == (True, True, True)
        node.holds(held(A, of=7))
        with pytest.raises(HandoverError, match="no space left"):
            node.specifications.restore()
    node.holds()
    node.specifications.restore()
    assert (node.has(A), node.has(A, of=20), node.has(B, name=OLD)) == (True, False, False)


EDITED: dict[str, Callable[[dict[str, Any]], object]] = {
    "a version that runtimes skip": lambda made: made.update(cdiVersion="9.0.0"),
    "no version": lambda made: made.pop("cdiVersion"),
    "edits of every container": lambda made: made.update(containerEdits={"env": ["NVIDIA_VISIBLE_DEVICES=all"]}),
    "a field of a later version": lambda made: made.update(annotations={}),
    "two devices of a name": lambda made: made["devices"].append(made["devices"][0]),
    "a device without edits": lambda made: made["devices"].append({"name": "GPU-1of1"}),
    "a device with a field of others": lambda made: made["devices"].append(OTHER | {"annotations": {}}),
    "a name that is none": lambda made: made["devices"].append(OTHER | {"name": "0 of 1"}),
    "a name that is not one of ours": lambda made: made["devices"].append(OTHER | {"name": "mine"}),
    "edits that are none": lambda made: made["devices"].append(OTHER | {"containerEdits": {"env": "A=B"}}),
    "edits that we do not make": lambda made: made["devices"].append(OTHER | {"containerEdits": {"hooks": []}}),
    "a variable without a value": lambda made: made["devices"].append(OTHER | {"containerEdits": {"env": ["A"]}}),
    "a mount without a place": lambda made: made["devices"].append(
        OTHER | {"containerEdits": {"env": ["A=B"], "mounts": [{"hostPath": "/a"}]}}
    ),
}
OTHER: dict[str, Any] = {"name": "GPU-1of1", "containerEdits": {"env": ["A=B"]}}


@pytest.mark.parametrize("edited", EDITED)
@pytest.mark.parametrize("way", ["while the plugin runs", "at its start"])
def test_a_specification_that_somebody_edited_is_not_taken_for_ours_where_it_cannot_be_written_again(
    node: Node, monkeypatch: pytest.MonkeyPatch, edited: str, way: str
) -> None:
    node.holds(held(A, of=20))
    node.starts(A)
    (file,) = node.directory.iterdir()
    made = json.loads(file.read_text())
    EDITED[edited](made)
    file.write_text(json.dumps(made))
    monkeypatch.setattr(cdi_directory, "write_specification", full)
    node.holds()
    with pytest.raises(HandoverError, match="no space left"):
        node.specifications.restore() if way == "while the plugin runs" else node.starts(A)
    monkeypatch.undo()
    node.starts(A)
    assert node.has(A)


@pytest.mark.parametrize("resource", [NAME, "example.com/x", "1a.org/v.gpu"])
@pytest.mark.parametrize("of", [1, 7, 1000])
@pytest.mark.parametrize("sharing", [MPS, TimeSlicing(), Whole()])
def test_what_is_made_is_taken_for_ours_and_only_as_that_resources(sharing: Sharing, of: int, resource: str) -> None:
    instance = replace(A, uuid="MIG-a1b2c3d4-e5f6-a7b8-c9d0-e1f2a3b4c5d6")
    made = specification(resource, [Grid(gpu, sharing, of) for gpu in (A, B, instance)])
    assert is_ours(made, resource)
    assert not is_ours(made, OLD)
