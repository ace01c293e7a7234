"""A kubelet that says who holds what, and whom a test can tell."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import grpc

from plugin.pod_resources.v1 import api_pb2_grpc
from plugin.simulated.device_manager import Holding
from plugin.simulated.pod_resources import SimulatedPodResources

RESOURCE = "gpu-share.dev/vgpu"


def held(pod: str, gpu_uuid: str, *, vgpus: int) -> Holding:
    ids = tuple(f"{gpu_uuid}::{index}" for index in range(vgpus))
    return Holding(pod=pod, container="main", resource=RESOURCE, device_ids=ids)


@contextmanager
def kubelet(socket: Path, *holdings: Holding) -> Iterator[list[Holding]]:
    """Serve the list that this gives, whatever is in it at the time."""
    listed = list(holdings)
    with ThreadPoolExecutor(2) as threads:
        server = grpc.server(threads)
        api_pb2_grpc.add_PodResourcesListerServicer_to_server(SimulatedPodResources(lambda: listed), server)
        server.add_insecure_port(f"unix:{socket}")
        server.start()
        try:
            yield listed
        finally:
            server.stop(None).wait()
