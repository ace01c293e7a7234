"""The simulated kubelet's answer to the question who holds what."""

from collections.abc import Callable, Iterable

import grpc

from plugin.pod_resources.v1 import api_pb2, api_pb2_grpc
from plugin.simulated.device_manager import Holding


class SimulatedPodResources(api_pb2_grpc.PodResourcesListerServicer):
    """Serves what *holdings* lists at that moment."""

    def __init__(self, holdings: Callable[[], Iterable[Holding]]) -> None:
        self._holdings = holdings

    def List(  # noqa: N802 - the protocol's name
        self,
        request: api_pb2.ListPodResourcesRequest,  # noqa: ARG002 - the protocol's signature
        context: grpc.ServicerContext,  # noqa: ARG002 - the protocol's signature
    ) -> api_pb2.ListPodResourcesResponse:
        """List the plugin's own pod, and those that hold devices, and what each of their containers holds."""
        pods: dict[str, dict[str, list[api_pb2.ContainerDevices]]] = {}
        for held in self._holdings():
            devices = api_pb2.ContainerDevices(resource_name=held.resource, device_ids=held.device_ids)
            pods.setdefault(held.pod, {}).setdefault(held.container, []).append(devices)
        own = _pod("gpu-share/gpu-share-plugin", {"plugin": []})
        return api_pb2.ListPodResourcesResponse(pod_resources=[own, *(_pod(*pod) for pod in pods.items())])


def _pod(name: str, containers: dict[str, list[api_pb2.ContainerDevices]]) -> api_pb2.PodResources:
    namespace, _, own_name = name.rpartition("/")
    held = [api_pb2.ContainerResources(name=container, devices=devices) for container, devices in containers.items()]
    return api_pb2.PodResources(namespace=namespace, name=own_name, containers=held)
