"""A kubelet that says who holds what, and whom a test can tell."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import grpc

from plugin.gpus.gpu import label_of
from plugin.pod_resources.v1 import api_pb2, api_pb2_grpc
from plugin.simulated.device_manager import Holding
from plugin.simulated.pod_resources import SimulatedPodResources
from policies.contract import DRIVER

RESOURCE = "gpu-share.dev/vgpu"


class Claimed(NamedTuple):
    """A pod with a device of DRA."""

    pod: str
    device: str


def held(pod: str, gpu_uuid: str, *, vgpus: int, resource: str = RESOURCE) -> Holding:
    ids = tuple(f"{gpu_uuid}::{index}" for index in range(vgpus))
    return Holding(pod=pod, container="main", resource=resource, device_ids=ids)


def claimed(pod: str, gpu_uuid: str, *, milli: int) -> Claimed:
    return Claimed(pod, f"{label_of(gpu_uuid)}-{milli}m-0")


class _PodResources(api_pb2_grpc.PodResourcesListerServicer):
    def __init__(self, listed: list[Holding | Claimed]) -> None:
        self._listed = listed

    def List(  # noqa: N802 - the protocol's name
        self, request: api_pb2.ListPodResourcesRequest, context: grpc.ServicerContext
    ) -> api_pb2.ListPodResourcesResponse:
        of_plugin = SimulatedPodResources(lambda: [one for one in self._listed if isinstance(one, Holding)])
        answer = of_plugin.List(request, context)
        answer.pod_resources.extend(_pod(one) for one in self._listed if isinstance(one, Claimed))
        return answer


def _pod(one: Claimed) -> api_pb2.PodResources:
    claim = api_pb2.ClaimResource(driver_name=DRIVER, pool_name="node", device_name=one.device)
    dynamic = api_pb2.DynamicResource(claim_resources=[claim])
    container = api_pb2.ContainerResources(name="main", dynamic_resources=[dynamic])
    namespace, _, name = one.pod.partition("/")
    return api_pb2.PodResources(namespace=namespace, name=name, containers=[container])


@contextmanager
def kubelet(socket: Path, *holdings: Holding | Claimed) -> Iterator[list[Holding | Claimed]]:
    """Serve the list that this gives, whatever is in it at the time."""
    listed = list(holdings)
    with ThreadPoolExecutor(2) as threads:
        server = grpc.server(threads)
        api_pb2_grpc.add_PodResourcesListerServicer_to_server(_PodResources(listed), server)
        server.add_insecure_port(f"unix:{socket}")
        server.start()
        try:
            yield listed
        finally:
            server.stop(None).wait()
