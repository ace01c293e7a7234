"""
What a node has for the scheduler: for each GPU and size as many devices as fit, and several whole GPUs as one.

The scheduler takes the first device that fits, in the order of the list. So the list goes from GPU to GPU, and one is
filled before the next is begun.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from hashlib import sha256
from itertools import combinations, islice

from plugin.dra.grids import Grid
from plugin.gpus.gpu import Gpu, weight
from plugin.shares.division import Division
from plugin.shares.strategy import SharedGpu
from policies.contract import MILLI_PER_GPU, MOST_GPUS_TOGETHER, MPS, SharingStrategy
from policies.sizes import Size, is_too_fine, size_of

_GONE = "NVML does not list it"
_LONGEST_NAME = 63  # of a device: a label of DNS
_MOST_GROUPS = 70  # of one number of GPUs: 4 of 8, in every combination


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """A share of one GPU, or several whole GPUs, that one container can have."""

    name: str  # a DNS label, unique on the node, the same after a restart
    size: Size
    gpus: tuple[Gpu, ...]
    part: Fraction  # that it takes of each of its GPUs: a size is rounded down to thousandths
    is_earlier: bool = False  # it would not be made by now: somebody holds it, or may have been allocated it
    is_void: bool = False  # nobody is given it any more: its GPU is shared in another way, or another device, by now
    is_outlived: bool = False  # nobody is given it now: processes of pods that are gone use what it would take
    missing: tuple[str, ...] = ()  # UUIDs of those of its GPUs that nobody lists any more

    @property
    def milli_of_each(self) -> int:
        """What it takes of each of its GPUs, in thousandths for people."""
        return min(self.size.milli, MILLI_PER_GPU)

    def fault(self, faults: Mapping[str, str]) -> str:
        """Say what is wrong with its GPUs, of which *faults* says it by UUID; empty if nothing is."""
        of_gpus = {gpu.uuid: faults[gpu.uuid] for gpu in self.gpus if gpu.uuid in faults}
        return "; ".join(f"{uuid}: {why}" for uuid, why in (of_gpus | dict.fromkeys(self.missing, _GONE)).items())


def devices_of(
    shared: Sequence[SharedGpu],
    *,
    division: Division,
    kept: Mapping[str, tuple[Size, Fraction, tuple[str, ...]]],
    earlier: Iterable[Grid] = (),
) -> tuple[Device, ...]:
    """
    List the devices of this node's GPUs and MIG instances; *division* says into how many vGPUs each is divided.

    *kept* has, by name, the size, the part of each GPU and the UUIDs of devices that containers hold: they stay
    what they are though the grid has changed, or what the GPU is called. Else the scheduler would take what they
    hold for free, or give it away by another class. One whose GPU is gone is of those that are left. What *earlier*
    grids had stays where nothing of now has its name, though it may be void: what is allocated of it would count
    for nothing, and for too much once the grid is back.
    """
    by_uuid = {one.gpu.uuid: one.gpu for one in sorted(shared, key=lambda one: one.gpu.index)}
    now = grids_of(shared, division)
    by_name = {device.name: device for device in _of_grids(now, by_uuid)}
    ways = {one.gpu.uuid: (one.strategy, division.device(one.gpu)) for one in shared}
    for device in _of_grids((*now, *(grid for grid in earlier if grid.gpu in by_uuid)), by_uuid):
        size = device.size
        is_void = any(ways[gpu.uuid] != (size.strategy, size.device) for gpu in device.gpus)
        by_name.setdefault(device.name, replace(device, is_earlier=True, is_void=is_void))
    for name, (size, part, uuids) in sorted(kept.items()):
        made = by_name.get(name)
        is_made = made is not None and not made.is_earlier and (made.size, made.part) == (size, part)
        known = tuple(by_uuid[uuid] for uuid in uuids if uuid in by_uuid)
        if not is_made and known:
            missing = tuple(uuid for uuid in uuids if uuid not in by_uuid)
            is_void = any(ways[gpu.uuid][0] != size.strategy for gpu in known)
            by_name[name] = Device(
                name=name, size=size, gpus=known, part=part, is_earlier=True, is_void=is_void, missing=missing
            )
    return tuple(by_name.values())


def grids_of(shared: Sequence[SharedGpu], division: Division) -> tuple[Grid, ...]:
    """
    Say how each GPU and MIG instance is divided, by its index.

    One that is too fine is not there: its GPU is not the scheduler's by `nodes`, and stays with it for what is held.
    """
    grids = (
        Grid(
            gpu=one.gpu.uuid,
            strategy=one.strategy,
            device=division.device(one.gpu),
            parts=division.parts(one.gpu, one.strategy),
        )
        for one in sorted(shared, key=lambda one: one.gpu.index)
    )
    return tuple(one for one in grids if not is_too_fine(one.parts))


def _of_grids(grids: Iterable[Grid], by_uuid: Mapping[str, Gpu]) -> Iterator[Device]:
    """Make the devices of each GPU, and then those of several that are shared in one way; *by_uuid* is in order."""
    together: dict[tuple[SharingStrategy, str], set[str]] = {}
    for grid in grids:
        gpu = by_uuid[grid.gpu]
        yield from _of_one(gpu, grid)
        if not gpu.instance:  # a program reaches one MIG instance
            together.setdefault((grid.strategy, grid.device), set()).add(gpu.uuid)
    for (strategy, of), uuids in together.items():
        yield from _of_several([gpu for uuid, gpu in by_uuid.items() if uuid in uuids], strategy, of)


def _of_one(gpu: Gpu, grid: Grid) -> Iterator[Device]:
    for units in range(1, grid.parts + 1):
        size = size_of(units, grid.parts, grid.strategy, grid.device)
        for number in range(grid.parts // units):
            name = f"{gpu.label}-{size.label}-{number}"
            yield Device(name=name, size=size, gpus=(gpu,), part=Fraction(units, grid.parts))


def _of_several(gpus: Sequence[Gpu], strategy: SharingStrategy, of: str) -> Iterator[Device]:
    most = 1 if strategy == MPS else min(len(gpus), MOST_GPUS_TOGETHER)  # a process reaches one GPU through MPS
    for count in range(2, most + 1):
        size = Size(strategy, MILLI_PER_GPU * count, of)
        for group in _groups(gpus, count):
            yield Device(name=_name_of_several(group, size), size=size, gpus=group, part=Fraction(1))


def _name_of_several(gpus: Sequence[Gpu], size: Size) -> str:
    of = ",".join(gpu.uuid for gpu in gpus)
    name = f"gpus-{sha256(of.encode()).hexdigest()[:16]}-{size.name}"
    if len(name) <= _LONGEST_NAME:
        return name
    return f"gpus-{sha256(f'{of},{size.device}'.encode()).hexdigest()[:16]}-{size.label}"


def _groups(gpus: Sequence[Gpu], count: int) -> Iterable[tuple[Gpu, ...]]:
    """
    List which GPUs go together: those next to the same CPUs, and first those that are connected best.

    Where no CPU is next to so many, any do. Where there are too many combinations, neighbours do.
    """
    near: dict[int | None, list[Gpu]] = {}
    for gpu in gpus:
        near.setdefault(gpu.numa_node, []).append(gpu)
    places = [one for one in near.values() if len(one) >= count] or [list(gpus)]
    found: list[tuple[Gpu, ...]] = []
    for place in places:
        some = list(islice(combinations(place, count), _MOST_GROUPS + 1))
        if len(some) > _MOST_GROUPS:
            some = [tuple(place[start : start + count]) for start in range(len(place) - count + 1)]
        found.extend(some)
    return sorted(found, key=_distance)


def _distance(group: Sequence[Gpu]) -> tuple[int, int]:
    connections = sum(weight(one, other) for one, other in combinations(group, 2))
    return -connections, len({gpu.pcie_root for gpu in group})
