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

from plugin.device_plugin.pace import Pace
from plugin.device_plugin.service import Resource
from plugin.device_plugin.session import Session
from plugin.device_plugin.standing import Standing
from plugin.device_plugin.v1beta1 import api_pb2, api_pb2_grpc
from plugin.errors import SocketError, ThreadsError
from plugin.health.state import NotRegistered
from plugin.lifecycle import started
from plugin.rpc import channel
from plugin.sockets import KUBELET_SOCKET, SocketIdentity, answers, identify, socket_path

_log = logging.getLogger(__name__)

_VERSION = "v1beta1"
_TIMEOUT_SECONDS = 15.0  # the kubelet dials us back meanwhile, for up to 10


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
_NOT_FOLLOWED = "the kubelet has registered it, and does not ask for its devices"
_AWAY = "see whether the kubelet runs on this node, and whether this is its directory"
_LOOK = "see the kubelet's log, and whether SELinux or AppArmor keeps it from connecting to the plugin's socket {}"


class ResourceServer:
    """
    Advertises one resource to the kubelet in *kubelet_dir*.

    Raises:
        SocketError: If the path of our socket in *kubelet_dir* is too long.
    """

    def __init__(self, resource: Resource, kubelet_dir: Path, *, clock: Callable[[], float] = monotonic) -> None:
        self._resource = resource
        self._kubelet = kubelet_dir / KUBELET_SOCKET
        self._socket = socket_path(kubelet_dir, resource.name)
        self._look = _LOOK.format(self._socket)
        self._pace = Pace()
        self._wake = Event()
        self._stopping = False
        self._said = ""
        self._standing = Standing(clock)
        self._has_warned = False

    @property
    def not_registered(self) -> NotRegistered | None:
        """Say why the kubelet has not known the resource for half a minute; None if it does. From any thread."""
        why = self._standing.lasting
        return NotRegistered(resource=self._resource.name, why=why) if why else None

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
                self._see(f"the plugin cannot serve: {error}")
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
                self._see(f"{cause}, again and again: {self._look}")
                return
            if known_to is None:
                known_to = self._register(session, kubelet)
            else:
                self._see("" if session.is_watched else f"{_NOT_FOLLOWED}: {self._look}")
            self._pause(_LOOK_EVERY_SECONDS)

    def _register(self, session: Session, kubelet: SocketIdentity | None) -> SocketIdentity | None:
        """Register if it is time to; the kubelet that knows us then, None if none does."""
        if kubelet is None:
            self._wait_for_kubelet(f"{self._kubelet} does not exist")
            return None
        if not self._pace.allows(kubelet):
            return None
        if not answers(self._kubelet):
            self._wait_for_kubelet(f"{self._kubelet} does not answer")
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
            self._see(f"the call to the kubelet failed: {rejection}: {self._look}")
            return None
        self._pace.registered_with(kubelet)
        self._say("registered with the kubelet", socket=str(self._socket))
        return kubelet

    def _wait_for_kubelet(self, reason: str) -> None:
        self._say("waiting for the kubelet", reason=reason)
        self._see(f"waiting for the kubelet: {reason}: {_AWAY}")

    def _see(self, why: str) -> None:
        """Take down why the kubelet does not know the resource, empty if it does; warn once that has lasted."""
        self._standing.see(why)
        lasting = self._standing.lasting
        if lasting and not self._has_warned and not self._stopping:
            fields = {"resource": self._resource.name, "reason": lasting}
            _log.warning("not registered for half a minute", extra=fields)
        self._has_warned = bool(lasting)

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
