"""The servers that advertise a node's extended resources to its kubelet."""

from pathlib import Path

from plugin.device_plugin.registration import ResourceServer
from plugin.device_plugin.service import Resource
from plugin.health.state import NotRegistered
from plugin.lifecycle import Threads


class Servers:
    """The servers in *kubelet_dir*, a thread each: those added before `start` wait for it."""

    def __init__(self, kubelet_dir: Path, threads: Threads) -> None:
        self._kubelet_dir = kubelet_dir
        self._threads = threads
        self._waiting: list[ResourceServer] | None = []
        self._serving: list[ResourceServer] = []

    def add(self, resource: Resource) -> None:
        """
        Advertise one more resource to the kubelet.

        Raises:
            SocketError: If the path of its socket would be too long.
        """
        server = ResourceServer(resource, self._kubelet_dir)
        if self._waiting is None:
            self._serve(server)
        else:
            self._waiting.append(server)

    def start(self) -> None:
        """Serve, from now on all that is added at once."""
        waiting, self._waiting = self._waiting or [], None
        for server in waiting:
            self._serve(server)

    def not_registered(self) -> tuple[NotRegistered, ...]:
        """Say which resources the kubelet has not known for half a minute, and why; from any thread."""
        return tuple(one for server in tuple(self._serving) if (one := server.not_registered) is not None)

    def _serve(self, server: ResourceServer) -> None:
        self._threads.start("kubelet", server.run, stop=server.stop)
        self._serving.append(server)  # where there is a thread: the resource is made anew at the next try
