"""
The sockets of the driver, and how the kubelet finds them.

The kubelet watches a directory of registrations, and calls whoever has a socket there; after its own restart it does so
again. So nothing is to be registered: both sockets have to be there and answer, the driver's own before the other.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Event

import grpc

from plugin.dra.calls import MOST_WAITING
from plugin.dra.registration_v1 import api_pb2, api_pb2_grpc
from plugin.dra.service import DraService, HealthService, v1beta1_handler
from plugin.dra.v1 import api_pb2_grpc as dra_grpc
from plugin.dra.v1alpha1 import api_pb2_grpc as health_grpc
from plugin.errors import SocketError
from plugin.removal import end_if_removed
from plugin.rpc import serving
from plugin.sockets import SocketIdentity, check_length, identify
from policies.contract import DRIVER

_log = logging.getLogger(__name__)

_VERSIONS = ("v1.DRAPlugin", "v1beta1.DRAPlugin", "v1alpha1.DRAResourceHealth")  # the kubelet takes the first it knows
_THREADS = MOST_WAITING + 32  # a call that waits for a GPU holds one, and so does a stream of health
_REGISTRATION_THREADS = 4  # its calls take milliseconds
_LOOK_SECONDS = 1.0
_AGAIN_SECONDS = 1.0


class _Registration(api_pb2_grpc.RegistrationServicer):
    """Tells the kubelet where the driver is."""

    def __init__(self, endpoint: Path, *, on_registered: Callable[[str], None]) -> None:
        self._endpoint = endpoint
        self._on_registered = on_registered

    def GetInfo(  # noqa: N802 - the protocol's name
        self,
        request: api_pb2.InfoRequest,  # noqa: ARG002 - the protocol's signature
        context: grpc.ServicerContext,  # noqa: ARG002 - the protocol's signature
    ) -> api_pb2.PluginInfo:
        """Name the driver and its socket."""
        return api_pb2.PluginInfo(
            type="DRAPlugin", name=DRIVER, endpoint=str(self._endpoint), supported_versions=_VERSIONS
        )

    def NotifyRegistrationStatus(  # noqa: N802 - the protocol's name
        self,
        request: api_pb2.RegistrationStatus,
        context: grpc.ServicerContext,  # noqa: ARG002 - the protocol's signature
    ) -> api_pb2.RegistrationStatusResponse:
        """Take up whether the kubelet knows the driver now."""
        if request.plugin_registered:
            self._on_registered("")
            _log.info("registered with the kubelet", extra={"driver": DRIVER, "socket": str(self._endpoint)})
        else:
            self._on_registered(request.error or "it does not say why")
            _log.error("the kubelet does not register the driver", extra={"driver": DRIVER, "reason": request.error})
        return api_pb2.RegistrationStatusResponse()


class DraServer:
    """
    Serves the driver on `<driver>/dra.sock` in *plugins_dir*, and its registration in *registrar_dir*.

    *on_registered* is called whenever a kubelet knows the driver, with nothing, and with the reason where it does not,
    or cannot, since the sockets are not served.

    Raises:
        SocketError: If the path of a socket is too long.
    """

    def __init__(
        self,
        service: DraService,
        health: HealthService,
        *,
        plugins_dir: Path,
        registrar_dir: Path,
        on_registered: Callable[[str], None],
    ) -> None:
        self._service = service
        self._health = health
        self._socket = plugins_dir / DRIVER / "dra.sock"
        self._registrar = registrar_dir / f"{DRIVER}-reg.sock"
        self._on_registered = on_registered
        self._stopping = Event()
        self._said = ""  # why it cannot serve now
        for path in (self._socket, self._registrar):
            check_length(_unseen(path))

    def run(self) -> None:
        """
        Serve until `stop`; sockets that are removed are made anew.

        Raises:
            RemovedError: If a directory of theirs was removed on the node, behind its mount in this container.
        """
        while not self._stopping.is_set():
            try:
                with self._served() as sockets:
                    self._said = ""
                    while not self._stopping.is_set() and all(identify(path) == one for path, one in sockets.items()):
                        self._stopping.wait(_LOOK_SECONDS)
                if not self._stopping.is_set():
                    _log.warning("serving again", extra={"reason": "a socket of ours was removed or replaced"})
            except SocketError as error:
                self._fail(str(error))
                self._stopping.wait(_AGAIN_SECONDS)

    def stop(self) -> None:
        """Let `run` return, from any thread."""
        self._stopping.set()
        self._health.close()

    def _fail(self, why: str) -> None:
        end_if_removed(
            {"--kubelet-plugins-dir": self._socket.parent, "--kubelet-registrar-dir": self._registrar.parent}
        )
        if why != self._said:
            self._said = why
            self._on_registered(why)
            _log.warning("cannot serve, trying again", extra={"reason": why})

    @contextmanager
    def _served(self) -> Iterator[dict[Path, SocketIdentity | None]]:
        registration = _Registration(self._socket, on_registered=self._on_registered)

        def add_driver(server: grpc.Server) -> None:
            dra_grpc.add_DRAPluginServicer_to_server(self._service, server)
            health_grpc.add_DRAResourceHealthServicer_to_server(self._health, server)
            server.add_generic_rpc_handlers((v1beta1_handler(self._service),))

        def add_registration(server: grpc.Server) -> None:
            api_pb2_grpc.add_RegistrationServicer_to_server(registration, server)

        with ExitStack() as stack:
            sockets = {}
            for path, add, threads in (
                (self._socket, add_driver, _THREADS),
                (self._registrar, add_registration, _REGISTRATION_THREADS),
            ):
                sockets[path] = stack.enter_context(_serving(path, add, threads))
            yield sockets


def _unseen(path: Path) -> Path:
    """Where a socket is bound before it is moved to *path*: with a dot, which the kubelet overlooks."""
    return path.with_name(f".{path.name}")


@contextmanager
def _serving(path: Path, add: Callable[[grpc.Server], None], threads: int) -> Iterator[SocketIdentity | None]:
    try:
        path.parent.mkdir(mode=0o750, parents=True, exist_ok=True)
    except OSError as error:
        raise SocketError(f"{path}: cannot serve: {error}") from error
    with serving(path, add, unseen=_unseen(path), threads=threads, name="dra") as identity:
        yield identity
