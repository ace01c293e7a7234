"""
Keeps one resource registered with the kubelet, for as long as the process lives.

The kubelet never dials a plugin on its own account: after its restart, or after the end of a stream,
it waits to be called. When it starts, it removes every socket in its folder.
"""

import logging
from pathlib import Path
from threading import Event

from plugin.device_plugin.registration_call import Pace, register
from plugin.device_plugin.service import Resource
from plugin.device_plugin.session import Session
from plugin.device_plugin.sockets import KUBELET_SOCKET, SocketIdentity, answers, identify, socket_path
from plugin.errors import SocketError

_log = logging.getLogger(__name__)

_LOOK_EVERY_SECONDS = 0.2  # two calls of stat: a new socket is seen well within a second
_SERVE_AGAIN_SECONDS = 0.25  # a kubelet that starts may remove our socket while we make it


class ResourceServer:
    """
    Offers one resource to the kubelet in *kubelet_dir*.

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
                self._say("starting anew", reason=cause)
                return
            if known_to is None:
                known_to = self._register(session, kubelet)
            self._pause(_LOOK_EVERY_SECONDS)

    def _register(self, session: Session, kubelet: SocketIdentity | None) -> SocketIdentity | None:
        """Register if it is time to; the kubelet that knows us then, None if none does."""
        if kubelet is None:
            self._say("waiting for the kubelet", reason=f"{self._kubelet} is not there")
            return None
        if not self._pace.allows(kubelet):
            return None
        if not answers(self._kubelet):
            self._say("waiting for the kubelet", reason=f"{self._kubelet} does not answer")
            return None
        refusal = register(
            self._kubelet,
            endpoint=self._socket.name,
            resource_name=self._resource.name,
            wake=self._wake,
            stopping=lambda: self._stopping,
        )
        # A kubelet that answers too late may have registered us all the same, and then follows us.
        if refusal and not session.is_watched:
            self._pace.refused_by(kubelet)
            self._say("not registered, trying again", reason=refusal)
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
    if session.stream_ended:
        return "the kubelet ended the stream"
    if known_to and kubelet and kubelet != known_to:
        return "the kubelet made a new socket"
    return None
