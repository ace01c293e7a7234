"""The kubelet's word on who holds what, for those who ask it again and again."""

import logging
from collections.abc import Callable, Container, Sequence
from pathlib import Path
from threading import Lock
from time import monotonic

from plugin.errors import TenantsError
from plugin.gpus.gpu import VGpuId
from plugin.pod_resources.tenants import Tenant, read_tenants
from plugin.sockets import SocketIdentity, identify

_log = logging.getLogger(__name__)

# As in `plugin.device_plugin.holdings`: the last pod that a kubelet comes to know after its start takes a few seconds.
_SETTLE_SECONDS = 30.0


class Tenancy:
    """
    The containers that hold vGPUs of *resources*, which is asked at each look; for any thread.

    *own_pod* is the pod that asks. *bindings* is asked after the kubelet, and gives what says on which GPU a vGPU is.
    A kubelet that takes the place of another does not say who holds what until its list has had time to be whole.
    """

    def __init__(
        self,
        socket: Path,
        resources: Callable[[], Container[str]],
        *,
        own_pod: str = "",
        bindings: Callable[[], Callable[[VGpuId], str]] = lambda: _as_named,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._socket = socket
        self.resources = resources
        self._own_pod = own_pod
        self._bindings = bindings
        self._clock = clock
        self._failure = ""
        self._known: tuple[Tenant, ...] | None = None  # when the kubelet last said it
        self._lock = Lock()  # of what follows
        self._kubelet: SocketIdentity | None = None
        self._named: frozenset[str] = frozenset()
        self._settled_seconds = 0.0

    def read(self) -> tuple[Tenant, ...] | None:
        """Ask the kubelet; None if it does not say, and the log has the reason when that changes."""
        asked_seconds = self._clock()
        try:
            tenants = read_tenants(self._socket, self.resources(), own_pod=self._own_pod)
            # Afterwards: whichever kubelet has answered, what is there by now counts as new if it is another.
            self._check_settled(identify(self._socket), tenants, asked_seconds)
        except TenantsError as error:
            if str(error) != self._failure:
                _log.warning("tenants unknown", extra={"reason": str(error)})
            self._failure = str(error)
            return None
        self._failure = ""
        gpu_of = self._bindings()
        self._known = tuple(tenant.located(gpu_of) for tenant in tenants)
        return self._known

    def read_or_known(self) -> tuple[Tenant, ...] | None:
        """Ask the kubelet; what it said last, if it does not say now, and None if it has never said it."""
        tenants = self.read()
        return self._known if tenants is None else tenants

    def names_on(self, gpu_uuid: str) -> tuple[str, ...]:
        """Name who is on a GPU now, as namespace/pod/container; nobody if that is not known."""
        return tuple(one.name for one in self.read() or () if one.is_on(gpu_uuid))

    def _check_settled(self, kubelet: SocketIdentity | None, tenants: Sequence[Tenant], asked_seconds: float) -> None:
        """See that the kubelet has had time to name all of its pods, or raise TenantsError."""
        named = frozenset(tenant.name for tenant in tenants)
        with self._lock:
            is_another = self._kubelet not in (None, kubelet)
            earlier = frozenset(tenant.name for tenant in self._known or ())
            is_growing = asked_seconds < self._settled_seconds and not earlier.isdisjoint(named - self._named)
            if is_another or is_growing:
                self._settled_seconds = asked_seconds + _SETTLE_SECONDS
            self._kubelet, self._named = kubelet, named
            if asked_seconds < self._settled_seconds:
                raise TenantsError(f"{self._socket}: the kubelet has just started: it may not know all of its pods yet")


def _as_named(vgpu: VGpuId) -> str:
    return vgpu.gpu_uuid
