"""
A simulated kubelet: what a device plugin meets on a node of Kubernetes 1.36, over real sockets.

It dials back while a plugin registers, follows the list of devices, disconnects by resource name, removes every
socket in its directory when it starts, and picks devices as `simulated_manager` says.
"""

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from socket import AF_UNIX, socket
from threading import Condition, Thread
from types import TracebackType
from typing import Self

import grpc

from plugin.device_plugin.v1beta1 import api_pb2, api_pb2_grpc
from plugin.pod_resources.v1 import api_pb2_grpc as podresources_grpc
from plugin.simulated.device_manager import DeviceManager, Holding, KnownDevice, Received, Request
from plugin.simulated.plugin_client import PluginClient, known_device
from plugin.simulated.pod_resources import SimulatedPodResources
from plugin.sockets import KUBELET_SOCKET, target

_VERSION = "v1beta1"
_THREADS = 8
_RESOURCE_NAME = re.compile(
    r"(?!requests\.)(?P<domain>[a-z0-9]([-a-z0-9.]*[a-z0-9])?)/[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?", re.ASCII
)


class SimulatedKubelet(api_pb2_grpc.RegistrationServicer):
    """
    Serves in *directory* from `start` to `stop`, or in a `with` statement.

    Who holds which device outlives a restart, as the real kubelet's checkpoint does.
    """

    def __init__(self, directory: Path, *, random: Random | None = None, pod_resources: Path | None = None) -> None:
        """Register plugins in *directory*, and say on the socket *pod_resources* who holds what."""
        self.socket = directory / KUBELET_SOCKET
        self.registrations: list[str] = []  # the resource of each accepted one, in order
        self._directory = directory
        self._pod_resources = pod_resources
        self._manager = DeviceManager(random or Random())  # noqa: S311 - chance, not secrecy
        self._changed = Condition()  # guards the manager and the clients
        self._clients: dict[str, PluginClient] = {}
        self._followers: list[tuple[PluginClient, Thread]] = []
        self._server: grpc.Server | None = None
        self._threads: ThreadPoolExecutor | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Remove every socket in the directory, as the kubelet does, and listen."""
        for path in self._directory.iterdir():
            if path.is_socket():
                path.unlink(missing_ok=True)
        self._listen()

    def stop(self) -> None:
        """Go away: the streams end, the devices are unhealthy, the socket is gone."""
        if self._server and self._threads:
            self._server.stop(0).wait()
            self._threads.shutdown()
            self._server = self._threads = None
        while self._followers:
            client, follower = self._followers.pop()
            client.channel.close()
            follower.join()

    def crash(self) -> None:
        """Go away as `kill -9` does: the socket file stays, and nobody answers on it."""
        self.stop()
        with socket(AF_UNIX) as left_behind:
            left_behind.bind(str(self.socket))

    def restart(self) -> None:
        """Stop and start."""
        self.stop()
        self.start()

    def wait_for(self, resource: str, *, timeout_seconds: float = 30.0) -> int:
        """
        Wait until *resource* can be had.

        Returns:
            How many healthy devices it has.

        Raises:
            TimeoutError: If it has none in time.
        """
        return self.wait_until(lambda: self.allocatable(resource), timeout_seconds=timeout_seconds)

    def wait_until(self, condition: Callable[[], int], *, timeout_seconds: float = 30.0) -> int:
        """Wait until *condition* holds, looking whenever a plugin registers, sends or goes."""
        with self._changed:
            held = self._changed.wait_for(condition, timeout_seconds)
        if not held:
            raise TimeoutError(f"no such plugin within {timeout_seconds} s")
        return held

    def capacity(self, resource: str) -> int:
        """Count the devices of *resource*."""
        return len(self._manager.devices(resource))

    def allocatable(self, resource: str) -> int:
        """Count the healthy devices of *resource*."""
        return sum(device.healthy for device in self._manager.devices(resource))

    def devices(self, resource: str) -> tuple[KnownDevice, ...]:
        """List the devices of *resource*, in the plugin's order."""
        return self._manager.devices(resource)

    def holders(self, resource: str) -> dict[str, tuple[str, str]]:
        """Say which pod and container hold each device."""
        return self._manager.holders(resource)

    def answers(self) -> tuple[tuple[Holding, bytes], ...]:
        """List what each container has, init containers too, with the answer that it starts by."""
        return self._manager.answers()

    def allocate(self, request: Request) -> Received:
        """
        Admit one container; the containers of a pod in order, init containers first.

        Raises:
            UnexpectedAdmissionError: If the pod fails, with the message that its owner reads.
        """
        with self._changed:
            return self._manager.allocate(request, self._clients.get(request.resource))

    def free(self, pod: str) -> None:
        """Take back what a pod held, once it is gone."""
        with self._changed:
            self._manager.free(pod)

    def Register(  # noqa: N802 - the protocol's name
        self, request: api_pb2.RegisterRequest, context: grpc.ServicerContext
    ) -> api_pb2.Empty:
        """Check the request, dial the plugin back, and follow its devices."""
        if request.version != _VERSION:
            context.abort(grpc.StatusCode.UNKNOWN, f"version {request.version} is not supported, {_VERSION} is")
        name = _RESOURCE_NAME.fullmatch(request.resource_name)
        if name is None or name["domain"].endswith("kubernetes.io"):
            context.abort(grpc.StatusCode.UNKNOWN, f"the resource name {request.resource_name} is invalid")
        try:
            client = PluginClient.dial(request.resource_name, self._directory / request.endpoint)
        except (grpc.RpcError, grpc.FutureTimeoutError) as error:
            context.abort(grpc.StatusCode.UNKNOWN, f"cannot dial {request.endpoint} back: {type(error).__name__}")
        follower = Thread(target=self._follow, args=[client], name=f"follow {request.resource_name}")
        with self._changed:
            self._clients[client.resource] = client
            self._followers.append((client, follower))
            self.registrations.append(client.resource)
            self._changed.notify_all()
        follower.start()
        return api_pb2.Empty()

    def _listen(self) -> None:
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="simulated-kubelet")
        self._server = grpc.server(self._threads)
        api_pb2_grpc.add_RegistrationServicer_to_server(self, self._server)
        self._server.add_insecure_port(target(self.socket))
        if self._pod_resources:
            lister = SimulatedPodResources(self._holdings)
            podresources_grpc.add_PodResourcesListerServicer_to_server(lister, self._server)
            self._server.add_insecure_port(target(self._pod_resources))
        self._server.start()

    def _holdings(self) -> tuple[Holding, ...]:
        with self._changed:
            return self._manager.holdings()

    def _follow(self, client: PluginClient) -> None:
        try:
            for message in client.stub.ListAndWatch(api_pb2.Empty()):
                self._update(client, message)
        except grpc.RpcError:
            pass  # the end of the stream, whoever ended it
        self._disconnect(client.resource)
        client.channel.close()

    def _update(self, client: PluginClient, message: api_pb2.ListAndWatchResponse) -> None:
        with self._changed:
            if self._clients.get(client.resource) is client:
                self._manager.update(client.resource, map(known_device, message.devices))
            self._changed.notify_all()

    def _disconnect(self, resource: str) -> None:
        # The kubelet looks up whoever has the resource now: with two plugins at once, that is the wrong one.
        with self._changed:
            current = self._clients.pop(resource, None)
            if current:
                self._manager.disconnect(resource)
            self._changed.notify_all()
        if current:
            current.channel.close()
