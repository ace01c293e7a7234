"""The number of vGPUs changes while containers hold some."""

from pathlib import Path
from random import Random

import pytest

from plugin.device_plugin.devices import Devices
from plugin.device_plugin.held import HeldVgpus
from plugin.errors import AllocationError
from plugin.gpus.gpu import Pool
from plugin.simulated.gpus import simulated_gpus
from tests.plugin.device_plugin.live_walk import LiveNode


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", range(6))
def test_changes_pods_faults_and_restarts_in_any_order_break_no_promise(tmp_path: Path, seed: int) -> None:
    node = LiveNode(gpus=simulated_gpus("3xL4"), random=Random(seed), directory=tmp_path)  # noqa: S311 - the same each time
    for number in range(700):
        node.step()
        if number % 50 == 49:
            node.settle()
            assert sum(map(node.devices.advertised, node.gpus)) == node.allocatable
            if not node._faults:
                assert node.allocatable - node.requested == sum(node.room().values())
    assert min(node.steps[kind] for kind in ("allocated", "several numbers", "rejected", "pending", "kill")) > 5


@pytest.mark.parametrize("seed", range(3))
def test_beside_the_guard_the_scheduler_sees_no_more_than_is_free_and_all_that_fits_on_one_gpu(
    tmp_path: Path, seed: int
) -> None:
    node = LiveNode(gpus=simulated_gpus("3xL4"), random=Random(seed), directory=tmp_path, is_guarded=True)  # noqa: S311 - as above
    for number in range(500):
        node.step()
        if number % 50 == 49:
            node.settle()
            node.settle()  # what is hidden takes effect after a second
            assert sum(map(node.devices.advertised, node.gpus)) == node.allocatable
            if not node._faults:
                room = node.room().values()
                assert max(room) <= node.allocatable - node.requested <= sum(room)
    assert min(node.steps[kind] for kind in ("allocated", "several numbers", "pending", "kill")) > 5


@pytest.fixture
def node(tmp_path: Path) -> LiveNode:
    return LiveNode(gpus=simulated_gpus("2xL4"), random=Random(1), directory=tmp_path)  # noqa: S311 - as above


def fill_one(node: LiveNode) -> None:
    """Have pods on the first GPU of the two, and none on the other."""
    while len(node._running) < 2:
        node.schedule()
        node.settle()
    assert sorted(node.room().values())[1] == 10


def test_where_the_checkpoint_is_lost_nothing_is_free_beside_what_is_held(node: LiveNode, tmp_path: Path) -> None:
    fill_one(node)
    (tmp_path / "vgpus.json").write_text("{")
    node.start_plugin()
    assert set(node.devices.room().values()) == {0}  # who holds what is not known at all
    node._held.refresh()
    assert set(node.devices.room().values()) == {0}  # a kubelet that starts names one pod after the other
    node.settle()
    assert set(node.devices.room().values()) == {0}  # on which GPU they are nobody knows
    node.start_plugin()
    node.settle()
    assert set(node.devices.room().values()) == {0}  # by its new file neither
    for name in [*node._running]:
        node.end(name)
    node.settle()
    assert set(node.devices.room().values()) == {10}


def test_the_number_stays_where_what_is_held_cannot_be_written(node: LiveNode, tmp_path: Path) -> None:
    fill_one(node)
    file = tmp_path / "vgpus.json"
    file.unlink()
    file.mkdir()
    assert "cannot be written" in node._held.divide_by(20)
    assert node.devices.pool.vgpus_per_gpu == 10
    file.rmdir()
    assert node._held.divide_by(20) == ""
    assert node.devices.pool.vgpus_per_gpu == 20


@pytest.fixture
def left_over() -> tuple[HeldVgpus, Devices]:
    """Give a GPU by 20, of which a container that the kubelet never names was allocated 5 when it was one by 10."""
    held, pool = HeldVgpus(), Pool(gpus=simulated_gpus("1xH200"), vgpus_per_gpu=10)
    devices = Devices(pool)
    held.follow(devices, are_divided=True)
    held.allocate([str(vgpu) for vgpu, _ in pool.vgpus()][:5], devices, "pack")
    held.divide_by(20)
    return held, devices


def test_a_pod_that_asks_for_all_there_is_gets_it_though_a_rejected_one_left_something(
    left_over: tuple[HeldVgpus, Devices],
) -> None:
    held, devices = left_over
    everything = sorted(devices.seen)
    given = held.allocate(everything, devices, "pack")
    assert (len(everything), given.vgpus, given.vgpus_per_gpu) == (15, 15, 20)


def test_a_pod_whose_containers_are_of_two_numbers_is_rejected_and_nothing_of_it_is_given_away(
    left_over: tuple[HeldVgpus, Devices],
) -> None:
    held, devices = left_over
    own, everything = [*held._holdings.held()], sorted(devices.seen)
    held.preferred(devices, "pack", available=everything, must_include=own, size=15)
    with pytest.raises(AllocationError, match="must be of one number, its init container got some of 10, and 15 can"):
        held.allocate(everything, devices, "pack")
    assert set(devices.room().values()) == {10}
    held.preferred(devices, "pack", available=everything, must_include=[], size=15)  # for a pod that was made anew
    assert held.allocate(everything, devices, "pack").vgpus_per_gpu == 20


def test_where_the_vgpus_of_an_init_container_are_enough_the_kubelet_does_not_ask() -> None:
    held, pool = HeldVgpus(), Pool(gpus=simulated_gpus("2xH200"), vgpus_per_gpu=10)
    devices = Devices(pool)
    held.follow(devices, are_divided=True)
    init = [str(vgpu) for vgpu, _ in pool.vgpus()]
    held.allocate(init, devices, "pack")
    held.divide_by(20)
    with pytest.raises(AllocationError, match="create the pod anew"):
        held.allocate(init[:15], devices, "pack")
    assert set(devices.room().values()) == {0}


def test_what_an_init_container_can_have_left_is_taken_over_by_its_number(left_over: tuple[HeldVgpus, Devices]) -> None:
    held, devices = left_over
    of_init = [text for text, holder in held._holdings.held().items() if holder.of == 10]
    others = sorted(devices.seen - {*of_init})
    given = held.allocate([*of_init, *others[:3]], devices, "pack")
    assert (given.vgpus, given.vgpus_per_gpu) == (8, 10)
