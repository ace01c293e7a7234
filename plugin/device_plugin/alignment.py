"""
Which NUMA nodes a container's GPU may be on, by what the kubelet offers for it.

Where its topology manager aligns a container, the kubelet offers vGPUs of some NUMA nodes alone, and the container's
CPUs are on these: its GPU must be, too. Where it does not align, the kubelet offers all it has, and whichever of its
vGPUs were shown to it, the GPU may be any.
"""

from collections import Counter
from collections.abc import Collection, Iterable

from plugin.gpus.gpu import Gpu, Pool


class Alignment:
    """What the kubelet's offers for one resource have told so far. One thread at a time calls."""

    def __init__(self) -> None:
        self.is_seen: bool | None = None  # whether the kubelet aligns; None as long as it has not shown
        self._answered: frozenset[str] = frozenset()
        self._offered: frozenset[int | None] = frozenset()  # NUMA nodes of the last offer

    def offered(self, ids: Iterable[str], *, shown: Iterable[str], size: int, pool: Pool) -> None:
        """Take up that the kubelet has *ids* for a container that gets *size*, of those that are *shown* to it."""
        counts = _by_numa_node(ids, pool)
        self._offered = frozenset(counts)
        if len(counts) > 1 and max(counts.values()) >= size:
            self.is_seen = False
        elif self._offered < frozenset(_by_numa_node(shown, pool)):
            self.is_seen = True

    def answered(self, ids: Collection[str]) -> None:
        """Take up that these vGPUs of the last offer were preferred: the kubelet is going to allocate them."""
        self._answered = frozenset(ids)

    def candidates(self, ids: Collection[str], pool: Pool) -> list[tuple[Gpu, ...]]:
        """
        List the GPUs that a container with *ids* may be on, as far as NUMA nodes decide it.

        As long as it has not been seen whether the kubelet aligns, those of its nodes come first, and then all.
        """
        nodes = frozenset(_by_numa_node(ids, pool))
        if self._answered == frozenset(ids):
            nodes |= self._offered
        if not nodes:  # their IDs name GPUs that are not of the resource any more
            return [pool.gpus]
        near = tuple(gpu for gpu in pool.gpus if gpu.numa_node in nodes)
        return {True: [near], False: [pool.gpus], None: [near, pool.gpus]}[self.is_seen]


def _by_numa_node(ids: Iterable[str], pool: Pool) -> Counter[int | None]:
    """Count vGPUs by the NUMA node of the GPU that each names; None where the machine does not say it."""
    return Counter(gpu.numa_node for text in ids if (gpu := pool.gpu(text)))
