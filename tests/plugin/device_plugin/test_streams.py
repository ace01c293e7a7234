"""Others who follow the devices on the plugin's own socket, which root of the node can."""

from contextlib import suppress
from pathlib import Path

import grpc
import pytest

from plugin.device_plugin.service import MOST_STREAMS
from plugin.device_plugin.v1beta1 import api_pb2, api_pb2_grpc
from plugin.simulated.device_manager import Request
from plugin.simulated.kubelet import SimulatedKubelet
from plugin.sockets import target

NAME = "gpu-share.dev/vgpu"


@pytest.mark.parametrize("others", [MOST_STREAMS, 5 * MOST_STREAMS])
def test_who_else_follows_the_devices_keeps_no_kubelet_from_its_vgpus(
    registered: SimulatedKubelet, directory: Path, others: int
) -> None:
    with grpc.insecure_channel(target(directory / "gpu-share.dev_vgpu.sock")) as channel:
        stub = api_pb2_grpc.DevicePluginStub(channel)
        streams = [stub.ListAndWatch(api_pb2.Empty()) for _ in range(others)]
        registered.wait_until(lambda: len(registered.registrations) == 2)
        registered.wait_for(NAME)
        allocated = registered.allocate(Request(pod="default/a", container="main", resource=NAME, count=2))
        assert len(allocated.device_ids) == 2
        for stream in streams:  # each has ended, or was never begun
            with suppress(grpc.RpcError):
                assert all(len(one.devices) == 20 for one in stream)


def test_a_few_streams_more_disturb_nobody(registered: SimulatedKubelet, directory: Path) -> None:
    with grpc.insecure_channel(target(directory / "gpu-share.dev_vgpu.sock")) as channel:
        stub = api_pb2_grpc.DevicePluginStub(channel)
        streams = [stub.ListAndWatch(api_pb2.Empty()) for _ in range(MOST_STREAMS - 1)]
        for stream in streams:
            assert len(next(stream).devices) == 20
        with pytest.raises(TimeoutError):
            registered.wait_until(lambda: len(registered.registrations) > 1, timeout_seconds=0.5)
