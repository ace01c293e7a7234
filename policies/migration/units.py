"""
One number of vGPUs per GPU for nodes that had different numbers of replicas.

The scheduler counts one unit over the cluster, so `vgpusPerGpu` is one number. The least common multiple makes each
replica a whole number of vGPUs. Where that is more than there may be, 100, or as many as MPS has clients, the number is
taken that comes nearest.
"""

from collections.abc import Collection
from fractions import Fraction
from math import lcm
from typing import Final

import msgspec

from policies.contract import DEFAULT_VGPUS_PER_GPU, MILLI_PER_GPU
from policies.share import Share

MOST_VGPUS_PER_GPU: Final = 100


class Unit(msgspec.Struct, frozen=True):
    """What one replica becomes."""

    replicas: int  # of one GPU
    vgpus: int
    vgpus_per_gpu: int

    @property
    def is_exact(self) -> bool:
        """Whether as many pods as before share a GPU, each with as much of it."""
        return self.vgpus * self.replicas == self.vgpus_per_gpu

    @property
    def share(self) -> Share:
        """
        The share that is this many vGPUs: in whole thousandths, rounded down.

        Up to 100 vGPUs per GPU, a share of these thousandths still takes as many vGPUs, since it is rounded up to them.
        """
        return Share(MILLI_PER_GPU * self.vgpus // self.vgpus_per_gpu)

    @property
    def bound(self) -> Share:
        """The smallest maximum that admits this many vGPUs, and none more: in whole thousandths, rounded up."""
        return Share(-(-MILLI_PER_GPU * self.vgpus // self.vgpus_per_gpu))


def vgpus_per_gpu(replicas: Collection[int], most: int = MOST_VGPUS_PER_GPU) -> int:
    """Choose the number of vGPUs per GPU, up to *most*, for these numbers of replicas; without any, the default."""
    if not replicas:
        return DEFAULT_VGPUS_PER_GPU
    numbers = {one for one in replicas if one <= most}
    if max(replicas) > most:
        numbers.add(max(replicas))  # which loses most of those that have too many
    elif lcm(*numbers) <= most:
        return lcm(*numbers)
    return max(range(1, most + 1), key=lambda number: (min(_kept(number, one) for one in numbers), -number))


def unit(replicas: int, per_gpu: int) -> Unit:
    """Say what one of *replicas* of a GPU becomes: at least one vGPU, and as many as leave room for all of them."""
    return Unit(replicas, max(1, per_gpu // replicas), per_gpu)


def _kept(per_gpu: int, replicas: int) -> Fraction:
    """What is left of a replica's size; or of the pods on a GPU, where it has fewer vGPUs than replicas."""
    if replicas > per_gpu:
        return Fraction(per_gpu, replicas)
    return Fraction(per_gpu // replicas * replicas, per_gpu)
