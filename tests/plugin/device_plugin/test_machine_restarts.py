"""The file of what is held may be older than the kubelet's, or lost: no GPU is given away beyond its whole."""

from pathlib import Path
from random import Random

import pytest

from plugin.device_plugin.checkpoint import Checkpoint
from plugin.device_plugin.holdings import Holdings
from plugin.shares.fit import Fit
from plugin.shares.parts_file import FILE
from plugin.shares.preference import AllocationPolicy
from tests.plugin.device_plugin import kubelet_file
from tests.plugin.device_plugin.guarded_node import GuardedNode
from tests.plugin.device_plugin.kubelet_file import entries, write_checkpoint


def node(directory: Path, *, seed: int = 1, policy: AllocationPolicy = "pack", gpus: int = 2) -> GuardedNode:
    directory = directory / str(seed)
    directory.mkdir()
    fit = Fit(vgpus_per_gpu=10, policy=policy, several=False)
    return GuardedNode(gpus=gpus, fit=fit, random=Random(seed), directory=directory)  # noqa: S311 - the same each time


def ours(here: GuardedNode) -> Path:
    return here.directory / FILE


def start_machine(here: GuardedNode) -> None:
    """Start the machine anew, and the plugin on it; the kubelet starts its containers by the answers that it has."""
    here.boot_id += "'"
    here.start_plugin()


def started(here: GuardedNode, *sizes: int) -> list[str]:
    for size in sizes:
        while here.seen < size:
            here.look()
            here.tick()
        assert here.send(size, expects=pytest.fail)
        write_checkpoint(here.directory, entries(here.manager))
    return list(here.running)


def test_a_binding_that_was_not_on_the_disk_is_read_from_the_kubelets_checkpoint(tmp_path: Path) -> None:
    here = node(tmp_path)
    started(here, 6)
    earlier = ours(here).read_bytes()
    here.end(*here.running)
    here.look()
    here.look()
    started(here, 8, 3)
    ours(here).write_bytes(earlier)
    start_machine(here)
    assert sorted(here.devices.room().values()) == sorted(here.free) == [2, 7]


@pytest.mark.parametrize("content", [None, b"", b"{"])
def test_where_the_file_is_lost_the_kubelets_checkpoint_is_enough(tmp_path: Path, content: bytes | None) -> None:
    here = node(tmp_path)
    started(here, 8, 3)
    if content is None:
        ours(here).unlink()
    else:
        ours(here).write_bytes(content)
    here.start_plugin()
    assert sorted(here.devices.room().values()) == [2, 7]
    here.tick()
    assert here.send(7, expects=pytest.fail)


def test_while_the_machine_runs_the_file_is_newer_than_the_kubelets_checkpoint(tmp_path: Path) -> None:
    here = node(tmp_path)
    (first,) = started(here, 6)
    here.end(first)
    here.look()
    here.look()
    assert here.send(8, expects=pytest.fail)  # and the kubelet's disk hangs
    here.start_plugin()
    assert sorted(here.devices.room().values()) == [2, 10]


def test_where_the_kubelets_checkpoint_cannot_be_read_nothing_is_free_until_what_was_held_has_ended(
    tmp_path: Path,
) -> None:
    here = node(tmp_path)
    (first,) = started(here, 6)
    (here.directory / kubelet_file.FILE).write_text("something else")
    start_machine(here)
    assert sorted(here.devices.room().values()) == [0, 0]
    here.end(first)
    here.look()
    here.look()
    assert sorted(here.devices.room().values()) == [10, 10]


def test_a_plugin_that_ends_before_all_is_known_has_written_nothing_that_the_next_one_relies_on(tmp_path: Path) -> None:
    (tmp_path / kubelet_file.FILE).write_text("something else")
    for _ in range(2):
        checkpoint = Checkpoint(state_dir=tmp_path, kubelet_dir=tmp_path, boot_id="this")
        holdings = Holdings(lambda: (), kubelet=tmp_path / "kubelet.sock", checkpoint=checkpoint, clock=lambda: 0.0)
        holdings.refresh()  # a kubelet that starts names nothing yet
        assert (tmp_path / FILE).exists()
        assert holdings.is_blind


@pytest.mark.exhaustive
@pytest.mark.parametrize("policy", ["pack", "spread"])
@pytest.mark.parametrize("seed", range(10))
def test_whatever_is_left_of_the_file_no_gpu_is_given_away_beyond_its_whole(
    tmp_path: Path, seed: int, policy: AllocationPolicy
) -> None:
    here = node(tmp_path, seed=seed, policy=policy, gpus=3)
    contents: list[bytes | None] = [None, b"", b"{"]
    for _ in range(80):
        match here.random.choice(["come", "come", "go", "look", "power"]):
            case "come" if here.seen > 0:
                here.send(here.random.randint(1, min(10, here.seen)))
                write_checkpoint(here.directory, entries(here.manager))
                contents.append(ours(here).read_bytes())
            case "go" if here.running:
                here.end(here.random.choice(list(here.running)))
            case "power":
                ours(here).unlink(missing_ok=True)
                if (content := here.random.choice(contents)) is not None:
                    ours(here).write_bytes(content)
                start_machine(here)
        here.look()
        here.tick()
        room = sorted(here.devices.room().values())
        assert all(said <= free for said, free in zip(room, sorted(here.free), strict=True))
