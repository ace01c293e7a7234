"""
How many free vGPUs to hide from the scheduler, so that what it sends finds room on one GPU.

The scheduler sees one number of a node: the sum of the vGPUs that are shown and free. It may send requests of any size
up to that, one after the other, before it hears of another sum. Each is bound to the GPU with least room for it. So a
request fails when all GPUs are in use and more of the sum is left than is free on any one of them.

What that takes at least is shown. An empty GPU comes into use by a request that is larger than what is free on any in
use; so in the end an empty GPU of before and any other one have less than a whole GPU free together. Under that
condition the most can be left over that no request can use any more, which is all but the GPU with most; the rest can
be shown. Of 8 empty GPUs of 10 it is 52: with 5 and seven times 6, 5 are free on one GPU and 4 on the others.

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
    aligned: bool = False  # the kubelet decides on which NUMA node a container is

    def most_shown(self, free: Sequence[int]) -> int:
        """Say how many of the *free* vGPUs, of each GPU, may be shown in all."""
        per_gpu = self.vgpus_per_gpu
        begun, empty = [one for one in free if one < per_gpu], list(free).count(per_gpu)
        if not empty:
            return max(begun, default=0)
        if self.several:
            return empty * per_gpu + min(sum(begun), per_gpu - 1)
        if self.policy == "spread" or self.aligned:  # each request may take an empty GPU
            return min(per_gpu + empty - 1, sum(free))
        # With more than half of it left on one that was empty, the others only have less.
        return sum(free) - max(self._unusable(begun, empty, most) for most in range(per_gpu // 2 + 1))

    def shown(self, free: Sequence[int], total: int) -> tuple[int, ...]:
        """
        Distribute *total* over the *free* vGPUs of each GPU.

        On which GPU a vGPU is shown decides on which NUMA nodes a kubelet that aligns has how many: all of one empty
        GPU, for a request of any size, and then of those with most room.
        """
        shown = [0] * len(free)
        for position in self._order(free):
            shown[position] = min(free[position], total)
            total -= shown[position]
        return tuple(shown)

    def _unusable(self, begun: Sequence[int], empty: int, most: int) -> int:
        """Say what can be left on all GPUs but the one with most, if *most* is left on one that was empty."""
        beside = self.vgpus_per_gpu - 1 - most
        left = [most, *[min(most, beside)] * (empty - 1), *(min(one, beside) for one in begun)]
        return sum(left) - max(left)

    def _order(self, free: Sequence[int]) -> Iterator[int]:
        empty = [position for position, one in enumerate(free) if one == self.vgpus_per_gpu]
        begun = sorted((p for p, one in enumerate(free) if one < self.vgpus_per_gpu), key=lambda p: (-free[p], p))
        first = len(empty) if self.several else 1
        yield from (*empty[:first], *begun, *empty[first:])
