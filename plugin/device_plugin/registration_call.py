"""The call that makes us known to the kubelet, and when to make it."""

from collections.abc import Callable
from pathlib import Path
from threading import Event
from time import monotonic

import grpc

from plugin.device_plugin.sockets import SocketIdentity, target
from plugin.device_plugin.v1beta1 import api_pb2, api_pb2_grpc

_VERSION = "v1beta1"
_TIMEOUT_SECONDS = 15.0  # the kubelet dials us back meanwhile, for up to 10
_CHANNEL_OPTIONS = [
    ("grpc.enable_http_proxy", 0),  # a proxy in the environment is not meant for this
    ("grpc.use_local_subchannel_pool", 1),  # nothing is left of an earlier call to a kubelet that is gone
]
_FIRST_RETRY_SECONDS = 0.5
_LONGEST_RETRY_SECONDS = 5.0
_BETWEEN_REGISTRATIONS_SECONDS = 0.3  # should something end every stream as soon as it starts
# When a stream ends, the kubelet disconnects whoever is registered then (it looks us up by name), so
# it must have seen the end of the old stream before it hears of the new one.
_SETTLE_SECONDS = 0.2


class Pace:
    """When to call the kubelet: at once where it is new, ever slower where it refuses."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._kubelet: SocketIdentity | None = None
        self._not_before_seconds = 0.0
        self._retry_seconds = _FIRST_RETRY_SECONDS

    def allows(self, kubelet: SocketIdentity) -> bool:
        """Whether *kubelet* may be called now."""
        return kubelet != self._kubelet or self._clock() >= self._not_before_seconds

    def refused_by(self, kubelet: SocketIdentity) -> None:
        """Leave *kubelet* alone for a while, for longer each time."""
        if kubelet != self._kubelet:
            self._retry_seconds = _FIRST_RETRY_SECONDS
        self._leave_alone(kubelet, seconds=self._retry_seconds)
        self._retry_seconds = min(2 * self._retry_seconds, _LONGEST_RETRY_SECONDS)

    def registered_with(self, kubelet: SocketIdentity) -> None:
        """Remember that *kubelet* knows us."""
        self._leave_alone(kubelet, seconds=_BETWEEN_REGISTRATIONS_SECONDS)
        self._retry_seconds = _FIRST_RETRY_SECONDS

    def ended_stream(self) -> None:
        """Give the kubelet time to see that we ended its stream."""
        self._not_before_seconds = max(self._not_before_seconds, self._clock() + _SETTLE_SECONDS)

    def _leave_alone(self, kubelet: SocketIdentity, *, seconds: float) -> None:
        self._kubelet = kubelet
        self._not_before_seconds = self._clock() + seconds


def register(
    kubelet: Path, *, endpoint: str, resource_name: str, wake: Event, stopping: Callable[[], bool]
) -> str | None:
    """
    Tell the kubelet that *endpoint*, in its own folder, serves *resource_name*.

    The kubelet calls back before it answers, so we must be serving. *wake* is set when there is
    something to look at; where *stopping* says so then, the call is given up.

    Returns:
        Why the kubelet does not know us; None if it does.
    """
    request = api_pb2.RegisterRequest(
        version=_VERSION,
        endpoint=endpoint,
        resource_name=resource_name,
        options=api_pb2.DevicePluginOptions(get_preferred_allocation_available=True),
    )
    with grpc.insecure_channel(target(kubelet), options=_CHANNEL_OPTIONS) as channel:
        call = api_pb2_grpc.RegistrationStub(channel).Register.future(request, timeout=_TIMEOUT_SECONDS)
        call.add_done_callback(lambda _: wake.set())
        while not call.done():
            wake.wait()
            wake.clear()
            if stopping():
                call.cancel()
        return None if call.code() is grpc.StatusCode.OK else _reason(call)


def _reason(call: grpc.Call) -> str:
    details = " ".join((call.details() or "").split())
    return f"{call.code().name}: {details}" if details else call.code().name
