"""
The part of a simulated kubelet that a driver of DRA meets: it finds the driver by its socket, prepares and unprepares.

What a container receives is read from the CDI specifications, as a container runtime does when it starts one.
"""

import json
import time
from pathlib import Path
from threading import Thread
from types import TracebackType
from typing import Any, Self

import grpc

from plugin.dra.registration_v1 import api_pb2 as registration
from plugin.dra.registration_v1 import api_pb2_grpc as registration_grpc
from plugin.dra.v1 import api_pb2, api_pb2_grpc
from plugin.dra.v1alpha1 import api_pb2 as health_pb2
from plugin.dra.v1alpha1 import api_pb2_grpc as health_grpc
from plugin.simulated.device_manager import Received, ReceivedMount
from plugin.sockets import target

_VERSIONS = ("v1.DRAPlugin", "v1beta1.DRAPlugin")  # that this kubelet knows
_CALL_SECONDS = 45.0
_LOOK_SECONDS = 0.02


class PrepareError(Exception):
    """The pod stays ContainerCreating, and this is the message of its event."""


class SimulatedDraKubelet:
    """A kubelet that looks for drivers in *registrar_dir* and lets its containers have the CDI devices of *cdi_dir*."""

    def __init__(self, registrar_dir: Path, cdi_dir: Path) -> None:
        self._registrar_dir = registrar_dir
        self._cdi_dir = cdi_dir
        self._channel: grpc.Channel | None = None
        self.info: registration.PluginInfo | None = None
        self.health: list[dict[str, str]] = []  # each message of the stream: by device, why it is unhealthy

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._channel is not None:
            self._channel.close()

    def find(self, driver: str, *, timeout_seconds: float = 15.0) -> None:
        """
        Register a driver, as soon as its socket is there.

        Raises:
            TimeoutError: If it is not in time.
        """
        socket = self._registrar_dir / f"{driver}-reg.sock"
        deadline = time.monotonic() + timeout_seconds
        while not socket.is_socket():
            if time.monotonic() > deadline:
                raise TimeoutError(f"no {socket} within {timeout_seconds} s")
            time.sleep(_LOOK_SECONDS)
        with grpc.insecure_channel(target(socket)) as channel:
            stub = registration_grpc.RegistrationStub(channel)
            self.info = stub.GetInfo(registration.InfoRequest(), timeout=_CALL_SECONDS, wait_for_ready=True)
            version = next(one for one in self.info.supported_versions if one in _VERSIONS)
            stub.NotifyRegistrationStatus(registration.RegistrationStatus(plugin_registered=version == _VERSIONS[0]))
        self._channel = grpc.insecure_channel(
            target(Path(self.info.endpoint)), options=[("grpc.use_local_subchannel_pool", 1)]
        )
        Thread(target=self._follow, args=[self._channel], name="health", daemon=True).start()

    def prepare(self, claim: dict[str, Any]) -> dict[str, list[str]]:
        """
        Prepare a claim; by request, the CDI devices of the containers.

        Raises:
            PrepareError: If the driver cannot.
            grpc.RpcError: If it cannot be reached.
        """
        found = self.begin_to_prepare(claim).result().claims[claim["metadata"]["uid"]]
        if found.error:
            raise PrepareError(f"NodePrepareResources failed for ResourceClaim {_name(claim)}: {found.error}")
        return {name: list(one.cdi_device_ids) for one in found.devices for name in one.request_names}

    def begin_to_prepare(self, *claims: dict[str, Any]) -> "grpc.Future[api_pb2.NodePrepareResourcesResponse]":
        """Call the driver for claims of one pod; `cancel` gives the call up, as when the pod is deleted."""
        request = api_pb2.NodePrepareResourcesRequest(claims=[_claim(one) for one in claims])
        return self._stub().NodePrepareResources.future(request, timeout=_CALL_SECONDS)

    def unprepare(self, claim: dict[str, Any]) -> None:
        """
        Tell the driver that a claim's containers have ended.

        Raises:
            PrepareError: If the driver cannot take it back.
        """
        request = api_pb2.NodeUnprepareResourcesRequest(claims=[_claim(claim)])
        answer = self._stub().NodeUnprepareResources(request, timeout=_CALL_SECONDS)
        if error := answer.claims[claim["metadata"]["uid"]].error:
            raise PrepareError(error)

    def start_container(self, cdi_devices: list[str]) -> Received:
        """
        Give a container what its CDI devices say, as at each of its starts.

        Raises:
            PrepareError: If one is in no specification.
        """
        devices = {
            f"{content['kind']}={one['name']}": one["containerEdits"]
            for path in sorted(self._cdi_dir.glob("*.json"))
            for content in [json.loads(path.read_text())]
            for one in content["devices"]
        }
        if missing := [name for name in cdi_devices if name not in devices]:
            raise PrepareError(f"CDI device injection failed: unresolvable CDI devices {', '.join(missing)}")
        edits = [devices[name] for name in cdi_devices]
        return Received(
            device_ids=tuple(cdi_devices),
            environment=dict(text.split("=", 1) for one in edits for text in one.get("env", ())),
            mounts=tuple(
                ReceivedMount(host_path=mount["hostPath"], container_path=mount["containerPath"], read_only=False)
                for one in edits
                for mount in one.get("mounts", ())
            ),
        )

    def _stub(self) -> api_pb2_grpc.DRAPluginStub:
        assert self._channel is not None, "find the driver first"  # noqa: S101 - a mistake of whoever uses this
        return api_pb2_grpc.DRAPluginStub(self._channel)

    def _follow(self, channel: grpc.Channel) -> None:
        try:
            stub = health_grpc.DRAResourceHealthStub(channel)
            for message in stub.NodeWatchResources(health_pb2.NodeWatchResourcesRequest(), wait_for_ready=True):
                self.health.append({one.device.device_name: one.message for one in message.devices})
        except (grpc.RpcError, ValueError):
            pass  # the end of the stream, whoever ended it


def _claim(claim: dict[str, Any]) -> api_pb2.Claim:
    metadata = claim["metadata"]
    return api_pb2.Claim(namespace=metadata["namespace"], name=metadata["name"], uid=metadata["uid"])


def _name(claim: dict[str, Any]) -> str:
    return str(claim["metadata"]["name"])
