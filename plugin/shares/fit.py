"""
How many free vGPUs of each GPU to hide from the scheduler, so that what it sends finds room on one GPU.

The scheduler sees one number of a node: the sum of the vGPUs that are shown and free. It may send requests of any size
up to that, one after the other, before it hears of another sum. Which vGPUs make up the sum can change after each of
them, since the kubelet hears of that at once. So what is shown has two sides, the sum and where it lies.

Where it lies: all of one empty GPU, for a request of any size; and what is free of the GPU in use that has most, so
that a smaller request goes there and takes no empty one. The sum: a request fails when it finds no empty GPU any more
and more is left than fits on one. To take the last empty GPU but one, requests must each be larger than what is free on
any GPU in use. What that takes at least, and one GPU's worth for the last, is shown. Of 8 empty GPUs of 10 it is 51: 5
on the first, 6 on each of six, 10.

Where a container may hold several GPUs, all empty ones are shown, or it would never come: each request by itself finds
room, and only several of them within one moment may not.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from plugin.shares.preference import AllocationPolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """What may be shown of GPUs, by how they are allocated."""

    vgpus_per_gpu: int
    policy: AllocationPolicy
    several: bool  # a container may hold several whole GPUs

    def hidden(self, free: Sequence[int]) -> tuple[int, ...]:
        """Say how many of the *free* vGPUs of each GPU to hide: as few as can be."""
        shown = self.shown(free, self.most_shown(free))
        return tuple(all_of - one for all_of, one in zip(free, shown, strict=True))

    def most_shown(self, free: Sequence[int]) -> int:
        """Say how many of the *free* vGPUs, of each GPU, may be shown in all."""
        begun, empty = self._begun(free), list(free).count(self.vgpus_per_gpu)
        if not empty:
            return max(begun, default=0)
        if self.several:
            return empty * self.vgpus_per_gpu + min(sum(begun), self.vgpus_per_gpu - 1)
        if self.policy == "spread":  # each request may take an empty GPU
            return min(self.vgpus_per_gpu + empty - 1, sum(free))
        spare = self._spare(begun)
        if empty > 1:
            spare = min(self._taken(begun, empty - 1, left) for left in range(self.vgpus_per_gpu))
        return min(self.vgpus_per_gpu + spare, sum(free))

    def shown(self, free: Sequence[int], total: int) -> tuple[int, ...]:
        """Distribute *total* over the *free* vGPUs of each GPU, such that most requests find room."""
        shown = [0] * len(free)
        for position in self._order(free, total):
            shown[position] = min(free[position], total)
            total -= shown[position]
        return tuple(shown)

    def _begun(self, free: Sequence[int]) -> list[int]:
        """List what is free of GPUs in use, most first."""
        return sorted((one for one in free if 0 < one < self.vgpus_per_gpu), reverse=True)

    def _order(self, free: Sequence[int], total: int) -> Iterator[int]:
        empty = [position for position, one in enumerate(free) if one == self.vgpus_per_gpu]
        begun = sorted((p for p, one in enumerate(free) if one < self.vgpus_per_gpu), key=lambda p: (-free[p], p))
        first = len(empty) if self.several else 1
        if len(empty) == 1 and 0 < total - self.vgpus_per_gpu <= self._spare(self._begun(free)):
            begun = [*begun[1:2], *begun[:1], *begun[2:]]  # the GPU with room for all but one stays as it is
        yield from (*empty[:first], *begun, *empty[first:])

    def _spare(self, begun: Sequence[int]) -> int:
        """
        Say what may be shown beside the last empty GPU.

        A request for two or more that takes it leaves less than a GPU: room, if another one has all but one free.
        """
        has_room = begun[:1] == [self.vgpus_per_gpu - 1]
        return max([1, *begun[1:2]]) if has_room else 0

    def _taken(self, begun: Sequence[int], count: int, left: int) -> int:
        """Say what is taken at least until *count* empty GPUs are in use, if at most *left* is free of those before."""
        filled = sum(max(one - left, 0) for one in begun)
        spare = self._spare(begun) if left == self.vgpus_per_gpu - 1 else 0
        if count == 1:
            return filled + max(left + 1, 2) + spare  # a request for one leaves a GPU with all but one free
        first = max((self.vgpus_per_gpu + 1) // 2, 2, left + 1)
        return filled + first + (count - 1) * max(self.vgpus_per_gpu + 1 - first, first) + spare
