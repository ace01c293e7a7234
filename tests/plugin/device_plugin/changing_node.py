"""A node of which `nodes` says another thing at each start of its plugin, while containers keep what they hold."""

import json
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from random import Random

from plugin.device_plugin.checkpoint import Checkpoint
from plugin.device_plugin.held import HeldVgpus
from plugin.device_plugin.holdings import Holdings
from plugin.device_plugin.resources import Resources
from plugin.device_plugin.service import DevicePluginService, Resource
from plugin.device_plugin.v1beta1 import api_pb2
from plugin.gpus.gpu import Gpu, VGpuId
from plugin.gpus.numbers import GpuNumbers
from plugin.pod_resources.tenants import Tenant
from plugin.shares.division import Division
from plugin.shares.handover import handover_settings
from plugin.simulated.device_manager import (
    ContainerKind,
    DeviceManager,
    KnownDevice,
    Received,
    Request,
    UnexpectedAdmissionError,
)
from policies.cluster import Cluster
from policies.contract import HELD_ANNOTATION, MPS, TIME_SLICING, WHOLE, SharingStrategy
from policies.nodes import NodeRule
from tests.plugin.device_plugin.advertised import Seen
from tests.plugin.device_plugin.kubelet_file import entries, write_checkpoint
from tests.plugin.device_plugin.walk import ServiceAsPlugin

# By name: a sharing strategy, and the name of a model or none.
OFFERS: dict[str, tuple[SharingStrategy, str | None]] = {
    "mps": (MPS, None),
    "time-slicing": (TIME_SLICING, None),
    "whole": (WHOLE, None),
    "big": (MPS, "big"),
    "big, whole": (WHOLE, "big"),
}


@dataclass(frozen=True, kw_only=True)
class Pod:
    """What a pod asked for, and what each of its containers was given: parts of GPUs by UUID."""

    resource: str
    count: int
    given: tuple[Mapping[str, Fraction], ...]

    def part_of(self, gpu: str) -> Fraction:
        """Say which part of a GPU its largest container was given: init containers end before the others start."""
        return max(one.get(gpu, Fraction()) for one in self.given)


@dataclass(frozen=True)
class Deaf(ServiceAsPlugin):
    """The service to a kubelet that takes any vGPUs, whichever are preferred: they are on another GPU than named."""

    def preferred(self, *, available: Collection[str], must_include: Collection[str], size: int) -> Collection[str]:
        super().preferred(available=available, must_include=must_include, size=size)
        return ()


@dataclass
class ChangingNode:
    """The kubelet hears of all changes at once, and so does the scheduler."""

    gpus: tuple[Gpu, ...]
    directory: Path
    random: Random
    steps: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.manager = DeviceManager(self.random)
        self.pods: dict[str, Pod] = {}
        self._now_seconds = 0.0
        self._sent = 0

    def start(self, *offers: str, vgpus_per_gpu: int = 10, gone: int = 0) -> None:
        """Start the plugin by another file: *offers* says what is offered of each GPU; *gone* of the first are lost."""
        ways = [(gpu, *OFFERS[offer]) for gpu, offer in zip(self.gpus, offers, strict=True)]
        cluster = Cluster(
            nodes=tuple(NodeRule(indexes=(gpu.index,), strategy=how, device=device) for gpu, how, device in ways),
            vgpus_per_gpu=vgpus_per_gpu,
        )
        for name in self.manager.resources():
            self.manager.disconnect(name)
        checkpoint = Checkpoint(
            vgpus_per_gpu=vgpus_per_gpu,
            state_dir=self.directory,
            kubelet_dir=self.directory,
            is_ours=cluster.is_ours,
            boot_id="this",
        )
        holdings = Holdings(
            self._tenants,
            kubelet=self.directory / "kubelet.sock",
            checkpoint=checkpoint,
            clock=lambda: self._now_seconds,
        )
        self.held = HeldVgpus(holdings)
        self.resources: dict[str, Resource] = {}
        resources = Resources(
            cluster,
            Division(cluster, node_name="node", number_of=GpuNumbers(None, ()).of),
            allocation_policy=self.random.choice(["pack", "spread"]),
            handover=handover_settings(("envvar",), cdi_dir=self.directory, static_dir=self.directory),
            serve=lambda one: self.resources.update({one.name: one}),
            held=self.held,
            fit_guard=False,
        )
        resources.publish([Seen(gpu, how) for gpu, how, _ in ways[gone:]])
        self.look()
        self._now_seconds += 31  # by then a plugin believes the kubelet what is free
        self.look()
        self.steps["start"] += 1

    def look(self) -> None:
        """Let the plugin ask who holds what."""
        self.held.refresh()
        self._tell()

    def send(self, name: str, count: int, *, init: int = 0) -> Pod:
        """Have the kubelet admit a pod, with an init container or none; UnexpectedAdmissionError if it is rejected."""
        self._sent += 1
        pod, plugin = f"t/p{self._sent}", self._plugin(name)
        received = []
        try:
            kinds: tuple[tuple[ContainerKind, int], ...] = (("init", init), ("app", count))
            for kind, asked in kinds if init else kinds[1:]:
                request = Request(pod=pod, container=kind, resource=name, count=asked, kind=kind)
                received.append(self.manager.allocate(request, plugin))
                write_checkpoint(self.directory, entries(self.manager))
                self.look()
        except UnexpectedAdmissionError:
            self.manager.free(pod)
            self._forget()
            raise
        self.pods[pod] = Pod(resource=name, count=max(count, init), given=tuple(map(_given, received)))
        return self.pods[pod]

    def end(self, pod: str) -> None:
        """End a pod, and have the plugin know it."""
        self.manager.free(pod)
        del self.pods[pod]
        self.look()

    def part(self, gpu: str) -> Fraction:
        """Say which part of a GPU pods were given."""
        return sum((pod.part_of(gpu) for pod in self.pods.values()), Fraction())

    def free(self, name: str) -> list[int]:
        """Say what is free in truth of each GPU of a resource: what pods were given is not."""
        pool = self.resources[name].devices.pool
        return [int((1 - self.part(gpu.uuid)) * pool.vgpus_per_gpu) for gpu in pool.gpus]

    def allocatable(self, name: str) -> int:
        """Count the vGPUs that the node's status has."""
        return sum(one.healthy for one in self.manager.devices(name))

    def requested(self, name: str) -> int:
        """Count the vGPUs that pods of the node ask for."""
        return sum(pod.count for pod in self.pods.values() if pod.resource == name)

    def _forget(self) -> None:
        """Let two minutes pass, in which the kubelet drops what an init container had whose pod was rejected."""
        for _ in range(3):
            self._now_seconds += 60
            write_checkpoint(self.directory, entries(self.manager))
            self.look()

    def _plugin(self, name: str) -> ServiceAsPlugin:
        service = DevicePluginService(self.resources[name], on_end=lambda _: None)
        service.close()  # nobody waits here
        return self.random.choice([ServiceAsPlugin, Deaf])(service)

    def _tell(self) -> None:
        for name, resource in self.resources.items():
            known = [
                KnownDevice(id=one.id, healthy=one.healthy, numa_nodes=frozenset()) for one in resource.devices._devices
            ]
            self.manager.update(name, known)

    def _tenants(self) -> tuple[Tenant, ...]:
        return tuple(
            Tenant(
                namespace="t",
                pod=held.pod.partition("/")[2],
                container=held.container,
                vgpus=tuple(vgpus),
                resources=dict.fromkeys(vgpus, held.resource),
            )
            for held in self.manager.holdings()
            if (vgpus := [vgpu for text in held.device_ids if (vgpu := VGpuId.parse(text))])
        )


def _given(received: Received) -> dict[str, Fraction]:
    """Read which part of which GPU a container was given, as the plugin answered."""
    answer = api_pb2.ContainerAllocateResponse.FromString(received.answer)
    held = json.loads(answer.annotations[HELD_ANNOTATION])
    return {gpu: Fraction(len(received.device_ids), len(held["gpus"]) * held["of"]) for gpu in held["gpus"]}
