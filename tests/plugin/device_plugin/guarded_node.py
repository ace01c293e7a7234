"""A node with the guard, a kubelet, and a scheduler that sees sums: each hears of things in its time."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from plugin.device_plugin.alignment import Alignment
from plugin.device_plugin.checkpoint import Checkpoint
from plugin.device_plugin.devices import Devices
from plugin.device_plugin.fit_guard import FitGuard
from plugin.device_plugin.held import HeldVgpus
from plugin.device_plugin.holdings import Holdings
from plugin.device_plugin.service import DevicePluginService, Resource
from plugin.device_plugin.subscription import Device, Subscription
from plugin.gpus.gpu import Pool, VGpuId
from plugin.pod_resources.tenants import Tenant
from plugin.shares.fit import Fit
from plugin.shares.strategy import TimeSlicing
from plugin.simulated.device_manager import DeviceManager, KnownDevice, Request, UnexpectedAdmissionError
from plugin.simulated.gpus import simulated_gpus
from tests.plugin.device_plugin.walk import NAME, ServiceAsPlugin


class Heard(Subscription):
    """Whoever hears of every change at once."""

    @property
    def told(self) -> tuple[Device, ...]:
        return self._of._devices

    @told.setter
    def told(self, _: object) -> None: ...


@dataclass
class GuardedNode:
    """The kubelet hears of changes at once, the scheduler with `tick`, the plugin by `look`."""

    gpus: int
    fit: Fit
    random: Random
    directory: Path  # of the checkpoint
    now: float = 0.0
    status: int = 0  # the allocatable vGPUs that the scheduler knows of
    running: dict[str, int] = field(default_factory=dict)  # vGPUs by pod
    on: dict[str, tuple[str, ...]] = field(default_factory=dict)  # UUIDs by pod
    made: int = 0
    boot_id: str = "first"

    def __post_init__(self) -> None:
        self.manager = DeviceManager(self.random)
        self.pool = Pool(gpus=simulated_gpus(f"{self.gpus}xL4"), vgpus_per_gpu=self.fit.vgpus_per_gpu)
        self.start_plugin()
        self.tick()

    @property
    def free(self) -> list[int]:
        """What is free of each healthy GPU in truth."""
        counts = {gpu.uuid: self.fit.vgpus_per_gpu for gpu in self.pool.gpus}
        for pod, gpus in self.on.items():
            for uuid in gpus:
                counts[uuid] -= self.running[pod] // len(gpus)
        return [count for uuid, count in counts.items() if not self.devices.fault(uuid)]

    @property
    def seen(self) -> int:
        """What the scheduler takes for free."""
        return self.status - sum(self.running.values())

    def start_plugin(self) -> None:
        """Start the plugin anew: it knows what is in its file, and what the kubelet says."""
        guard = FitGuard(self.fit.policy, several=self.fit.several, clock=lambda: self.now)
        alignment = Alignment(clock=lambda: self.now)
        self.devices = Devices(self.pool, resource=NAME, guard=guard, alignment=alignment)
        checkpoint = Checkpoint(
            vgpus_per_gpu=self.fit.vgpus_per_gpu,
            state_dir=self.directory,
            kubelet_dir=self.directory,
            boot_id=self.boot_id,
        )
        holdings = Holdings(self._tenants, kubelet=Path("/nowhere"), checkpoint=checkpoint, clock=lambda: self.now)
        self.held = HeldVgpus(holdings)
        self.held.refresh()
        self.now += 31  # by then a plugin believes the kubelet what is free
        self.held.refresh()
        self.held.follow(self.devices, are_divided=True)
        resource = Resource(
            name=NAME,
            devices=self.devices,
            sharing=TimeSlicing(),
            allocation_policy=self.fit.policy,
            held=self.held,
        )
        service = DevicePluginService(resource, on_end=lambda _: None)
        service.close()  # nobody waits here
        self.plugin = ServiceAsPlugin(service)
        self.kubelet = Heard(self.devices)
        self.devices._watches.add(self.kubelet)
        self.tell()

    def send(self, size: int, *, expects: Callable[[str], object] = lambda _: None) -> bool:
        """Send a pod that the scheduler believes to fit; False where it fails."""
        assert size <= self.seen
        self.made += 1
        name = f"default/pod-{self.made}"
        try:
            received = self.manager.allocate(
                Request(pod=name, container="main", resource=NAME, count=size), self.plugin
            )
        except UnexpectedAdmissionError as error:
            self.manager.free(name)
            expects(str(error))
            return False
        finally:
            self.tell()
        self.running[name] = size
        self.on[name] = tuple(received.environment["NVIDIA_VISIBLE_DEVICES"].split(","))
        assert min(self.free) >= 0, "a GPU is given away beyond its whole"
        return True

    def end(self, pod: str) -> None:
        """End a pod: the kubelet and the scheduler know it at once."""
        del self.running[pod], self.on[pod]
        self.manager.free(pod)

    def look(self, *, after: float = 1.0) -> None:
        """Let the plugin ask who holds what, so much later."""
        self.now += after
        self.held.refresh()
        self.tell()

    def tick(self) -> None:
        """Send the node's status."""
        self.status = sum(device.healthy for device in self.manager.devices(NAME))

    def tell(self) -> None:
        """Have the kubelet hear of the devices."""
        state = self.devices._devices
        known = [KnownDevice(id=one.id, healthy=one.healthy, numa_nodes=frozenset()) for one in state]
        self.manager.update(NAME, known)

    def check(self) -> None:
        """See that no vGPU that somebody holds is hidden."""
        unhealthy = {pod for pod, gpus in self.on.items() if any(map(self.devices.fault, gpus))}
        held = {text for text, (pod, _) in self.manager.holders(NAME).items() if pod not in unhealthy}
        hidden = held - self.devices.seen
        assert not hidden, f"held and hidden: {sorted(hidden)}"

    def _tenants(self) -> tuple[Tenant, ...]:
        return tuple(
            Tenant(
                namespace="default",
                pod=held.pod.partition("/")[2],
                container=held.container,
                vgpus=tuple(vgpu for text in held.device_ids if (vgpu := VGpuId.parse(text))),
            )
            for held in self.manager.holdings()
        )
