"""
Registers one resource with the kubelet, and keeps it registered for as long as the process lives.

The kubelet never dials a plugin on its own account: after its restart, or after the end of a stream,
it waits to be called. When it starts, it removes every socket in its directory.
"""

import logging
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from threading import Event, Thread
from time import monotonic

import grpc

from plugin.device_plugin.service import Resource
from plugin.device_plugin.session import Session
from plugin.device_plugin.v1beta1 import api_pb2, api_pb2_grpc
from plugin.errors import SocketError, ThreadsError
from plugin.lifecycle import started
from plugin.rpc import channel
from plugin.sockets import KUBELET_SOCKET, SocketIdentity, answers, identify, socket_path

_log = logging.getLogger(__name__)

_VERSION = "v1beta1"
_TIMEOUT_SECONDS = 15.0  # the kubelet dials us back meanwhile, for up to 10
_FIRST_RETRY_SECONDS = 0.5
_LONGEST_RETRY_SECONDS = 5.0
_BETWEEN_REGISTRATIONS_SECONDS = 0.3  # should something end every stream as soon as it starts
# When a stream ends, the kubelet disconnects whoever is registered then (it looks us up by name), so
# it must have seen the end of the old stream before it hears of the new one.
_SETTLE_SECONDS = 0.2


class Pace:
    """When to call the kubelet: at once where it is new, ever slower where it rejects."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._kubelet: SocketIdentity | None = None
        self._not_before_seconds = 0.0
        self._retry_seconds = _FIRST_RETRY_SECONDS

    def allows(self, kubelet: SocketIdentity) -> bool:
        """Whether *kubelet* may be called now."""
        return kubelet != self._kubelet or self._clock() >= self._not_before_seconds

    def rejected_by(self, kubelet: SocketIdentity) -> None:
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
    Tell the kubelet that *endpoint*, in its own directory, serves *resource_name*.

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
    answered: Future[None] = Future()
    answered.add_done_callback(lambda _: wake.set())
    with channel(kubelet) as dialled:
        call = partial(api_pb2_grpc.RegistrationStub(dialled).Register, request, timeout=_TIMEOUT_SECONDS)
        # In a thread of our own: gRPC's cannot be closed any more, where there was none for it.
        caller = Thread(target=_call, args=[call, answered], name="register")
        try:
            started(caller)
        except ThreadsError as error:
            return str(error)
        while not answered.done() and not stopping():
            wake.wait()
            wake.clear()
    caller.join()
    failure = answered.exception()
    return _reason(failure) if failure else None


def _call(call: Callable[[], object], answered: Future[None]) -> None:
    try:
        call()
    except Exception as error:  # noqa: BLE001 - whatever it was, somebody waits for it
        answered.set_exception(error)
    else:
        answered.set_result(None)


def _reason(failure: BaseException) -> str:
    if not isinstance(failure, grpc.RpcError):
        return str(failure)
    details = " ".join((failure.details() or "").split())
    return f"{failure.code().name}: {details}" if details else failure.code().name


_LOOK_EVERY_SECONDS = 0.2  # two calls of stat: a new socket is seen well within a second
_SERVE_AGAIN_SECONDS = 0.25  # a kubelet that starts may remove our socket while we make it


class ResourceServer:
    """
    Advertises one resource to the kubelet in *kubelet_dir*.

    Raises:
        SocketError: If the path of our socket in *kubelet_dir* is too long.
    """

    def __init__(self, resource: Resource, kubelet_dir: Path) -> None:
        self._resource = resource
        self._kubelet = kubelet_dir / KUBELET_SOCKET
        self._socket = socket_path(kubelet_dir, resource.name)
        self._pace = Pace()
        self._wake = Event()
        self._stopping = False
        self._said = ""

    def run(self) -> None:
        """Serve and stay registered until `stop`; our socket is gone then."""
        while not self._stopping:
            try:
                with Session(self._resource, self._socket, wake=self._wake) as session:
                    self._follow(session)
                    ends_stream = session.is_watched
                if ends_stream:
                    self._pace.ended_stream()
            except SocketError as error:
                self._say("cannot serve, trying again", reason=str(error))
                self._pause(_SERVE_AGAIN_SECONDS)

    def stop(self) -> None:
        """Let `run` return, from any thread."""
        self._stopping = True
        self._wake.set()

    def _follow(self, session: Session) -> None:
        """Register once, and return when that registration is worth nothing any more."""
        known_to: SocketIdentity | None = None
        while not self._stopping:
            # The kubelet's socket first: it removes ours before it makes its own, so where its own is
            # a new one, ours is seen to be gone, and that is one event and not two.
            kubelet = identify(self._kubelet)
            cause = _cause(session, kubelet=kubelet, known_to=known_to)
            if cause:
                self._say("registering again", reason=cause)
                return
            if known_to is None:
                known_to = self._register(session, kubelet)
            self._pause(_LOOK_EVERY_SECONDS)

    def _register(self, session: Session, kubelet: SocketIdentity | None) -> SocketIdentity | None:
        """Register if it is time to; the kubelet that knows us then, None if none does."""
        if kubelet is None:
            self._say("waiting for the kubelet", reason=f"{self._kubelet} does not exist")
            return None
        if not self._pace.allows(kubelet):
            return None
        if not answers(self._kubelet):
            self._say("waiting for the kubelet", reason=f"{self._kubelet} does not answer")
            return None
        self._resource.held.notice_kubelet()  # before it hears of our devices, and writes what it has
        rejection = register(
            self._kubelet,
            endpoint=self._socket.name,
            resource_name=self._resource.name,
            wake=self._wake,
            stopping=lambda: self._stopping,
        )
        # A kubelet that answers too late may have registered us all the same, and then follows us.
        if rejection and not session.is_watched:
            self._pace.rejected_by(kubelet)
            self._say("not registered, trying again", reason=rejection)
            return None
        self._pace.registered_with(kubelet)
        self._say("registered with the kubelet", socket=str(self._socket))
        return kubelet

    def _pause(self, seconds: float) -> None:
        """Wait that long, or until there is something to look at."""
        self._wake.wait(seconds)
        self._wake.clear()

    def _say(self, message: str, **fields: str) -> None:
        """Log it, unless it is what was said last: a kubelet can be away for days."""
        said = f"{message} {fields}"
        if said != self._said and not self._stopping:
            self._said = said
            _log.info(message, extra={"resource": self._resource.name, **fields})


def _cause(session: Session, *, kubelet: SocketIdentity | None, known_to: SocketIdentity | None) -> str | None:
    """Say why the session is over; None if it is not."""
    if not session.owns_socket:
        return "our socket was removed or replaced"
    if session.over_because:
        return session.over_because
    if known_to and kubelet and kubelet != known_to:
        return "the kubelet made a new socket"
    return None
