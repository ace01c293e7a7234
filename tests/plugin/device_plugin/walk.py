"""A node on which pods, faults and restarts come at random, and what every container was promised is added up."""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, cast

import grpc

from plugin.device_plugin.checkpoint import Checkpoint
from plugin.device_plugin.devices import Devices
from plugin.device_plugin.held import HeldVgpus
from plugin.device_plugin.holdings import Holdings
from plugin.device_plugin.service import DevicePluginService, Resource
from plugin.device_plugin.v1beta1 import api_pb2
from plugin.gpus.gpu import Pool
from plugin.shares.preference import AllocationPolicy
from plugin.shares.strategy import Mps
from plugin.simulated.device_manager import (
    DeviceManager,
    KnownDevice,
    PluginCallError,
    Received,
    Request,
    UnexpectedAdmissionError,
)

NAME = "gpu-share.dev/vgpu"
_MIB = 1024 * 1024
_MOST_PODS = 60


class _AbortedError(Exception):
    pass


class _Context:
    """What the service needs of gRPC's context: a rejection that ends the call."""

    def abort(self, code: grpc.StatusCode, details: str) -> None:
        raise _AbortedError(f"{code.name}: {details}")


@dataclass(frozen=True)
class ServiceAsPlugin:
    """The real service, called without a socket between."""

    service: DevicePluginService

    def preferred(self, *, available: Collection[str], must_include: Collection[str], size: int) -> Collection[str]:
        request = api_pb2.ContainerPreferredAllocationRequest(
            available_deviceIDs=available, must_include_deviceIDs=must_include, allocation_size=size
        )
        answer = self.service.GetPreferredAllocation(
            api_pb2.PreferredAllocationRequest(container_requests=[request]), _context()
        )
        return answer.container_responses[0].deviceIDs

    def allocate(self, device_ids: Sequence[str]) -> Received:
        request = api_pb2.AllocateRequest(container_requests=[api_pb2.ContainerAllocateRequest(devices_ids=device_ids)])
        try:
            (answer,) = self.service.Allocate(request, _context()).container_responses
        except _AbortedError as rejection:
            raise PluginCallError(str(rejection)) from rejection
        names = tuple(one.name for one in answer.cdi_devices)
        return Received(
            device_ids=tuple(device_ids),
            environment=dict(answer.envs),
            mounts=(),
            cdi_devices=names,
            answer=answer.SerializeToString(),
        )


def _context() -> grpc.ServicerContext:
    return cast("grpc.ServicerContext", _Context())


@dataclass
class RandomNode:
    """Takes one random step at a time; an AssertionError names the first promise that was broken."""

    pool: Pool
    random: Random
    directory: Path  # of the checkpoint
    policy: AllocationPolicy = "pack"
    steps: Counter[str] = field(default_factory=Counter)  # what happened, by kind

    def __post_init__(self) -> None:
        self._manager = DeviceManager(self.random)
        self._faults: dict[str, str] = {}
        self._running: dict[str, Received] = {}
        self._start_plugin()

    def step(self) -> None:
        kind = self.random.choices(
            ["pod", "fault", "recovery", "restart of the plugin", "restart of the kubelet"], [90, 3, 4, 1, 2]
        )[0]
        match kind:
            case "pod":
                self._come_or_go()
            case "fault":
                self._faults[self.random.choice(self.pool.gpus).uuid] = "XID 79"
                self._tell()
            case "recovery":
                self._faults.pop(self.random.choice(self.pool.gpus).uuid, None)
                self._tell()
            case "restart of the plugin":
                self._start_plugin()
            case _:
                self._manager.disconnect(NAME)  # what runs stays allocated, as the kubelet's checkpoint has it
                self._tell()
        if kind != "pod":
            self.steps[kind] += 1
        self._check()

    def _come_or_go(self) -> None:
        name = f"default/pod-{self.random.randrange(_MOST_PODS)}"
        if self._running.pop(name, None):
            self._manager.free(name)
            self.steps["release"] += 1
            return
        count = self.random.choice([1, 1, 2, 2, 3, 5, self.pool.vgpus_per_gpu, 2 * self.pool.vgpus_per_gpu])
        try:
            received = self._manager.allocate(
                Request(pod=name, container="main", resource=NAME, count=count), ServiceAsPlugin(self._service)
            )
        except UnexpectedAdmissionError:
            self._manager.free(name)
            self.steps["rejection"] += 1
            return
        unhealthy = set(received.environment["NVIDIA_VISIBLE_DEVICES"].split(",")) & self._faults.keys()
        assert not unhealthy, f"{name} was put on {unhealthy}, which is unhealthy"
        self._running[name] = received
        self.steps["allocation"] += 1

    def _start_plugin(self) -> None:
        self._devices = Devices(self.pool, resource=NAME, faults=self._faults)
        checkpoint = Checkpoint(
            vgpus_per_gpu=self.pool.vgpus_per_gpu, state_dir=self.directory, kubelet_dir=self.directory
        )
        held = HeldVgpus(Holdings(lambda: (), kubelet=self.directory / "kubelet.sock", checkpoint=checkpoint))
        held.follow(self._devices, are_divided=True)
        resource = Resource(
            name=NAME,
            devices=self._devices,
            sharing=Mps("/tmp/nvidia-mps"),
            allocation_policy=self.policy,
            held=held,
        )
        self._service = DevicePluginService(resource, on_end=lambda _: None)
        self._tell()

    def _tell(self) -> None:
        """Let the kubelet hear of the faults, as the stream would; now and then it has not heard yet."""
        self._devices.set_faults(self._faults)
        if self.random.random() < 0.1:
            return
        watch = self._devices.watch()
        state = self._devices.next_state(watch)
        assert state is not None
        self._manager.update(
            NAME, [KnownDevice(id=one.id, healthy=one.healthy, numa_nodes=frozenset()) for one in state]
        )

    def _check(self) -> None:
        held = Counter(device for received in self._running.values() for device in received.device_ids)
        twice = [device for device, times in held.items() if times > 1]
        assert not twice, f"allocated twice: {twice}"
        promised: Counter[tuple[str, str]] = Counter()
        for received in self._running.values():
            environment: dict[str, Any] = received.environment
            for uuid in environment["NVIDIA_VISIBLE_DEVICES"].split(","):
                promised[uuid, "bytes"] += int(environment["GPU_SHARE_MEMORY_MIB"]) * _MIB
                promised[uuid, "percent"] += int(environment.get("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", 100))
        for gpu in self.pool.gpus:
            assert promised[gpu.uuid, "bytes"] <= gpu.memory_bytes, f"{gpu.uuid} is promised beyond its memory"
            assert promised[gpu.uuid, "percent"] <= 100, f"{gpu.uuid} is promised beyond its threads"
