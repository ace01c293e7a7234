"""
How the kubelet picks devices for a container: the device manager of Kubernetes 1.36, without its sockets.

It takes what the plugin prefers as a hint only, and fills up at random.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Literal, Protocol

ContainerKind = Literal["init", "sidecar", "app"]


class UnexpectedAdmissionError(Exception):
    """The pod is Failed for good, and this is the message that its owner reads."""


class PluginCallError(Exception):
    """A call to the plugin that failed, in the kubelet's words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What one container of a pod asks for."""

    pod: str  # namespace/name
    container: str
    resource: str
    count: int
    kind: ContainerKind = "app"
    numa_nodes: frozenset[int] | None = None  # the topology manager's hint; None if it has none


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceivedMount:
    """A mount that the plugin asked for."""

    host_path: str
    container_path: str
    read_only: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """What a container gets from the plugin."""

    device_ids: tuple[str, ...]
    environment: dict[str, str]
    mounts: tuple[ReceivedMount, ...]
    cdi_devices: tuple[str, ...] = ()  # fully qualified, for the container runtime
    answer: bytes = field(default=b"", compare=False)  # as it came, and as the kubelet keeps it


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownDevice:
    """A device as the plugin last described it."""

    id: str
    healthy: bool
    numa_nodes: frozenset[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """What a container holds of a resource."""

    pod: str  # namespace/name
    container: str
    resource: str
    device_ids: tuple[str, ...]


class Plugin(Protocol):
    """The calls that the device manager makes."""

    def preferred(self, *, available: Collection[str], must_include: Collection[str], size: int) -> Collection[str]:
        """Ask which devices to take; nothing, if the plugin does not want to be asked."""

    def allocate(self, device_ids: Sequence[str]) -> Received:
        """Ask what the container receives."""


@dataclass(slots=True)
class _Pod:
    received: dict[tuple[str, str], Received] = field(default_factory=dict)  # by container and resource
    init_containers: set[str] = field(default_factory=set)  # without sidecars
    reusable: dict[str, set[str]] = field(default_factory=dict)  # by resource, from finished init containers


class DeviceManager:
    """The devices of a node and who holds them. A container that starts again gets what it got before."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._devices: dict[str, dict[str, KnownDevice]] = {}  # by resource, by ID
        self._pods: dict[str, _Pod] = {}

    def update(self, resource: str, devices: Iterable[KnownDevice]) -> None:
        """Take over a plugin's list: what is not in it does not exist any more."""
        self._devices[resource] = {device.id: device for device in devices}

    def disconnect(self, resource: str) -> None:
        """Mark every device unhealthy: their plugin is gone. The capacity stays."""
        self.update(resource, [replace(device, healthy=False) for device in self.devices(resource)])

    def devices(self, resource: str) -> tuple[KnownDevice, ...]:
        """List the devices of *resource*, in the plugin's order."""
        return tuple(self._devices.get(resource, {}).values())

    def resources(self) -> tuple[str, ...]:
        """List what has ever been registered."""
        return tuple(self._devices)

    def holders(self, resource: str) -> dict[str, tuple[str, str]]:
        """Say which pod and container hold each device; of those that share one in turn, the last."""
        return {
            device_id: (name, container)
            for name, pod in self._pods.items()
            for (container, of), received in pod.received.items()
            if of == resource
            for device_id in received.device_ids
        }

    def answers(self) -> tuple[tuple[Holding, bytes], ...]:
        """List what each container has, init containers too, with the answer that it starts by."""
        return tuple(
            (Holding(pod=name, container=container, resource=resource, device_ids=one.device_ids), one.answer)
            for name, pod in self._pods.items()
            for (container, resource), one in pod.received.items()
        )

    def holdings(self) -> tuple[Holding, ...]:
        """List what each container holds, without init containers: they end before the others begin."""
        return tuple(
            Holding(pod=name, container=container, resource=resource, device_ids=received.device_ids)
            for name, pod in self._pods.items()
            for (container, resource), received in pod.received.items()
            if container not in pod.init_containers
        )

    def allocate(self, request: Request, plugin: Plugin | None) -> Received:
        """
        Admit one container; *plugin* is None while none is connected.

        Raises:
            UnexpectedAdmissionError: If there are too few devices or the plugin says no.
        """
        pod = self._pods.setdefault(request.pod, _Pod())
        key = (request.container, request.resource)
        if key in pod.received:
            return pod.received[key]
        reusable = pod.reusable.setdefault(request.resource, set())
        try:
            if plugin is None:
                raise PluginCallError(f"no plugin is connected for {request.resource}")  # noqa: TRY301 - one way out for every failed call
            chosen = self._choose(request, plugin, reusable)
            pod.received[key] = received = plugin.allocate(self._shuffled(chosen))
        except PluginCallError as error:
            raise UnexpectedAdmissionError(f"Allocate failed due to {error}, which is unexpected") from error
        if request.kind == "init":
            pod.init_containers.add(request.container)
            reusable |= chosen
        else:
            reusable -= chosen
        return received

    def free(self, pod: str) -> None:
        """Take back what a pod held, once it is gone."""
        self._pods.pop(pod, None)

    def _choose(self, request: Request, plugin: Plugin, reusable: Collection[str]) -> set[str]:
        draft = _Draft(request.count, self._random)
        if draft.take(reusable):
            return draft.taken
        free = {device.id for device in self.devices(request.resource) if device.healthy}
        free -= self.holders(request.resource).keys()
        if len(free) < draft.needed:
            raise PluginCallError(
                f"requested number of devices unavailable for {request.resource}. "
                f"Requested: {draft.needed}, Available: {len(free)}"
            )
        aligned, unaligned, no_affinity = self._by_affinity(request, free)
        if draft.needed < len(aligned):
            preferred = draft.ask(plugin, aligned, size=request.count) & aligned
            return draft.take_in_turn(preferred, aligned)
        if not draft.take(aligned):
            preferred = draft.ask(plugin, free, size=request.count) & free
            draft.take_in_turn(preferred, unaligned, no_affinity)
        return draft.taken

    def _by_affinity(self, request: Request, free: set[str]) -> tuple[set[str], set[str], set[str]]:
        if request.numa_nodes is None:
            return set(), set(), free
        nodes = {device.id: device.numa_nodes for device in self.devices(request.resource)}
        aligned = {device_id for device_id in free if nodes[device_id] & request.numa_nodes}
        no_affinity = {device_id for device_id in free if not nodes[device_id]}
        return aligned, free - aligned - no_affinity, no_affinity

    def _shuffled(self, ids: Iterable[str]) -> list[str]:
        return _shuffled(ids, self._random)


class _Draft:
    """The devices chosen so far for one container."""

    def __init__(self, needed: int, random: Random) -> None:
        self.needed = needed
        self.taken: set[str] = set()
        self._random = random

    def take(self, ids: Collection[str]) -> bool:
        """Take as many of *ids* as are still needed, at random; whether that was enough."""
        chosen = _shuffled(set(ids) - self.taken, self._random)[: self.needed]
        self.taken.update(chosen)
        self.needed -= len(chosen)
        return self.needed == 0

    def take_in_turn(self, *sets: Collection[str]) -> set[str]:
        """Take from each of *sets* until it is enough."""
        for ids in sets:
            self.take(ids)
        return self.taken

    def ask(self, plugin: Plugin, available: set[str], *, size: int) -> set[str]:
        """Let the plugin choose from *available* and what is taken already."""
        return set(plugin.preferred(available=available | self.taken, must_include=self.taken, size=size))


def _shuffled(ids: Iterable[str], random: Random) -> list[str]:
    ordered = sorted(ids)  # a set's order differs from run to run, a seed's must not
    random.shuffle(ordered)
    return ordered
