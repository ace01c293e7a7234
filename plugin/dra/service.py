"""The driver's gRPC services: messages in, values to the rules, messages out. No rule lives here."""

import logging
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from threading import Condition
from typing import Any, Protocol

import grpc

from plugin.dra.calls import Call
from plugin.dra.checkpoint import Prepared
from plugin.dra.specifications import device_id
from plugin.dra.v1 import api_pb2, api_pb2_grpc
from plugin.dra.v1alpha1 import api_pb2 as health_pb2
from plugin.dra.v1alpha1 import api_pb2_grpc as health_grpc
from plugin.errors import PluginError

_log = logging.getLogger(__name__)

_WAIT_SECONDS = 40.0  # of the kubelet's 45; after an error it asks again only 75 to 90 s later
_FOR_THE_ANSWER_SECONDS = 5.0
_UID = re.compile(r"[A-Za-z0-9-]{1,128}", re.ASCII)
_INTERNAL = "gpu-share failed on this node: see the plugin's log there"


class Claims(Protocol):
    """What can be done with a claim; raises PluginError or OSError with the reason."""

    def begin(self, is_awaited: Callable[[], bool]) -> AbstractContextManager[Call]: ...  # noqa: D102 - as DraDriver has them
    def look_again(self) -> None: ...  # noqa: D102 - likewise
    def prepare(  # noqa: D102 - likewise
        self, call: Call, *, uid: str, namespace: str, name: str, wait_seconds: float
    ) -> Prepared: ...
    def unprepare(self, *, uid: str, namespace: str, name: str) -> None: ...  # noqa: D102 - likewise


class DraService(api_pb2_grpc.DRAPluginServicer):
    """Prepares and unprepares claims; every claim that is asked for has an answer of its own."""

    def __init__(self, claims: Claims, *, pool: str) -> None:
        self._claims = claims
        self._pool = pool

    def NodePrepareResources(  # noqa: N802 - the protocol's name
        self, request: api_pb2.NodePrepareResourcesRequest, context: grpc.ServicerContext
    ) -> api_pb2.NodePrepareResourcesResponse:
        """Have the devices of a pod's claims ready, and say by which CDI device a container gets each."""
        left_seconds = context.time_remaining() or _WAIT_SECONDS + _FOR_THE_ANSWER_SECONDS
        wait_until = time.monotonic() + min(_WAIT_SECONDS, left_seconds - _FOR_THE_ANSWER_SECONDS)
        context.add_callback(self._claims.look_again)
        with self._claims.begin(context.is_active) as call:
            return api_pb2.NodePrepareResourcesResponse(
                claims={claim.uid: self._prepared(call, claim, wait_until) for claim in request.claims}
            )

    def NodeUnprepareResources(  # noqa: N802 - the protocol's name
        self,
        request: api_pb2.NodeUnprepareResourcesRequest,
        context: grpc.ServicerContext,  # noqa: ARG002 - the protocol's signature
    ) -> api_pb2.NodeUnprepareResourcesResponse:
        """Take back the devices of claims whose containers have ended."""
        return api_pb2.NodeUnprepareResourcesResponse(
            claims={claim.uid: self._unprepared(claim) for claim in request.claims}
        )

    def _prepared(self, call: Call, claim: api_pb2.Claim, wait_until: float) -> api_pb2.NodePrepareResourceResponse:
        def prepare() -> Prepared:
            wait_seconds = max(0.0, wait_until - time.monotonic())
            return self._claims.prepare(
                call, uid=claim.uid, namespace=claim.namespace, name=claim.name, wait_seconds=wait_seconds
            )

        prepared, error = _answered(claim, prepare)
        devices = [
            api_pb2.Device(
                request_names=[one.request],
                pool_name=self._pool,
                device_name=one.name,
                cdi_device_ids=[*one.others, device_id(claim.uid, one.request)],
            )
            for one in (prepared.devices if prepared is not None else ())
        ]
        return api_pb2.NodePrepareResourceResponse(devices=devices, error=error)

    def _unprepared(self, claim: api_pb2.Claim) -> api_pb2.NodeUnprepareResourceResponse:
        def unprepare() -> None:
            self._claims.unprepare(uid=claim.uid, namespace=claim.namespace, name=claim.name)

        _, error = _answered(claim, unprepare)
        return api_pb2.NodeUnprepareResourceResponse(error=error)


def _answered(claim: api_pb2.Claim, call: Callable[[], Any]) -> tuple[Any, str]:
    """Give the answer, or one sentence: what is said here is what a user reads at the pod."""
    fields = {"claim": f"{claim.namespace}/{claim.name}", "uid": claim.uid}
    if not _UID.fullmatch(claim.uid):
        return None, f"a claim's UID has letters, digits and dashes, got {claim.uid!a}"
    try:
        return call(), ""
    except (PluginError, OSError) as error:
        _log.warning("claim denied", extra={**fields, "reason": str(error)})
        return None, str(error)
    except Exception:  # noqa: BLE001 - a traceback must reach the log and nobody else
        _log.exception("a call failed inside the plugin", extra=fields)
        return None, _INTERNAL


def v1beta1_handler(service: DraService) -> grpc.GenericRpcHandler:
    """Serve the same under the name of v1beta1, whose messages are the same (kubelets 1.32 and 1.33)."""
    return grpc.method_handlers_generic_handler(
        "k8s.io.kubelet.pkg.apis.dra.v1beta1.DRAPlugin",
        {
            "NodePrepareResources": grpc.unary_unary_rpc_method_handler(
                service.NodePrepareResources,
                request_deserializer=api_pb2.NodePrepareResourcesRequest.FromString,
                response_serializer=api_pb2.NodePrepareResourcesResponse.SerializeToString,
            ),
            "NodeUnprepareResources": grpc.unary_unary_rpc_method_handler(
                service.NodeUnprepareResources,
                request_deserializer=api_pb2.NodeUnprepareResourcesRequest.FromString,
                response_serializer=api_pb2.NodeUnprepareResourcesResponse.SerializeToString,
            ),
        },
    )


_AGAIN_SECONDS = 20.0
_UNKNOWN_AFTER_SECONDS = 60  # without news


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceState:
    """The health of one device."""

    name: str
    why: str  # it is unhealthy; empty if it is healthy


class HealthService(health_grpc.DRAResourceHealthServicer):
    """Tells the kubelet the health of all devices, at once and whenever it changes, for the status of pods."""

    def __init__(self, *, pool: str) -> None:
        self._pool = pool
        self._changed = Condition()
        self._states: tuple[DeviceState, ...] = ()
        self._closed = False

    def set_states(self, states: Sequence[DeviceState]) -> None:
        """Take over the health of all devices."""
        with self._changed:
            if tuple(states) != self._states:
                self._states = tuple(states)
                self._changed.notify_all()

    def close(self) -> None:
        """End the streams."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def NodeWatchResources(  # noqa: N802 - the protocol's name
        self,
        request: health_pb2.NodeWatchResourcesRequest,  # noqa: ARG002 - the protocol's signature
        context: grpc.ServicerContext,
    ) -> Iterator[health_pb2.NodeWatchResourcesResponse]:
        """Send all devices, and again after each change, until either side ends it."""
        context.add_callback(self._wake)
        sent: tuple[DeviceState, ...] | None = None
        while context.is_active():
            with self._changed:
                self._changed.wait_for(
                    lambda: self._closed or not context.is_active() or self._states is not sent,  # noqa: B023 - called here
                    _AGAIN_SECONDS,
                )
                if self._closed:
                    return
                sent = self._states
            yield self._message(sent)

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def _message(self, states: Sequence[DeviceState]) -> health_pb2.NodeWatchResourcesResponse:
        now = int(time.time())
        return health_pb2.NodeWatchResourcesResponse(
            devices=[
                health_pb2.DeviceHealth(
                    device=health_pb2.DeviceIdentifier(pool_name=self._pool, device_name=state.name),
                    health=health_pb2.UNHEALTHY if state.why else health_pb2.HEALTHY,
                    last_updated_time=now,
                    health_check_timeout_seconds=_UNKNOWN_AFTER_SECONDS,
                    message=state.why[:1024],
                )
                for state in states
            ]
        )
