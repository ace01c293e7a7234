"""Pods come and go at random on a node with the guard, as a scheduler sends them that sees sums alone."""

from pathlib import Path
from random import Random

import pytest

from plugin.shares.fit import Fit
from plugin.shares.preference import AllocationPolicy
from tests.plugin.device_plugin.guarded_node import GuardedNode

PACKINGS = [
    (gpus, vgpus, policy) for gpus, vgpus in [(2, 10), (3, 4), (4, 10), (8, 10)] for policy in ("pack", "spread")
]


def node(
    directory: Path, gpus: int, vgpus_per_gpu: int, policy: AllocationPolicy, *, several: bool = False, seed: int = 1
) -> GuardedNode:
    fit = Fit(vgpus_per_gpu=vgpus_per_gpu, policy=policy, several=several)
    directory = directory / str(seed)
    directory.mkdir()
    return GuardedNode(gpus=gpus, fit=fit, random=Random(seed), directory=directory)  # noqa: S311 - the same steps in every run


def sizes(node: GuardedNode) -> list[int]:
    """List what the scheduler may send."""
    return list(range(1, min(node.fit.vgpus_per_gpu, node.seen) + 1))


def settle(node: GuardedNode) -> None:
    """Let the plugin hear of what ended, and the scheduler of what is hidden."""
    for _ in range(3):
        node.look()
    node.tick()


@pytest.mark.parametrize(("gpus", "vgpus_per_gpu", "policy"), PACKINGS)
def test_while_containers_start_no_pod_fails_whenever_the_scheduler_hears_of_it(
    tmp_path: Path, gpus: int, vgpus_per_gpu: int, policy: AllocationPolicy
) -> None:
    for seed in range(8):
        here = node(tmp_path, gpus, vgpus_per_gpu, policy, seed=seed)
        large = here.random.random() < 0.5  # requests for more than half of a GPU hurt most
        while possible := sizes(here):
            wanted = [size for size in possible if 2 * size > vgpus_per_gpu] if large else []
            assert here.send(here.random.choice(wanted or possible), expects=pytest.fail)
            here.check()
            for step in (here.tick, here.look, here.start_plugin):
                if here.random.random() < 0.2:
                    step()
            if not sizes(here):
                settle(here)
        assert sum(here.free) == 0


@pytest.mark.exhaustive
@pytest.mark.parametrize(("gpus", "vgpus_per_gpu", "policy"), PACKINGS)
def test_once_the_scheduler_has_heard_of_an_end_no_pod_fails_and_what_fits_is_sent(
    tmp_path: Path, gpus: int, vgpus_per_gpu: int, policy: AllocationPolicy
) -> None:
    here = node(tmp_path, gpus, vgpus_per_gpu, policy)
    failed = 0
    for _ in range(80):
        for pod in [one for one in here.running if here.random.random() < 0.3]:
            here.end(pod)
        for _ in range(here.random.randrange(3)):  # before anybody has heard of the end
            if possible := sizes(here):
                failed += not here.send(here.random.choice(possible))
                here.check()
        settle(here)
        here.check()
        assert here.seen >= max(here.free)
        for _ in range(here.random.randrange(4)):
            if possible := sizes(here):
                assert here.send(here.random.choice(possible), expects=pytest.fail)
                here.check()
        here.look()  # a pod that ends before the kubelet has named it is held until the next one starts
        if here.random.random() < 0.1:
            here.start_plugin()
            here.check()
    assert failed > 0 or gpus > 2  # which is what the pause is for


@pytest.mark.parametrize("policy", ["pack", "spread"])
def test_where_a_container_may_hold_several_gpus_a_request_that_fits_is_sent_and_finds_room(
    tmp_path: Path, policy: AllocationPolicy
) -> None:
    here = node(tmp_path, 4, 4, policy, several=True)
    for _ in range(80):
        for pod in [one for one in here.running if here.random.random() < 0.3]:
            here.end(pod)
        settle(here)
        empty = here.free.count(4)
        assert here.seen >= max(*here.free, 4 * empty)
        whole = [4 * count for count in range(2, 5) if 4 * count <= here.seen]
        if possible := [*sizes(here), *whole]:
            assert here.send(here.random.choice(possible), expects=pytest.fail)
            here.check()
            here.look()


def test_faults_hide_nothing_and_a_gpu_that_recovers_is_shown_as_far_as_it_fits(tmp_path: Path) -> None:
    here = node(tmp_path, 2, 10, "pack")
    assert here.send(7, expects=pytest.fail)
    here.devices.set_faults({here.pool.gpus[1].uuid: "XID 79"})
    assert [(one.free, one.hidden) for one in here.devices.rooms()] == [(3, 0)]
    here.devices.set_faults({})
    here.tell()
    here.tick()
    assert here.seen <= 10
    settle(here)
    assert here.seen == 10
    assert here.send(10, expects=pytest.fail)
