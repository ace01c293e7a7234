"""What is held back and still used, by one look for all calls that wait for it."""

from collections.abc import Callable
from math import inf

from plugin.dra.checkpoint import HeldBack
from plugin.usage.pod_cgroups import HasProcesses

LOOK_AGAIN_SECONDS = 0.25


class Lasting:
    """For whoever holds a lock. However many ask, nobody looks at the processes of a pod again within a moment."""

    def __init__(self, has_processes: HasProcesses, clock: Callable[[], float]) -> None:
        self._has_processes = has_processes
        self._clock = clock
        self._looked_seconds = -inf
        self.left: dict[str, bool | None] = {}  # by UID of the pod: whether processes are, as of the last look

    def of(self, held_back: tuple[HeldBack, ...]) -> tuple[HeldBack, ...]:
        """Say which of these are still used, as of a moment ago."""
        pods, now_seconds = {one.prepared.pod_uid for one in held_back}, self._clock()
        if now_seconds >= self._looked_seconds + LOOK_AGAIN_SECONDS or not pods <= self.left.keys():
            self.left = {uid: self._has_processes(uid) for uid in pods}
            self._looked_seconds = now_seconds
        return tuple(one for one in held_back if one.lasts(now_seconds, self.left.get))
