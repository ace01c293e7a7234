"""The calls of a kubelet that allocates vGPUs: a pod comes and holds some for a while, and others come meanwhile."""

import statistics
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from plugin.device_plugin.v1beta1 import api_pb2, api_pb2_grpc
from plugin.simulated.kubelet import SimulatedKubelet

_PODS = 12  # that hold vGPUs at a time
_SIZES = (3, 20)  # vGPUs that a pod gets, at least and at most


def latency(call: Callable[[], Any], *, calls: int) -> tuple[float, float]:
    """Median and 99th percentile in milliseconds."""
    call()
    return _summary([_milliseconds(call)[0] for _ in range(calls)])


@dataclass
class Allocations:
    """Asks the plugin of *resource* for one pod after the other; the pod that came first ends when there are enough."""

    kubelet: SimulatedKubelet
    resource: str
    stub: api_pb2_grpc.DevicePluginStub
    random: Random
    held: deque[Sequence[str]] = field(default_factory=deque)

    def measure(self, *, pods: int) -> tuple[tuple[float, float], tuple[float, float]]:
        """Give median and 99th percentile of GetPreferredAllocation and of Allocate, in milliseconds."""
        for _ in range(2 * _PODS):
            self._one()
        preferred, allocate = zip(*(self._one() for _ in range(pods)), strict=True)
        return _summary(preferred), _summary(allocate)

    def _one(self) -> tuple[float, float]:
        held = {text for ids in self.held for text in ids}
        free = [one.id for one in self.kubelet.devices(self.resource) if one.healthy and one.id not in held]
        wanted = api_pb2.ContainerPreferredAllocationRequest(
            available_deviceIDs=free, allocation_size=self.random.randint(*_SIZES)
        )
        asked = api_pb2.PreferredAllocationRequest(container_requests=[wanted])
        preferred, answer = _milliseconds(lambda: self.stub.GetPreferredAllocation(asked))
        ids = answer.container_responses[0].deviceIDs
        given = api_pb2.AllocateRequest(container_requests=[api_pb2.ContainerAllocateRequest(devices_ids=ids)])
        allocate, _ = _milliseconds(lambda: self.stub.Allocate(given))
        self.held.append(ids)
        if len(self.held) > _PODS:
            self.held.popleft()
        return preferred, allocate


def _milliseconds(call: Callable[[], Any]) -> tuple[float, Any]:
    began = time.perf_counter()
    answer = call()
    return (time.perf_counter() - began) * 1000, answer


def _summary(milliseconds: Sequence[float]) -> tuple[float, float]:
    ordered = sorted(milliseconds)
    return statistics.median(ordered), ordered[int(0.99 * len(ordered))]
