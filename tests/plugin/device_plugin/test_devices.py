"""The kubelet hears of what has changed, and an allocation costs what its own GPU does."""

from dataclasses import replace

import pytest

from plugin.device_plugin.devices import Devices
from plugin.device_plugin.holder import Holder
from plugin.device_plugin.occupied import Occupied
from plugin.device_plugin.subscription import Device
from plugin.gpus.gpu import Pool, VGpuId
from plugin.simulated.gpus import simulated_gpus

RESOURCE = "gpu-share.dev/vgpu"


@pytest.fixture
def devices() -> Devices:
    return Devices(Pool(gpus=simulated_gpus("2xH200"), vgpus_per_gpu=10), resource=RESOURCE)


def now(devices: Devices) -> tuple[Device, ...]:
    return next(iter(devices.watch()))


def held(devices: Devices, *indexes: int, of: int = 10) -> Occupied:
    """On the first GPU."""
    uuid = devices.pool.gpus[0].uuid
    holder = Holder(container=None, since_seconds=0.0, resource=RESOURCE, of=of, gpu=uuid)
    return Occupied(by_gpu={uuid: {str(VGpuId(uuid, index)): holder for index in indexes}})


def test_an_allocation_by_the_present_number_is_no_news(devices: Devices) -> None:
    before = now(devices)
    devices.set_held(held(devices, 0, 1, 2))
    assert now(devices) is before


def test_what_changes_on_one_gpu_leaves_the_devices_of_the_others(devices: Devices) -> None:
    first, second = (gpu.uuid for gpu in devices.pool.gpus)
    before = now(devices)
    devices.set_faults({first: "XID 79"})
    assert [one.healthy for one in now(devices)] == [False] * 10 + [True] * 10
    assert all(one is other for one, other in zip(now(devices)[10:], before[10:], strict=True))
    devices.set_faults({second: "XID 79"})
    assert [one.healthy for one in now(devices)] == [True] * 10 + [False] * 10
    devices.set_faults({})
    assert now(devices) == before


def test_what_is_held_by_another_number_changes_what_is_advertised_of_its_gpu_alone(devices: Devices) -> None:
    before = now(devices)
    devices.set_held(held(devices, 0, 1, of=5))
    assert [one.healthy for one in now(devices)] == [True] * 8 + [False] * 2 + [True] * 10
    devices.set_held(replace(held(devices, 0, 1, of=5), is_incomplete=True))
    assert [one.healthy for one in now(devices)] == [True] * 2 + [False] * 18
    devices.set_held(Occupied())
    assert now(devices) == before


def test_what_is_held_on_a_gpu_that_is_unhealthy_from_the_start_is_listed_whatever_its_index() -> None:
    gpus = simulated_gpus("2xH200")
    devices = Devices(Pool(gpus=gpus, vgpus_per_gpu=10), resource=RESOURCE, faults={gpus[0].uuid: "XID 79"})
    devices.set_held(held(devices, 13, of=20))
    listed = {one.id: one.healthy for one in now(devices)}
    assert listed[f"{gpus[0].uuid}::13"] is False
    assert len(listed) == 21
    devices.set_faults({})
    assert {one.id for one in now(devices) if one.healthy} >= {f"{gpus[0].uuid}::13"}
