"""Which CDI devices lie ready: for what can be allocated, and for what containers hold, whatever it is called now."""

import json
import shutil
from pathlib import Path

import pytest

from plugin.errors import HandoverError
from plugin.gpus.gpu import Gpu
from plugin.shares import cdi_directory
from plugin.shares.cdi import Grid
from plugin.shares.strategy import Sharing, TimeSlicing, Whole
from tests.plugin.shares.cdi_node import OLD, Node, full, held
from tests.plugin.shares.cdi_runtime import read_directory
from tests.plugin.shares.two_gpus import MPS, NAME, A, B


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


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
