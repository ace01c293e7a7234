"""What a resource offers of each GPU, as whoever looks at the node sees it."""

from dataclasses import replace

from plugin.device_plugin.devices import Devices
from plugin.device_plugin.holder import Holder
from plugin.device_plugin.occupied import Occupied
from plugin.device_plugin.offers import offers
from plugin.gpus.gpu import Pool
from tests.plugin.test_occupancy_watch import GPU, OTHER, ids, of_gpu, tenant


def test_what_is_free_and_what_is_hidden_is_what_the_devices_say() -> None:
    devices = Devices(Pool(gpus=(GPU, OTHER), vgpus_per_gpu=10), faults={OTHER.uuid: "it is lost"})
    held = {
        str(one): Holder(container="a/b/c", since_seconds=0, of=5, gpu=GPU.uuid) for one in ids(1, gpu_uuid=OTHER.uuid)
    }
    held |= {str(one): Holder(container="a/b/c", since_seconds=0, of=5, gpu=GPU.uuid) for one in ids(0)}
    devices.set_held(Occupied(by_gpu={GPU.uuid: held}))
    assert (devices.left(GPU), devices.left(OTHER)) == ((6, 0), (10, 0))
    assert (devices.advertised(GPU), devices.advertised(OTHER)) == (7, 1)
    here, there = offers(devices, strategy="mps", device="gpu")
    assert here.numbers == {f"{GPU.uuid}::0": 5, f"{OTHER.uuid}::1": 5}
    assert (here.gpu, there.gpu, there.numbers, here.outlived) == (GPU, OTHER, {}, None)


def test_what_processes_use_whose_pod_the_kubelet_has_forgotten_is_told() -> None:
    devices = Devices(Pool(gpus=(GPU, OTHER), vgpus_per_gpu=10), faults={})
    gone = Holder(container="team-a/old/main", since_seconds=0, of=10, gpu=GPU.uuid, outlives=True)
    held = {str(one): gone for one in ids(0, 1, 2)}
    held |= {str(one): replace(gone, outlives=False, container="team-a/new/main") for one in ids(3, 4)}
    devices.set_held(Occupied(by_gpu={GPU.uuid: held}, is_known=True))
    here, there = offers(devices, strategy="mps", device="gpu")
    found = of_gpu(here, tenant("old", ids(0, 1, 2)), tenant("new", ids(3, 4)))
    assert (found.granted, found.outlived, found.free, found.largest_free) == (5, 3, 5, 5)
    assert of_gpu(there).outlived == 0
