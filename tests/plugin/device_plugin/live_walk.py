"""A node whose number of vGPUs changes while pods come and go, with all that Kubernetes counts of it."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from random import Random

from plugin.device_plugin.checkpoint import Checkpoint
from plugin.device_plugin.devices import Devices
from plugin.device_plugin.fit_guard import FitGuard
from plugin.device_plugin.held import HeldVgpus
from plugin.device_plugin.holdings import Holdings
from plugin.device_plugin.service import DevicePluginService, Resource
from plugin.gpus.gpu import Gpu, Pool, VGpuId
from plugin.pod_resources.tenants import Tenant
from plugin.shares.handover import Delivery
from plugin.shares.strategy import Mps
from plugin.simulated.device_manager import (
    DeviceManager,
    KnownDevice,
    Received,
    Request,
    UnexpectedAdmissionError,
)
from tests.plugin.device_plugin.walk import NAME, ServiceAsPlugin

MIB = 1 << 20
NUMBERS = (1, 3, 4, 5, 7, 10, 20, 30, 48, 60)


@dataclass(frozen=True)
class Running:
    """A pod that holds vGPUs: what it asked for, and what each of its containers was answered."""

    request: int
    received: tuple[Received, ...]

    def part_of(self, gpu: str) -> Fraction:
        """Say which part of a GPU its largest container was given: init containers end before the others start."""
        return max(_parts(one).get(gpu, Fraction(0)) for one in self.received)


@dataclass
class LiveNode:
    """Takes one random step at a time; an AssertionError names the first promise that was broken."""

    gpus: tuple[Gpu, ...]
    random: Random
    directory: Path
    number: int = 10
    is_guarded: bool = False
    steps: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._manager = DeviceManager(self.random)
        self._running: dict[str, Running] = {}
        self._faults: dict[str, str] = {}
        self._now_seconds = 0.0
        self._pods = 0
        self.start_plugin()
        self.status()

    def step(self) -> None:
        kind = self.random.choices(
            ["pod", "end", "number", "status", "look", "fault", "recovery", "kill", "kubelet"],
            [50, 40, 5, 30, 30, 2, 3, 3, 1],
        )[0]
        self._now_seconds += self.random.choice([0.1, 1.0, 10.0])
        match kind:
            case "pod":
                self.schedule()
            case "end" if self._running:
                self.end(self.random.choice(list(self._running)))
            case "number":
                self.divide_by(self.random.choice(NUMBERS))
            case "status":
                self.status()
            case "look":
                self._held.refresh()
            case "fault":
                self._faults[self.random.choice(self.gpus).uuid] = "XID 79"
            case "recovery":
                self._faults.clear()
            case "kill":
                self.start_plugin()
            case "kubelet":
                self._restart_kubelet()
        self.devices.set_faults(self._faults)
        self._tell()
        self.steps[kind] += 1
        self.check()

    def schedule(self) -> None:
        """Have the scheduler bind a pod, if it believes that the node has room, and the kubelet admit it."""
        count = self.random.choice([1, 1, 2, 3, max(1, self.number // 2), self.number])
        if count > self.allocatable - self.requested:
            self.steps["pending"] += 1
            return
        self._pods += 1
        name, before = f"default/pod-{self._pods}", self._usable()
        plugin = ServiceAsPlugin(self._service)
        received = []
        init = self.random.choice([0, 0, 0, count, max(1, count - 1)])
        try:
            if init:
                init_request = Request(pod=name, container="init", resource=NAME, count=init, kind="init")
                received.append(self._manager.allocate(init_request, plugin))
                self.between_containers()
            received.append(
                self._manager.allocate(Request(pod=name, container="main", resource=NAME, count=count), plugin)
            )
        except UnexpectedAdmissionError as error:
            self._manager.free(name)
            self.steps["rejected"] += 1
            if max(before.values(), default=0) >= count and not init:
                raise AssertionError(f"{count} of {self.number} did not fit, with {before}") from error
            return
        self._running[name] = Running(max(count, init), tuple(received))
        self.steps["allocated"] += 1
        if any(one.part_of(gpu.uuid) for one in self._running.values() for gpu in self.gpus):
            self.steps["several numbers" if len(self._numbers()) > 1 else "one number"] += 1

    def between_containers(self) -> None:
        """Have something happen between two containers of a pod, which all are allocated before it starts."""
        if self.random.random() < 0.05:
            self.divide_by(self.random.choice(NUMBERS))

    def end(self, name: str) -> None:
        self._manager.free(name)
        del self._running[name]

    def divide_by(self, number: int) -> None:
        assert self._held.divide_by(number) == ""
        self.number = number
        self._tell()

    def status(self) -> None:
        """Have the scheduler hear of what the kubelet knows."""
        self.allocatable = sum(one.healthy for one in self._manager.devices(NAME))

    @property
    def requested(self) -> int:
        return sum(one.request for one in self._running.values())

    def room(self) -> dict[str, int]:
        """Count, by what containers were answered alone, how many vGPUs fit on each healthy GPU."""
        left = {gpu.uuid: 1 - self._given(gpu.uuid) for gpu in self.gpus if gpu.uuid not in self._faults}
        return {uuid: int(part * self.number // 1) for uuid, part in left.items()}

    def _usable(self) -> dict[str, int]:
        """Count the same, as far as the kubelet has vGPUs for it: it may not have heard yet what has become free."""
        held = self._manager.holders(NAME)
        free = sum(one.healthy and one.id not in held for one in self._manager.devices(NAME))
        return {uuid: min(room, free) for uuid, room in self.room().items()}

    def settle(self) -> None:
        """Let everybody hear of everything; what a pod left that failed half-way is offered to the next one."""
        self._now_seconds += 100
        self._held.refresh()
        held = self._manager.holders(NAME)
        free = [one.id for one in self._manager.devices(NAME) if one.healthy and one.id not in held]
        ServiceAsPlugin(self._service).preferred(available=free, must_include=[], size=1)
        self._tell()
        self.status()

    def start_plugin(self) -> None:
        """Start a plugin, that knows of the one before what is in the file."""
        checkpoint = Checkpoint(vgpus_per_gpu=self.number, state_dir=self.directory, kubelet_dir=self.directory)
        holdings = Holdings(
            self._tenants,
            kubelet=self.directory / "kubelet.sock",
            checkpoint=checkpoint,
            has_processes=self.has_processes,
            clock=lambda: self._now_seconds,
        )
        self._held = HeldVgpus(holdings)
        guard = FitGuard("pack", several=False, clock=lambda: self._now_seconds) if self.is_guarded else None
        pool = Pool(gpus=self.gpus, vgpus_per_gpu=self.number)
        self.devices = Devices(pool, resource=NAME, faults=self._faults, guard=guard)
        self._held.follow(self.devices, are_divided=True)
        resource = Resource(
            name=NAME,
            devices=self.devices,
            sharing=Mps("/tmp/nvidia-mps"),
            allocation_policy="pack",
            delivery=lambda: Delivery(ways=frozenset({"cdi", "envvar"}), cdi_kind="gpu-share.dev/vgpu"),
            held=self._held,
        )
        self._service = DevicePluginService(resource, on_end=lambda _: None)
        self._tell()

    def has_processes(self, pod_uid: str) -> bool:
        return pod_uid in self._running

    def check(self) -> None:
        for gpu in self.gpus:
            given = self._given(gpu.uuid)
            assert given <= 1, f"{gpu.uuid} is given away {given} times"
            free = self.devices.free(gpu, vgpus_per_gpu=self.number)
            assert given + Fraction(free, self.number) <= 1, f"{free} of {self.number} are free beside {given}"
            last = [pod.received[-1] for pod in self._running.values()]
            held = [one.environment for one in last if gpu.uuid in _parts(one)]
            assert sum(int(one["GPU_SHARE_MEMORY_MIB"]) for one in held) * MIB <= gpu.memory_bytes
            assert sum(int(one["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"]) for one in held) <= 100
        known = {one.id for one in self._manager.devices(NAME)}
        held_ids = [text for pod in self._running.values() for text in pod.received[-1].device_ids]
        assert len(set(held_ids)) == len(held_ids)
        assert known.issuperset(held_ids), "the kubelet does not know a vGPU that it gave away"

    def _given(self, gpu: str) -> Fraction:
        return sum((one.part_of(gpu) for one in self._running.values()), Fraction())

    def _numbers(self) -> set[str]:
        names = [name for pod in self._running.values() for one in pod.received for name in one.cdi_devices]
        return {name.rpartition("of")[2] for name in names}

    def _tell(self) -> None:
        """Let the kubelet hear of the devices, which it does at once."""
        state = self.devices.next_state(self.devices.watch())
        assert state is not None
        self._manager.update(
            NAME, [KnownDevice(id=one.id, healthy=one.healthy, numa_nodes=frozenset()) for one in state]
        )

    def _tenants(self) -> tuple[Tenant, ...]:
        return tuple(
            Tenant(
                namespace="default",
                pod=one.pod.partition("/")[2],
                container=one.container,
                vgpus=tuple(vgpu for text in one.device_ids if (vgpu := VGpuId.parse(text))),
            )
            for one in self._manager.holdings()
        )

    def _restart_kubelet(self) -> None:
        new = self.directory / "kubelet.sock.new"
        new.touch()
        new.replace(self.directory / "kubelet.sock")
        self._manager.disconnect(NAME)


def _parts(received: Received) -> Mapping[str, Fraction]:
    """Read which part of which GPU a container was given: the CDI device says it exactly."""
    (device,) = received.cdi_devices
    gpu, _, share = device.partition("=")[2].rpartition("-")
    vgpus, _, of = share.partition("of")
    return {gpu: Fraction(int(vgpus), int(of))}
