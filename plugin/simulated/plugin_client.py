"""The simulated kubelet's side of a connection to a plugin."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self, TypeVar

import grpc

from plugin.device_plugin.v1beta1 import api_pb2, api_pb2_grpc
from plugin.simulated.device_manager import KnownDevice, PluginCallError, Received, ReceivedMount
from plugin.sockets import target

_DIAL_TIMEOUT_SECONDS = 10.0
_LARGEST_MESSAGE_BYTES = 4 * 1024 * 1024  # what gRPC for Go receives, unless told otherwise
_OPTIONS = [("grpc.max_receive_message_length", _LARGEST_MESSAGE_BYTES), ("grpc.use_local_subchannel_pool", 1)]
_Answer = TypeVar("_Answer")


@dataclass(frozen=True, slots=True, eq=False)
class PluginClient:
    """A plugin that has registered; its calls raise PluginCallError with the words a kubelet would use."""

    resource: str
    channel: grpc.Channel
    stub: api_pb2_grpc.DevicePluginStub
    wants_to_be_asked: bool

    @classmethod
    def dial(cls, resource: str, endpoint: Path) -> Self:
        """
        Connect and ask for the plugin's options.

        Raises:
            grpc.RpcError: If the plugin answers with an error.
            grpc.FutureTimeoutError: If nobody answers.
        """
        channel = grpc.insecure_channel(target(endpoint), options=_OPTIONS)
        stub = api_pb2_grpc.DevicePluginStub(channel)
        try:
            grpc.channel_ready_future(channel).result(timeout=_DIAL_TIMEOUT_SECONDS)
            options = stub.GetDevicePluginOptions(api_pb2.Empty(), timeout=_DIAL_TIMEOUT_SECONDS)
        except BaseException:
            channel.close()
            raise
        return cls(resource, channel, stub, options.get_preferred_allocation_available)

    def preferred(self, *, available: Collection[str], must_include: Collection[str], size: int) -> Collection[str]:
        """Ask which devices to take, if the plugin's options say that it wants to be asked."""
        if not self.wants_to_be_asked:
            return ()
        request = api_pb2.ContainerPreferredAllocationRequest(
            available_deviceIDs=available, must_include_deviceIDs=must_include, allocation_size=size
        )
        requests = api_pb2.PreferredAllocationRequest(container_requests=[request])
        answer = _called(lambda: self.stub.GetPreferredAllocation(requests))
        return answer.container_responses[0].deviceIDs if answer.container_responses else ()

    def allocate(self, device_ids: Sequence[str]) -> Received:
        """Ask what a container with these devices receives."""
        request = api_pb2.ContainerAllocateRequest(devices_ids=device_ids)
        answer = _called(lambda: self.stub.Allocate(api_pb2.AllocateRequest(container_requests=[request])))
        if not answer.container_responses:
            raise PluginCallError("the plugin's answer to Allocate has no container in it")
        first = answer.container_responses[0]
        mounts = (
            ReceivedMount(host_path=mount.host_path, container_path=mount.container_path, read_only=mount.read_only)
            for mount in first.mounts
        )
        return Received(
            device_ids=tuple(device_ids),
            environment=dict(first.envs),
            mounts=tuple(mounts),
            cdi_devices=tuple(device.name for device in first.cdi_devices),
            answer=first.SerializeToString(),
        )


def known_device(device: api_pb2.Device) -> KnownDevice:
    """Read one device of a list."""
    nodes = frozenset(node.ID for node in device.topology.nodes)
    return KnownDevice(id=device.ID, healthy=device.health == "Healthy", numa_nodes=nodes)


def _called(call: Callable[[], _Answer]) -> _Answer:
    try:
        return call()
    except grpc.RpcError as error:
        code = error.code().name.title().replace("_", "")  # FailedPrecondition, as Go writes it
        raise PluginCallError(f"rpc error: code = {code} desc = {error.details()}") from error
