"""The device plugin's gRPC service: messages in, values to the rules, messages out. No rule lives here."""

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from threading import Event, Lock
from typing import TypeVar

import grpc

from plugin.device_plugin import kubelet_checkpoint
from plugin.device_plugin.devices import Devices
from plugin.device_plugin.held import HeldVgpus
from plugin.device_plugin.placement import can_be_had
from plugin.device_plugin.rejection import TOLD_SECONDS, Rejections
from plugin.device_plugin.subscription import Subscription
from plugin.device_plugin.v1beta1 import api_pb2, api_pb2_grpc
from plugin.errors import AllocationError, NoRoomError
from plugin.shares.allocation import Allocation
from plugin.shares.handover import BY_VARIABLE, Answer, Delivery, answer
from plugin.shares.limits import limits
from plugin.shares.preference import AllocationPolicy
from plugin.shares.strategy import Sharing

_log = logging.getLogger(__name__)
_Answer = TypeVar("_Answer")
MOST_STREAMS = 4  # a kubelet has one, and for a moment a second; each holds a thread


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """One extended resource of this node: what it offers, how a share of it is held and handed over."""

    name: str  # such as gpu-share.dev/vgpu
    devices: Devices
    sharing: Sharing
    allocation_policy: AllocationPolicy
    delivery: Callable[[], Delivery] = lambda: BY_VARIABLE  # how containers get their GPU from now on
    held: HeldVgpus = field(default_factory=HeldVgpus)  # on this node


class DevicePluginService(api_pb2_grpc.DevicePluginServicer):
    """Answers one kubelet for one resource, from one registration to the end of its stream."""

    def __init__(self, resource: Resource, *, on_end: Callable[[str], None]) -> None:
        self._resource = resource
        self._ended = Event()
        self._rejections = Rejections(resource.devices, wait=self._ended.wait)
        self._on_end = on_end  # called with the reason
        self._lock = Lock()
        self._watches: set[Subscription] = set()
        self._closed = False

    @property
    def is_watched(self) -> bool:
        """Whether a kubelet follows the devices."""
        return bool(self._watches)

    def close(self) -> None:
        """End the streams, and any that starts later; nobody waits any more."""
        self._ended.set()
        with self._lock:
            self._closed = True
            watches = tuple(self._watches)
        for watch in watches:
            watch.close()

    def GetDevicePluginOptions(  # noqa: N802 - the protocol's name
        self,
        request: api_pb2.Empty,  # noqa: ARG002 - the protocol's signature
        context: grpc.ServicerContext,  # noqa: ARG002 - the protocol's signature
    ) -> api_pb2.DevicePluginOptions:
        """Ask the kubelet to ask for a preference, and not to call before each container start."""
        return api_pb2.DevicePluginOptions(pre_start_required=False, get_preferred_allocation_available=True)

    def ListAndWatch(  # noqa: N802 - the protocol's name
        self,
        request: api_pb2.Empty,  # noqa: ARG002 - the protocol's signature
        context: grpc.ServicerContext,
    ) -> Iterator[api_pb2.ListAndWatchResponse]:
        """
        Send all devices at once, and again after each change, until either side ends it.

        Which of them is the kubelet's cannot be seen. So too many end the session: the kubelet hears of the next one,
        and is served by it.
        """
        watch = self._resource.devices.watch()
        with self._lock:
            self._watches.add(watch)
            closed, streams = self._closed, len(self._watches)
        if streams > MOST_STREAMS:
            self._on_end(
                f"more than {MOST_STREAMS} streams are open on {self._resource.name}'s socket, not by the kubelet"
            )
        if closed or not context.add_callback(lambda: self._end(watch)):
            self._end(watch)
        for devices in watch:
            messages = (_device_message(one.id, one.numa_node, healthy=one.healthy) for one in devices)
            yield api_pb2.ListAndWatchResponse(devices=messages)

    def GetPreferredAllocation(  # noqa: N802 - the protocol's name
        self, request: api_pb2.PreferredAllocationRequest, context: grpc.ServicerContext
    ) -> api_pb2.PreferredAllocationResponse:
        """Choose vGPUs for each container."""
        return _answered(lambda: self._preferred(request), context)

    def Allocate(  # noqa: N802 - the protocol's name
        self, request: api_pb2.AllocateRequest, context: grpc.ServicerContext
    ) -> api_pb2.AllocateResponse:
        """
        Say what each container receives.

        The kubelet holds its admission lock meanwhile and sets no deadline: nothing waits but what `rejection` says.
        """
        return _answered(lambda: self._allocated(request), context)

    def PreStartContainer(  # noqa: N802 - the protocol's name
        self,
        request: api_pb2.PreStartContainerRequest,  # noqa: ARG002 - the protocol's signature
        context: grpc.ServicerContext,  # noqa: ARG002 - the protocol's signature
    ) -> api_pb2.PreStartContainerResponse:
        """Agree: all that a container needs was in the answer to Allocate."""
        return api_pb2.PreStartContainerResponse()

    def _end(self, watch: Subscription) -> None:
        watch.close()
        with self._lock:
            self._watches.discard(watch)
            unwatched = not self._watches
        if unwatched:
            self._on_end("the kubelet ended the stream")

    def _preferred(self, request: api_pb2.PreferredAllocationRequest) -> api_pb2.PreferredAllocationResponse:
        answers = [self._preferred_ids(container) for container in request.container_requests]
        return api_pb2.PreferredAllocationResponse(
            container_responses=[api_pb2.ContainerPreferredAllocationResponse(deviceIDs=ids) for ids in answers]
        )

    def _preferred_ids(self, container: api_pb2.ContainerPreferredAllocationRequest) -> list[str]:
        resource = self._resource
        return resource.held.preferred(
            resource.devices,
            resource.allocation_policy,
            available=container.available_deviceIDs,
            must_include=container.must_include_deviceIDs,
            size=container.allocation_size,
        )

    def _allocated(self, request: api_pb2.AllocateRequest) -> api_pb2.AllocateResponse:
        resource = self._resource
        containers = request.container_requests
        delivery = resource.delivery()
        allocations = [self._allocation(one.devices_ids, by_cdi=bool(delivery.cdi_kind)) for one in containers]
        resource.devices.wait_until_told(within_seconds=TOLD_SECONDS)  # before the kubelet starts another one
        answers = [answer(allocation, resource.sharing, delivery) for allocation in allocations]
        for allocation in allocations:
            _log.info("vGPUs allocated", extra=_fields(resource.name, allocation))
        messages = [_container_message(one, for_) for one, for_ in zip(answers, allocations, strict=True)]
        return api_pb2.AllocateResponse(container_responses=messages)

    def _allocation(self, ids: Sequence[str], *, by_cdi: bool) -> Allocation:
        resource, policy = self._resource, self._resource.allocation_policy
        check = partial(limits, sharing=resource.sharing)  # what holds no container to its share is not kept for it
        try:
            return resource.held.allocate(ids, resource.devices, policy, by_cdi=by_cdi, check=check)
        except NoRoomError as error:
            waits = resource.devices.is_guarded or not can_be_had(len(ids), resource.devices)
            why = self._rejections.reject(len(ids)) if waits else self._rejections.why(len(ids))
            raise AllocationError(f"{error}; {why}") from error


def _answered(call: Callable[[], _Answer], context: grpc.ServicerContext) -> _Answer:
    """Give the answer, or one sentence: what is said here is what a user reads at the pod."""
    try:
        return call()
    except AllocationError as error:
        _log.warning("allocation denied", extra={"reason": str(error)})
        context.abort(grpc.StatusCode.FAILED_PRECONDITION, str(error))
    except Exception:  # noqa: BLE001 - a traceback must reach the log and nobody else
        _log.exception("a call failed inside the plugin")
        context.abort(grpc.StatusCode.INTERNAL, "gpu-share failed on this node: see the plugin's log there")


def _fields(resource: str, allocation: Allocation) -> dict[str, object]:
    gpus = [gpu.uuid for gpu in allocation.gpus]
    return {"resource": resource, "gpus": gpus, "vgpus": allocation.vgpus * len(gpus)}


@lru_cache(8192)  # hundreds in each list, of which a few have changed
def _device_message(device_id: str, numa_node: int | None, *, healthy: bool) -> api_pb2.Device:
    health = "Healthy" if healthy else "Unhealthy"
    return api_pb2.Device(ID=device_id, health=health, topology=_topology_message(numa_node))


def _topology_message(numa_node: int | None) -> api_pb2.TopologyInfo | None:
    if numa_node is None:
        return None
    return api_pb2.TopologyInfo(nodes=[api_pb2.NUMANode(ID=numa_node)])


def _container_message(given: Answer, allocation: Allocation) -> api_pb2.ContainerAllocateResponse:
    return api_pb2.ContainerAllocateResponse(
        envs=given.environment,
        annotations=kubelet_checkpoint.annotations(allocation),
        mounts=[api_pb2.Mount(host_path=one.host_path, container_path=one.container_path) for one in given.mounts],
        devices=[
            api_pb2.DeviceSpec(host_path=path, container_path=path, permissions="rw") for path in given.device_nodes
        ],
        cdi_devices=[api_pb2.CDIDevice(name=name) for name in given.cdi_devices],
    )
