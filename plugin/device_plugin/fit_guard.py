"""
How many free vGPUs of a resource to hide now, so that the scheduler allocates none in vain.

Who hears when: the kubelet at once, the scheduler with the node's next status, up to ten seconds later. So more can be
shown at any time. But where less can be shown than before, because a container has ended on the wrong GPU, the
scheduler may send meanwhile what fits nowhere. The kubelet rejects it without a word to us if it is hidden already, and
a ReplicaSet makes the next pod in a tenth of a second. So the kubelet sees for a second longer what the scheduler sees,
and who comes then is rejected by us, as slowly as `rejection` says.
"""

from collections.abc import Callable, Mapping
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
        self._again: int | None = None

    def show_less(self) -> None:
        """Let the next decision be what may be shown, although the scheduler has yet to hear of it."""
        self._at_once = True

    def show_again(self, vgpus: int) -> None:
        """Let the next decision be to show so many, for a second."""
        self._again = vgpus
        self._less_at = self._clock() + _LESS_AFTER_SECONDS

    def shown(
        self, free: Mapping[str, int], *, seen: int, vgpus_per_gpu: int, aligned: bool, at_once: bool
    ) -> dict[str, int]:
        """
        Say how many of the *free* vGPUs of each healthy GPU, by UUID, to show now.

        Args:
            free: How many of each nobody holds.
            seen: Of how many vGPUs that nobody holds the kubelet was told that they are healthy.
            vgpus_per_gpu: That each GPU is divided into.
            aligned: Whether the kubelet decides on which NUMA node a container is.
            at_once: Whether less can be shown without waiting, since nobody has seen more.
        """
        fit = Fit(vgpus_per_gpu=vgpus_per_gpu, policy=self._policy, several=self._several, aligned=aligned)
        counts = tuple(free.values())
        total = self._total(fit.most_shown(counts), seen, at_once=at_once)
        return dict(zip(free, fit.shown(counts, total), strict=True))

    def _total(self, most: int, shown: int, *, at_once: bool) -> int:
        """Say how much is to be shown now: what may be, or as much as before until less is."""
        if self._again is not None:
            again, self._again = self._again, None
            return again
        at_once, self._at_once = at_once or self._at_once, False
        now_seconds = self._clock()
        if most < shown and not at_once:
            if self._less_at is None:
                self._less_at = now_seconds + _LESS_AFTER_SECONDS
            if now_seconds < self._less_at:
                return shown
        self._less_at = None
        return most
