"""
Which free vGPUs of a resource to hide now, so that the scheduler allocates none in vain.

Who hears when: the kubelet at once, the scheduler with the node's next status, up to ten seconds later. So what is
hidden can change places at once, also between two pods that start one after the other, and more can be shown at any
time. But where less can be shown than before, because a container has ended on the wrong GPU, the scheduler may send
meanwhile what fits nowhere. The kubelet rejects it without a word to us if it is hidden already, and a ReplicaSet makes
the next pod in a tenth of a second. So the kubelet sees for a second longer what the scheduler sees, and who comes then
is rejected by us, as slowly as `rejection` says.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from time import monotonic

from plugin.shares.fit import Fit
from plugin.shares.preference import AllocationPolicy

_LESS_AFTER_SECONDS = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """What is free of one GPU that is healthy."""

    gpu_uuid: str
    free: int  # vGPUs that nobody holds
    hidden: int  # of them


class FitGuard:
    """Decides when what `Fit` says takes effect. One thread at a time calls."""

    def __init__(self, policy: AllocationPolicy, *, several: bool, clock: Callable[[], float] = monotonic) -> None:
        """Guard GPUs that are allocated by *policy*, and where a container may hold *several* whole ones."""
        self._policy: AllocationPolicy = policy
        self._several = several
        self._clock = clock
        self._less_at: float | None = None  # when less may be shown; None if it need not be
        self._at_once = False
        self._again: frozenset[str] | None = None

    def show_less(self) -> None:
        """Let the next decision be what may be shown, although the scheduler has yet to hear of it."""
        self._at_once = True

    def show_again(self, ids: Collection[str]) -> None:
        """Let the next decision be to show *ids*, for a second."""
        self._again = frozenset(ids)
        self._less_at = self._clock() + _LESS_AFTER_SECONDS

    def hidden(
        self, free: Mapping[str, Sequence[str]], *, seen: Collection[str], vgpus_per_gpu: int, at_once: bool
    ) -> frozenset[str]:
        """
        Say which of the *free* vGPUs of healthy GPUs, by UUID, to hide now.

        Args:
            free: Those that nobody holds.
            seen: Those that the kubelet was shown so far, held or not.
            vgpus_per_gpu: That each GPU is divided into.
            at_once: Whether less can be shown without waiting, since nobody has seen more.
        """
        if self._again is not None:
            again, self._again = self._again, None
            return frozenset(text for ids in free.values() for text in ids if text not in again)
        fit = Fit(vgpus_per_gpu=vgpus_per_gpu, policy=self._policy, several=self._several)
        counts = [len(ids) for ids in free.values()]
        shown = sum(text in seen for ids in free.values() for text in ids)
        total = self._total(fit.most_shown(counts), shown, at_once=at_once)
        hidden: list[str] = []
        for ids, count in zip(free.values(), fit.shown(counts, total), strict=True):
            if count < len(ids):
                # Those that are shown already stay so: what need not change does not.
                hidden += sorted(ids, key=lambda text: text not in seen)[count:]
        return frozenset(hidden)

    def _total(self, most: int, shown: int, *, at_once: bool) -> int:
        """Say how much is to be shown now: what may be, or as much as before until less is."""
        at_once, self._at_once = at_once or self._at_once, False
        now_seconds = self._clock()
        if most < shown and not at_once:
            if self._less_at is None:
                self._less_at = now_seconds + _LESS_AFTER_SECONDS
            if now_seconds < self._less_at:
                return shown
        self._less_at = None
        return most
