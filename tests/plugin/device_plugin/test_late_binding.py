"""The GPU of a vGPU is chosen when it is allocated, is the same as long as it is held, and is never guessed."""

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

from plugin.device_plugin.checkpoint import Checkpoint
from plugin.device_plugin.holdings import Holdings
from plugin.shares.binding import bind
from plugin.shares.fit import Fit
from plugin.shares.parts_file import FILE
from plugin.simulated.device_manager import Received, Request, UnexpectedAdmissionError
from tests.plugin.device_plugin.guarded_node import GuardedNode
from tests.plugin.device_plugin.kubelet_file import entry, write_checkpoint
from tests.plugin.device_plugin.test_guarded_walk import node, settle, sizes
from tests.plugin.device_plugin.walk import NAME

FIT = Fit(vgpus_per_gpu=10, policy="pack", several=False)


@pytest.fixture
def here(tmp_path: Path) -> GuardedNode:
    return GuardedNode(gpus=2, fit=FIT, random=Random(1), directory=tmp_path)  # noqa: S311 - the same each time


def allocate(here: GuardedNode, pod: str, count: int, **changed: Any) -> Received:
    request = Request(pod=f"default/{pod}", container=changed.pop("container", "main"), resource=NAME, count=count)
    try:
        return here.manager.allocate(Request(**{**_fields(request), **changed}), here.plugin)
    finally:
        here.tell()


def _fields(request: Request) -> dict[str, Any]:
    return {name: getattr(request, name) for name in Request.__slots__}


def gpu(received: Received) -> str:
    return received.environment["NVIDIA_VISIBLE_DEVICES"]


def checkpoint(here: GuardedNode) -> Path:
    return here.directory / FILE


def room(here: GuardedNode) -> list[int]:
    return sorted(here.devices.room().values())


def test_a_whole_gpu_has_room_after_two_smaller_shares(here: GuardedNode) -> None:
    for size in (2, 5, 10):
        if size > here.seen:
            settle(here)
        assert here.send(size, expects=pytest.fail)
    assert sorted(here.free) == [0, 3]


@pytest.mark.parametrize("seed", range(12))
def test_whatever_is_placed_without_the_guard_is_placed_with_it_a_status_later_at_most(
    tmp_path: Path, seed: int
) -> None:
    random = Random(seed)  # noqa: S311 - no secret
    gpus, per_gpu = random.choice([(2, 10), (3, 4), (4, 10)])
    here = node(tmp_path, gpus, per_gpu, random.choice(["pack", "spread"]), seed=seed)
    for _ in range(60):
        if here.running and random.random() < 0.4:
            here.end(random.choice([*here.running]))
            settle(here)
        size = random.randint(1, per_gpu)
        free = {one.uuid: count for one, count in zip(here.pool.gpus, here.free, strict=True)}
        if not bind(size, room=free, pool=here.pool, policy=here.fit.policy):
            continue  # fails without the guard
        if size > here.seen:
            settle(here)
        assert size in sizes(here), "it waits for more than a status"
        assert here.send(size, expects=pytest.fail)
        here.look()


def test_a_binding_outlives_the_plugin(here: GuardedNode) -> None:
    first = allocate(here, "small", 2)
    other = allocate(here, "large", 10)
    assert gpu(first) != gpu(other)
    here.start_plugin()
    assert room(here) == [0, 8]
    assert gpu(allocate(here, "next", 8)) == gpu(first)


def test_what_an_earlier_plugin_has_written_is_on_the_gpu_in_its_id(here: GuardedNode) -> None:
    first = allocate(here, "small", 2)
    content = json.loads(checkpoint(here).read_bytes())
    named, unnamed = (one.uuid for one in here.pool.gpus)
    for group in content["held"]:
        del group["on"]  # which it does not know
        group["gpu"] = first.device_ids[0].partition("::")[0]
    checkpoint(here).write_text(json.dumps(content))
    here.start_plugin()
    assert here.devices.room() in ({named: 8, unnamed: 10}, {named: 10, unnamed: 8})
    assert here.devices.room()[first.device_ids[0].partition("::")[0]] == 8


@pytest.mark.parametrize("lost", ["removed", "unreadable"])
def test_where_the_checkpoint_is_lost_nothing_is_free_until_what_was_held_has_ended(
    here: GuardedNode, lost: str
) -> None:
    allocate(here, "small", 2)
    for _ in range(2):  # and a plugin that starts again does not know more
        if lost == "removed":
            checkpoint(here).unlink()
            (here.directory / "kubelet_internal_checkpoint").write_text(f'{{"ResourceName":"{NAME}"}}')
        else:
            checkpoint(here).write_text("{")
        here.start_plugin()
        assert room(here) == [0, 0]
        with pytest.raises(UnexpectedAdmissionError):
            allocate(here, "next", 1)
        lost = "unreadable" if lost == "removed" else "removed"
    here.start_plugin()
    assert room(here) == [0, 0]
    here.manager.free("default/small")
    here.manager.free("default/next")
    here.look()
    here.look()
    assert room(here) == [10, 10]


def test_where_the_checkpoint_is_missing_what_an_earlier_plugin_has_answered_is_on_a_gpu_that_nobody_knows(
    tmp_path: Path,
) -> None:
    for resource, is_lost in (("", False), ("nvidia.com/gpu", False), (NAME, True)):
        write_checkpoint(tmp_path, [entry(resource, ["GPU-a::0"], b"")])
        checkpoint = Checkpoint(
            vgpus_per_gpu=10, state_dir=tmp_path, kubelet_dir=tmp_path, is_ours=lambda name: name == NAME
        )
        holdings = Holdings(lambda: (), kubelet=tmp_path / "kubelet.sock", checkpoint=checkpoint)
        holdings.refresh()
        assert [one.gpu for one in holdings.held().values()] == [""] * is_lost
        (tmp_path / FILE).unlink()


def test_an_allocation_that_cannot_be_kept_is_rejected(here: GuardedNode) -> None:
    checkpoint(here).unlink()
    checkpoint(here).mkdir()
    with pytest.raises(UnexpectedAdmissionError, match=r"what is held cannot be written: .*: Is a directory"):
        allocate(here, "small", 2)
    checkpoint(here).rmdir()
    here.look()
    assert room(here) == [10, 10]
    here.manager.free("default/small")
    allocate(here, "small", 2)


@pytest.mark.parametrize("app", [1, 3, 5])
def test_a_container_that_takes_over_what_an_init_container_had_is_on_its_gpu(here: GuardedNode, app: int) -> None:
    allocate(here, "large", 4)
    init = allocate(here, "pod", 3, container="init", kind="init")
    assert gpu(allocate(here, "pod", app)) == gpu(init)


def test_a_container_that_needs_more_than_its_init_containers_gpu_has_is_on_another_and_both_are_held(
    here: GuardedNode,
) -> None:
    allocate(here, "large", 6)
    init = allocate(here, "pod", 3, container="init", kind="init")
    assert gpu(allocate(here, "pod", 5)) != gpu(init)
    assert room(here) == [1, 5]
    here.look()
    here.start_plugin()
    assert room(here) == [1, 5]
    here.manager.free("default/pod")
    here.look()
    assert room(here) == [4, 10]


def test_a_container_that_needs_more_than_any_gpu_has_beside_others_is_rejected(here: GuardedNode) -> None:
    allocate(here, "large", 6)
    allocate(here, "other", 6)
    allocate(here, "pod", 3, container="init", kind="init")
    with pytest.raises(UnexpectedAdmissionError, match="5 vGPUs must lie on one GPU"):
        allocate(here, "pod", 5)


def test_a_container_on_an_unhealthy_gpu_keeps_unhealthy_vgpus_and_others_healthy_ones(here: GuardedNode) -> None:
    first, other = allocate(here, "small", 2), allocate(here, "large", 10)
    here.devices.set_faults({gpu(first): "XID 79"})
    assert not here.devices.seen & {*first.device_ids}
    assert here.devices.seen == {*other.device_ids}
