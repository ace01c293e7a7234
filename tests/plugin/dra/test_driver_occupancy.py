"""Whether all who hold something of a GPU are known where DRA allocates it: the kubelet names no init containers."""

import pytest

from plugin.pod_resources.occupancy import GpuOccupancy, read_occupancy
from plugin.state_files import boot_id
from tests.plugin.dra.node import DraNode, gpu_of, share
from tests.plugin.mps.tenants import Claimed, kubelet
from tests.plugin.waiting import wait_until

pytestmark = pytest.mark.exhaustive


def test_all_are_named_once_the_kubelet_names_a_container_with_each_device_of_a_claim(node: DraNode) -> None:
    socket = node.directory / "kubelet" / "pod-resources.sock"
    socket.parent.mkdir()
    with kubelet(socket, Claimed("gpu-share/plugin", "of-another")) as listed:
        node.start()
        claim = node.schedule("p", share(300))
        uuid = gpu_of(node.run(claim))
        wait_until(lambda: _of(node, uuid).granted == 0 and not _of(node, uuid).all_named, timeout_seconds=15)
        (device,) = (one["device"] for one in claim["status"]["allocation"]["devices"]["results"])
        listed.append(Claimed("team/p", device))
        wait_until(lambda: _of(node, uuid).all_named, timeout_seconds=15)
        assert [one.pod for one in _of(node, uuid).occupants] == ["p"]


def _of(node: DraNode, uuid: str) -> GpuOccupancy:
    read = read_occupancy(node.directory / "state", boot_id=boot_id())
    if read is None or uuid not in read.gpus:
        return GpuOccupancy(strategy="", allocation="", parts=1, all_named=True)
    return read.gpus[uuid]
