"""
One session with a kubelet: a server on a socket of its own, from its start to the end of its stream.

Whatever ends a session (the kubelet restarts, our socket is removed, the stream ends), the next one
starts from nothing. So events that have one cause lead to one registration, and nothing that is left
of an old session can disturb the new one.
"""

from contextlib import ExitStack
from pathlib import Path
from threading import Event
from types import TracebackType
from typing import Self

import grpc

from plugin.device_plugin.service import MOST_STREAMS, DevicePluginService, Resource
from plugin.device_plugin.v1beta1 import api_pb2_grpc
from plugin.rpc import serving
from plugin.sockets import identify

_THREADS = 2 * MOST_STREAMS  # each open ListAndWatch holds one


class Session:
    """
    Serves while it is open; use it in a `with` statement.

    Raises:
        SocketError: On entry, if the socket cannot be made.
        ThreadsError: On entry, if the process has to end.
    """

    def __init__(self, resource: Resource, socket: Path, *, wake: Event) -> None:
        self._socket = socket
        self._wake = wake
        self.over_because = ""  # empty while it is not
        self._service = DevicePluginService(resource, on_end=self._end)
        self._open = ExitStack()

    def __enter__(self) -> Self:
        unseen = self._socket.with_suffix(".new")
        self._identity = self._open.enter_context(
            serving(self._socket, self._add, unseen=unseen, threads=_THREADS, name="grpc")
        )
        self._open.callback(self._service.close)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.close()

    @property
    def owns_socket(self) -> bool:
        """Whether the socket in the kubelet's directory is still the one that this session serves."""
        return identify(self._socket) == self._identity

    @property
    def is_watched(self) -> bool:
        """Whether a kubelet follows the devices."""
        return self._service.is_watched

    def _end(self, why: str) -> None:
        self.over_because = self.over_because or why
        self._wake.set()

    def _add(self, server: grpc.Server) -> None:
        api_pb2_grpc.add_DevicePluginServicer_to_server(self._service, server)
