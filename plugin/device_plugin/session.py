"""
One session with a kubelet: a server on a socket of its own, from its start to the end of its stream.

Whatever ends a session (the kubelet restarts, our socket is removed, the stream ends), the next one
starts from nothing. So events that have one cause lead to one registration, and nothing that is left
of an old session can disturb the new one.
"""

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Event
from types import TracebackType
from typing import Self

import grpc

from plugin.device_plugin.service import MOST_STREAMS, DevicePluginService, Resource
from plugin.device_plugin.v1beta1 import api_pb2_grpc
from plugin.errors import SocketError
from plugin.sockets import identify, target

_THREADS = 2 * MOST_STREAMS  # each open ListAndWatch holds one
_STOP_GRACE_SECONDS = 0.5  # for calls under way; they take milliseconds
_OWNER_ONLY = 0o600


class Session:
    """
    Serves while it is open; use it in a `with` statement.

    Raises:
        SocketError: On entry, if the socket cannot be made.
    """

    def __init__(self, resource: Resource, socket: Path, *, wake: Event) -> None:
        self._socket = socket
        self._wake = wake
        self.over_because = ""  # empty while it is not
        self._service = DevicePluginService(resource, on_end=self._end)
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="grpc")
        self._server = grpc.server(self._threads)
        api_pb2_grpc.add_DevicePluginServicer_to_server(self._service, self._server)

    def __enter__(self) -> Self:
        # Bound under another name and moved: an old file is replaced at once, the socket is seen only
        # when it answers, and gRPC, which removes the name it bound, cannot remove a successor's socket.
        unseen = self._socket.with_suffix(".new")
        try:
            unseen.unlink(missing_ok=True)
            self._server.add_insecure_port(target(unseen))
            self._server.start()
            unseen.chmod(_OWNER_ONLY)
            self._identity = identify(unseen)
            unseen.replace(self._socket)
        except (OSError, RuntimeError) as error:
            self._close()
            unseen.unlink(missing_ok=True)
            raise SocketError(f"{self._socket}: cannot serve: {error}") from error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()
        if self.owns_socket:
            with suppress(FileNotFoundError):
                self._socket.unlink()

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

    def _close(self) -> None:
        self._service.close()
        self._server.stop(_STOP_GRACE_SECONDS).wait()
        self._threads.shutdown()
