"""The most that a pod holds at any moment, which its policy limits."""

from collections.abc import Mapping, Sequence

from policies.contract import DRA, PARTITION
from policies.kind import Kind
from policies.pod import Slot


def peak(containers: Sequence[Slot], sizes: Mapping[tuple[str, int], int], kind: Kind) -> int:
    """Add up the *sizes* of containers, by group and index, as whoever allocates them does; in their unit."""
    if kind.strategy == PARTITION:
        return _of_each_resource(containers, sizes, kind)
    return _held_by_claim(containers, sizes) if kind.allocation == DRA else _at_once(containers, sizes)


def _of_each_resource(containers: Sequence[Slot], sizes: Mapping[tuple[str, int], int], kind: Kind) -> int:
    """Partitions of each size are a resource of their own, and a pod requests the most of each."""
    resources = {kind.asked(size)[0] for size in sizes.values()}
    return sum(
        _at_once(containers, {slot: size for slot, size in sizes.items() if kind.asked(size)[0] == resource})
        for resource in resources
    )


def _at_once(containers: Sequence[Slot], sizes: Mapping[tuple[str, int], int]) -> int:
    """Sidecars stay; other init containers run one after the other, before the rest."""
    staying = most = 0
    for slot in containers:
        size = sizes.get((slot.group, slot.index), 0)
        if slot.runs_on:
            staying += size
        most = max(most, staying + (0 if slot.runs_on else size))
    return most


def _held_by_claim(containers: Sequence[Slot], sizes: Mapping[tuple[str, int], int]) -> int:
    """
    By DRA a pod holds one claim from its start to its end, with a device for each container that stays.

    An init container uses the device of one of the same size that comes after it, or else all init containers of that
    size have one more together (kubernetes/kubernetes, extendeddynamicresources.go).
    """
    held = 0
    staying: set[int] = set()  # sizes of containers that stay, from the last one up to here
    extra: set[int] = set()
    for slot in reversed(containers):
        size = sizes.get((slot.group, slot.index), 0)
        if slot.runs_on:
            held += size
            staying.add(size)
        elif size not in staying:
            extra.add(size)
    return held + sum(extra)
