"""The kubelet's word on who holds what, for those who ask it again and again."""

import logging
from collections.abc import Callable, Container, Sequence
from pathlib import Path
from threading import Lock
from time import monotonic

from plugin.errors import TenantsError
from plugin.gpus.gpu import VGpuId
from plugin.pod_resources.settling import Settling
from plugin.pod_resources.tenants import Tenant, read_tenants

_log = logging.getLogger(__name__)


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
        self._settling = Settling(socket)

    def read(self) -> tuple[Tenant, ...] | None:
        """Ask the kubelet; None if it does not say, and the log has the reason when that changes."""
        asked_seconds = self._clock()
        try:
            tenants = read_tenants(self._socket, self.resources(), own_pod=self._own_pod)
            self._check_settled(tenants, asked_seconds)
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

    def _check_settled(self, tenants: Sequence[Tenant], asked_seconds: float) -> None:
        """See that the kubelet has had time to name all of its pods, or raise TenantsError."""
        names = frozenset(hash(tenant.name) for tenant in tenants)
        earlier = frozenset(hash(tenant.name) for tenant in self._known or ())
        with self._lock:
            # Afterwards: whichever kubelet has answered, what is there by now counts as new if it is another.
            if kubelet := self._settling.another():
                self._settling.begin(kubelet, is_new=self._settling.kubelet is not None)
            self._settling.listed(
                names, asked_seconds, is_growing=lambda before: not earlier.isdisjoint(names - before)
            )
            if not self._settling.is_settled(asked_seconds):
                raise TenantsError(f"{self._socket}: the kubelet has just started: it may not know all of its pods yet")


def _as_named(vgpu: VGpuId) -> str:
    return vgpu.gpu_uuid
