"""
Which vGPUs are held now, and by which container: what the kubelet says, and our own answers to Allocate.

Each knows what the other does not. An answer is known at once, and the kubelet's word is up to a second old. The
kubelet alone knows that a container has ended, and it leaves init containers out: their vGPUs are held although it
never names them. So what was allocated is held until the kubelet has named it and names it no more, or has it for
somebody else.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock
from time import monotonic

from plugin.pod_resources.tenants import Tenant
from plugin.sockets import SocketIdentity, identify

# A kubelet that starts lists the pods that it has come to know so far; the last one takes a few seconds, if the API
# server is there.
_SETTLE_SECONDS = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """Who holds a vGPU."""

    container: str | None  # namespace/pod/container; None as long as the kubelet does not name it
    since_seconds: float  # by the clock of the holdings: when it was allocated, or first seen


class Holdings:
    """
    What is held, by device ID; for any thread.

    *read* asks the kubelet and raises TenantsError where it does not say; *kubelet* is the socket that it answers on,
    by which another kubelet is known: one that has just started does not name all pods yet.
    """

    def __init__(
        self, read: Callable[[], tuple[Tenant, ...]], *, kubelet: Path, clock: Callable[[], float] = monotonic
    ) -> None:
        self._read = read
        self._socket = kubelet
        self._clock = clock
        self._lock = Lock()
        self._held: dict[str, Holder] = {}
        self._kubelet: SocketIdentity | None = None
        self._settled_seconds = 0.0
        self._known = False

    @property
    def known(self) -> bool:
        """Whether the kubelet has ever said who holds what."""
        return self._known

    def held(self) -> Mapping[str, Holder]:
        """Say who holds what, as far as it is known at this moment."""
        with self._lock:
            return dict(self._held)

    def refresh(self) -> None:
        """
        Ask the kubelet.

        Raises:
            TenantsError: If it does not say; what was known stays.
        """
        kubelet, asked_seconds = identify(self._socket), self._clock()
        tenants = self._read()
        named = {str(vgpu): tenant.name for tenant in tenants for vgpu in tenant.vgpus}
        with self._lock:
            if self._known and kubelet != self._kubelet:
                self._settled_seconds = asked_seconds + _SETTLE_SECONDS
            self._kubelet, self._known = kubelet, True
            kept = {text: one for text, one in self._held.items() if self._is_kept(one, asked_seconds)}
            seen = {text: self._named(text, container, asked_seconds) for text, container in named.items()}
            self._held = {**kept, **seen}

    def allocated(self, ids: Iterable[str]) -> None:
        """Note that a container gets *ids*: a new one, whoever had them before."""
        now_seconds = self._clock()
        with self._lock:
            self._held.update({text: Holder(container=None, since_seconds=now_seconds) for text in ids})

    def free(self, ids: Iterable[str]) -> None:
        """Note that the kubelet has *ids* for a new container: nobody holds them."""
        with self._lock:
            for text in ids:
                self._held.pop(text, None)

    def _is_kept(self, holder: Holder, asked_seconds: float) -> bool:
        """Whether a vGPU is held although the kubelet, asked then, does not name it."""
        return holder.container is None or asked_seconds < self._settled_seconds

    def _named(self, text: str, container: str, asked_seconds: float) -> Holder:
        holder = self._held.get(text)
        if holder is None or holder.container not in (None, container):
            return Holder(container=container, since_seconds=asked_seconds)
        return holder if holder.since_seconds > asked_seconds else replace(holder, container=container)
