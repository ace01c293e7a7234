"""A node whose kubelet takes long: over its disk, and over its pods when it has started."""

from collections import deque
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from random import Random

from plugin.errors import TenantsError
from plugin.pod_resources.tenants import Tenant
from plugin.simulated.device_manager import ContainerKind, Received, Request, UnexpectedAdmissionError, _Pod
from plugin.simulated.gpus import simulated_gpus
from tests.plugin.device_plugin.kubelet_file import FILE, Entry, entries, replace_checkpoint
from tests.plugin.device_plugin.live_walk import LiveNode, Running
from tests.plugin.device_plugin.walk import NAME, ServiceAsPlugin


class SlowNode(LiveNode):
    """
    Each file of the kubelet's takes *fsync_seconds*, one after the other, and is of the moment at which it was begun.

    A kubelet that has started lists the pods that it has come to know: the first *known* of them.
    """

    def __init__(self, directory: Path, *, fsync_seconds: float = 0, seed: int = 1) -> None:
        self.fsync_seconds = fsync_seconds
        self.known = 1 << 20
        self._files: deque[tuple[float, list[Entry], dict[str, _Pod]]] = deque()
        self._on_disk: dict[str, _Pod] = {}
        self.without: list[Tenant] = []  # containers that the kubelet lists without any vGPU
        self.is_silent = False  # whether the kubelet does not know the plugin's own pod yet
        self._sent: object = None
        super().__init__(gpus=simulated_gpus("2xL4"), random=Random(seed), directory=directory)  # noqa: S311
        self.restart_kubelet(known=self.known)
        self.after(100)

    def after(self, seconds: int) -> dict[str, int]:
        """Look each second, and give what is free."""
        for _ in range(seconds):
            self._now_seconds += 1
            self.look()
        return {gpu.uuid: self.devices.free(gpu, vgpus_per_gpu=self.number) for gpu in self.gpus}

    def look(self) -> None:
        """Have what is on the disk by now in place, and look."""
        while self._files and self._files[0][0] <= self._now_seconds:
            self._place()
        self._held.refresh()
        self._tell()

    def random_step(self) -> None:
        """Take one random step; no pod comes before a kubelet that has started knows those that it has."""
        is_starting = self.known < len(self._manager._pods)
        kinds = ["look", "slow start", "killed", "known", "step"]
        kind = self.random.choices(kinds, [20, 1, 2, 8 * is_starting, 60])[0]
        if kind == "slow start":
            self.restart_kubelet(known=self.random.randint(0, len(self._manager._pods)))
            self.steps[kind] += 1
        elif kind == "killed" and not is_starting:
            self.kill_kubelet()
        elif kind == "known":
            self.known = self.known + 1 if self.known + 1 < len(self._manager._pods) else 1 << 20
        elif kind == "step" and not is_starting:
            self.write()
            self.step()
            self.write()
        self._now_seconds += self.random.choice([0.1, 1, 20])
        self.look()
        self.check()

    def between_containers(self) -> None:
        """Have the kubelet write what the first container got, before it goes on."""
        super().between_containers()
        self.write()
        if self.random.random() < 0.1:
            self.after(int(3 * self.fsync_seconds))

    def admit(self, pod: str, count: int, *, init: int = 0, pause_seconds: int = 0) -> tuple[Received, ...]:
        """Have the kubelet admit a pod; it takes up what it has been sent meanwhile."""
        name = f"default/{pod}"
        given = self._admitted(name, [*filter(None, [init]), count], pause_seconds=pause_seconds)
        self._running[name] = Running(max(count, init), given)
        return given

    def write(self) -> None:
        """Begin a file; nothing is written twice that waits."""
        ready = max([self._now_seconds, *(seconds for seconds, *_ in self._files)]) + self.fsync_seconds
        self._files.append((ready, entries(self._manager), deepcopy(self._manager._pods)))

    def restart_kubelet(self, *, known: int) -> None:
        """Start the kubelet anew, by the last file that it has begun."""
        while self._files:
            self._place()
        self.known = known
        self._restart_kubelet()
        self._tell()

    def kill_kubelet(self) -> None:
        """Start it anew by the last file on its disk: the pods of which that lacks something have not started yet."""
        self._files.clear()
        self._manager._pods = deepcopy(self._on_disk)
        self._restart_kubelet()
        self._tell()
        for name in [*self._manager._pods]:
            if name not in self._running:
                self._manager.free(name)
        for name, pod in [*self._running.items()]:
            if (name, "main") in [(one.pod, one.container) for one in self._manager.holdings()]:
                continue
            try:
                given = self._admitted(name, [len(one.device_ids) for one in pod.received])
            except UnexpectedAdmissionError:
                self.end(name)
            else:
                self._running[name] = Running(pod.request, given)
                self.steps["admitted again"] += 1

    def lose_checkpoint(self) -> None:
        """Start the kubelet anew without its checkpoint: its containers run, and it does not know what they have."""
        self.without = [replace(one, vgpus=()) for one in self._tenants()]
        self._files.clear()
        self._manager._pods, self._on_disk = {}, {}
        (self.directory / FILE).unlink()
        self._restart_kubelet()
        self._tell()

    def _admitted(self, name: str, counts: list[int], *, pause_seconds: int = 0) -> tuple[Received, ...]:
        """Allocate to the init container of a pod, if it has one, and to the other."""
        plugin, given = ServiceAsPlugin(self._service), list[Received]()
        for count, container in zip(counts, ("init", "main")[-len(counts) :], strict=True):
            kind: ContainerKind = "init" if container == "init" else "app"
            request = Request(pod=name, container=container, resource=NAME, count=count, kind=kind)
            given.append(self._manager.allocate(request, plugin))
            self.write()
            if container == "init":
                self.after(pause_seconds)
        return tuple(given)

    def _place(self) -> None:
        _, content, self._on_disk = self._files.popleft()
        replace_checkpoint(self.directory, content)

    def _tell(self) -> None:
        super()._tell()
        if self.devices._devices is not self._sent and len(self._files) < 3:
            self._sent = self.devices._devices
            self.write()

    def _tenants(self) -> tuple[Tenant, ...]:
        if self.is_silent:
            raise TenantsError("the kubelet does not list this pod")
        known = [*self._manager._pods][: self.known]
        named = (one for one in super()._tenants() if f"{one.namespace}/{one.pod}" in known)
        return (*named, *self.without)
