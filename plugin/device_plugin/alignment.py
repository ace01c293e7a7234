"""
Which NUMA nodes a container's GPU may be on, by what the kubelet offers for it.

Where its topology manager aligns a container, the kubelet offers vGPUs of some NUMA nodes alone, and the container's
CPUs are on these: its GPU must be, too. Where it does not align, the kubelet offers all it has, and whichever of its
vGPUs were shown to it, the GPU may be any.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable
from time import monotonic

from plugin.gpus.gpu import Gpu, Pool

_TAKEN_UP_SECONDS = 5.0  # by then the kubelet goes by what it was sent: mostly within a millisecond


class Alignment:
    """What the kubelet's offers for one resource have told so far. One thread at a time calls."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        """Begin with nothing; *clock* gives seconds."""
        self.is_seen: bool | None = None  # whether the kubelet aligns; None as long as it has not shown
        self._clock = clock
        self._shown_since: dict[str, float] = {}  # by ID: when it was sent as healthy, and has been since
        self._answered: frozenset[str] = frozenset()
        self._offered: frozenset[int | None] = frozenset()  # NUMA nodes of the last offer
        self._is_narrow = False  # the last offer: there are other NUMA nodes, and it left them out

    def listed(self, ids: Iterable[str]) -> None:
        """Take up that the kubelet is sent a list in which *ids* are healthy."""
        now_seconds = self._clock()
        self._shown_since = {text: self._shown_since.get(text, now_seconds) for text in ids}

    def offered(self, ids: Iterable[str], *, held: Collection[str], size: int, pool: Pool) -> None:
        """Take up that the kubelet has *ids* for a container that gets *size*, of all that are not *held*."""
        until_seconds = self._clock() - _TAKEN_UP_SECONDS
        shown = (text for text, since in self._shown_since.items() if since <= until_seconds and text not in held)
        counts = _by_numa_node(ids, pool)
        self._offered = frozenset(counts)
        self._is_narrow = self._offered < frozenset(_by_numa_node(shown, pool))
        if len(counts) > 1 and max(counts.values()) >= size:
            self.is_seen = False
        elif self._is_narrow:
            self.is_seen = True

    def answered(self, ids: Collection[str]) -> None:
        """Take up that these vGPUs of the last offer were preferred: the kubelet is going to allocate them."""
        self._answered = frozenset(ids)

    def candidates(self, ids: Collection[str], pool: Pool) -> list[tuple[Gpu, ...]]:
        """
        List the GPUs that a container with *ids* may be on, as far as NUMA nodes decide it.

        Where it has not been seen whether the kubelet aligns, or it had no others to offer, those of its nodes come
        first, and then all.
        """
        nodes = frozenset(_by_numa_node(ids, pool))
        is_answered = self._answered == frozenset(ids)
        if is_answered:
            nodes |= self._offered
        if not nodes or self.is_seen is False:  # without any, their IDs name GPUs that are not of the resource any more
            return [pool.gpus]
        near = tuple(gpu for gpu in pool.gpus if gpu.numa_node in nodes)
        is_chosen = self.is_seen and (self._is_narrow or not is_answered)
        return [near] if is_chosen else [near, pool.gpus]


def _by_numa_node(ids: Iterable[str], pool: Pool) -> Counter[int | None]:
    """Count vGPUs by the NUMA node of the GPU that each names; None where the machine does not say it."""
    return Counter(gpu.numa_node for text in ids if (gpu := pool.gpu(text)))
