"""A node whose kubelet takes long: over its disk, and over its pods when it has started."""

from collections import deque
from pathlib import Path
from random import Random

from plugin.pod_resources.tenants import Tenant
from plugin.simulated.device_manager import Received, Request
from plugin.simulated.gpus import simulated_gpus
from tests.plugin.device_plugin.kubelet_file import Entry, entries, replace_checkpoint
from tests.plugin.device_plugin.live_walk import LiveNode
from tests.plugin.device_plugin.walk import NAME, ServiceAsPlugin


class SlowNode(LiveNode):
    """
    Each file of the kubelet's takes *fsync_seconds*, one after the other, and is of the moment at which it was begun.

    A kubelet that has started lists the pods that it has come to know: the first *known* of them.
    """

    def __init__(self, directory: Path, *, fsync_seconds: float = 0, seed: int = 1) -> None:
        self.fsync_seconds = fsync_seconds
        self.known = 1 << 20
        self._files: deque[tuple[float, list[Entry]]] = deque()
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
            replace_checkpoint(self.directory, self._files.popleft()[1])
        self._held.refresh()
        self._tell()

    def random_step(self) -> None:
        """Take one random step; no pod comes before a kubelet that has started knows those that it has."""
        is_starting = self.known < len(self._manager._pods)
        kind = self.random.choices(["look", "slow start", "known", "step"], [20, 1, 8 * is_starting, 60])[0]
        if kind == "slow start":
            self.restart_kubelet(known=self.random.randint(0, len(self._manager._pods)))
            self.steps[kind] += 1
        elif kind == "known":
            self.known = self.known + 1 if self.known + 1 < len(self._manager._pods) else 1 << 20
        elif kind == "step" and not is_starting:
            self.write()
            self.step()
            self.write()
        self._now_seconds += self.random.choice([0.1, 1, 20])
        self.look()
        self.check()

    def admit(self, pod: str, count: int, *, init: int = 0) -> tuple[Received, ...]:
        """Have the kubelet admit a pod; it takes up what it has been sent meanwhile."""
        plugin, name = ServiceAsPlugin(self._service), f"default/{pod}"
        given = []
        if init:
            request = Request(pod=name, container="init", resource=NAME, count=init, kind="init")
            given.append(self._manager.allocate(request, plugin))
        given.append(self._manager.allocate(Request(pod=name, container="main", resource=NAME, count=count), plugin))
        self.write()
        return tuple(given)

    def write(self) -> None:
        """Begin a file; nothing is written twice that waits."""
        ready = max([self._now_seconds, *(seconds for seconds, _ in self._files)]) + self.fsync_seconds
        self._files.append((ready, entries(self._manager)))

    def restart_kubelet(self, *, known: int) -> None:
        """Start the kubelet anew, by the last file that it has begun."""
        for _, content in self._files:
            replace_checkpoint(self.directory, content)
        self._files.clear()
        self.known = known
        self._restart_kubelet()
        self._tell()

    def _tell(self) -> None:
        super()._tell()
        if self.devices._devices is not self._sent and len(self._files) < 3:
            self._sent = self.devices._devices
            self.write()

    def _tenants(self) -> tuple[Tenant, ...]:
        known = [*self._manager._pods][: self.known]
        return tuple(one for one in super()._tenants() if f"{one.namespace}/{one.pod}" in known)
