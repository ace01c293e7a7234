"""
Which part of its GPU a vGPU is, while the number of vGPUs changes.

A vGPU that is held stays what it was when it was allocated: one of 10, though a GPU is divided into 20 by now. What is
left of the GPU is divided anew. All of it is exact, so what is held and what is free never add up to more than the GPU.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from fractions import Fraction

from policies.contract import MILLI_PER_GPU

# By index of a held vGPU: how many vGPUs its GPU was divided into when it was allocated.
HeldOf = Mapping[int, int]


def part(numbers: Iterable[int]) -> Fraction:
    """Add up which part of a GPU vGPUs are, each one of such a number."""
    return sum((Fraction(times, of) for of, times in Counter(numbers).items()), Fraction())


def part_of_size(milli: int, per_gpu: int) -> Fraction:
    """
    Say which part of a GPU that is divided into *per_gpu* a size by DRA is, in whole thousandths: 333 is a third.

    What an earlier number made was rounded down by less than a thousandth, so that is at most one more.
    """
    units = -(-milli * per_gpu // MILLI_PER_GPU)
    if MILLI_PER_GPU * units // per_gpu == milli:
        return Fraction(units, per_gpu)
    return min(Fraction(1), Fraction(milli + 1, MILLI_PER_GPU))


def free_vgpus(numbers: Iterable[int], *, vgpus_per_gpu: int) -> int:
    """Count the vGPUs that what is left of a GPU is divided into; what is less than one is nobody's."""
    times = Counter(numbers)
    if times.keys() <= {vgpus_per_gpu}:  # mostly: and counting is a tenth of the work
        return max(0, vgpus_per_gpu - times.total())
    return max(0, (1 - part(times.elements())) * vgpus_per_gpu // 1)


def advertised(held: HeldOf, *, vgpus_per_gpu: int, others: HeldOf | None = None) -> tuple[int, ...]:
    """
    Say which vGPUs of a GPU a resource has, by index: those *held* of it, and as many as are free.

    The scheduler subtracts what pods have asked for, one for each held vGPU, whatever part of the GPU that is. So it
    counts exactly those that are free. Where all are of one number these are always the same.

    Args:
        held: Those of the resource.
        vgpus_per_gpu: What is free is divided by this number.
        others: Held vGPUs of another resource, of a time before its name was changed.
    """
    others = others or {}
    free = free_vgpus((*held.values(), *others.values()), vgpus_per_gpu=vgpus_per_gpu)
    return tuple(sorted((*held, *_lowest(free, but={*held, *others}))))


def _lowest(count: int, *, but: Collection[int]) -> Iterator[int]:
    index = 0
    while count > 0:
        if index not in but:
            yield index
            count -= 1
        index += 1
