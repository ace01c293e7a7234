"""A GPU that the device plugin gives to another allocator: not while anything of it is held, or being allocated."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

import pytest

from plugin.device_plugin.devices import Devices
from plugin.device_plugin.held import HeldVgpus
from plugin.errors import AllocationError
from plugin.gpus.gpu import Gpu, Pool
from plugin.simulated.gpus import simulated_gpus
from tests.plugin.device_plugin.advertised import GPUS, advertising, healthy, seen

if TYPE_CHECKING:
    from plugin.device_plugin.service import Resource

FIRST, SECOND = simulated_gpus("2xH200")


class SlowDevices(Devices):
    """Devices of which what is free is counted for long, once somebody waits for it."""

    def __init__(self, pool: Pool) -> None:
        self.counting, self.go_on = Event(), Event()
        self.go_on.set()
        super().__init__(pool, resource="gpu-share.dev/vgpu")

    def free(self, gpu: Gpu, **how: object) -> int:
        self.counting.set()
        self.go_on.wait(0.2)
        return super().free(gpu, **how)  # type: ignore[arg-type]


def test_no_gpu_is_withdrawn_while_vgpus_of_it_are_being_allocated() -> None:
    held, pool = HeldVgpus(), Pool(gpus=(FIRST,), vgpus_per_gpu=10)
    devices = SlowDevices(pool)
    held.follow(devices, are_divided=True)
    devices.counting.clear()
    devices.go_on.clear()
    with ThreadPoolExecutor(1) as threads:
        allocating = threads.submit(held.allocate, [str(next(iter(pool.vgpus()))[0])], devices, "pack")
        assert devices.counting.wait(10)
        assert held.withdraw([FIRST.uuid]) == frozenset()
        assert allocating.result().gpus == (FIRST,)
    assert devices.pool.gpus == (FIRST,)


@pytest.mark.parametrize("binds_late", [True, False])
def test_nothing_of_a_gpu_that_is_withdrawn_is_allocated(*, binds_late: bool) -> None:
    held, pool = HeldVgpus(), Pool(gpus=(FIRST, SECOND), vgpus_per_gpu=1)
    devices = Devices(pool, resource="gpu-share.dev/gpu", binds_late=binds_late)
    held.follow(devices, are_divided=False)
    first, second = (str(vgpu) for vgpu, _ in pool.vgpus())
    held.allocate([second], devices, "pack")
    assert held.withdraw([FIRST.uuid, SECOND.uuid]) == {FIRST.uuid}
    with pytest.raises(AllocationError):
        held.allocate([first], devices, "pack")
    assert held.preferred(devices, "pack", available=[second], must_include=(), size=1) == [second]  # it has ended
    assert held.withdraw([FIRST.uuid, SECOND.uuid]) == {FIRST.uuid, SECOND.uuid}
    with pytest.raises(AllocationError):
        held.allocate([second], devices, "pack")


def test_what_is_held_by_the_id_of_a_gpu_that_was_withdrawn_is_advertised_once() -> None:
    held, pool = HeldVgpus(), Pool(gpus=(FIRST, SECOND), vgpus_per_gpu=10)
    devices = Devices(pool, resource="gpu-share.dev/vgpu")
    held.follow(devices, are_divided=True)
    ids = [str(vgpu) for vgpu, _ in pool.vgpus()]
    devices.set_faults({SECOND.uuid: "XID 79"})
    (on,) = held.allocate(ids[10:14], devices, "pack").gpus
    assert on == FIRST
    devices.set_faults({})
    assert held.withdraw([SECOND.uuid]) == {SECOND.uuid}
    told = sum(device.healthy for device in next(iter(devices.watch())))
    assert devices.pool.gpus == (FIRST,)
    assert devices.advertised(FIRST) == told == 10


def test_an_unhealthy_gpu_that_is_withdrawn_is_never_seen_healthy() -> None:
    served: list[Resource] = []
    known = advertising(served)
    known.publish([*seen(GPUS[0]), *seen(GPUS[1], why="XID 79")])
    assert known.withdraw([GPUS[1].uuid]) == {GPUS[1].uuid}
    served[0].devices.set_faults({})
    assert healthy(served[0]) == [True] * 4 + [False] * 4


def test_a_gpu_that_comes_back_before_anybody_was_told_is_advertised_again(tmp_path: Path) -> None:
    served: list[Resource] = []
    known = advertising(served, "cdi", cdi_dir=tmp_path)
    known.publish(seen(*GPUS[:2]))
    known.withdraw([GPUS[1].uuid])
    assert sum(healthy(served[0])) == 4
    known.publish(seen(*GPUS[:2]))
    assert sum(healthy(served[0])) == 8
