"""
Which vGPUs of each GPU are advertised: those that are held, and as many as are free.

The ID of a vGPU names a GPU, and the vGPU can be on another one: what counts is how many there are. So of each GPU as
many IDs are free as it has room for, as far as nobody holds them; the rest are those of its neighbours. Whole GPUs are
those that their IDs name: the rest are further IDs of the same GPU.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import count

from plugin.device_plugin.subscription import Device
from plugin.gpus.gpu import Gpu, Pool, VGpuId

Indexes = dict[str, set[int]]  # by UUID of the GPU that is named


class Labels:
    """The IDs of a resource: one never disappears, and its device is made anew only if it is another one."""

    def __init__(self) -> None:
        self._known: dict[str, frozenset[int]] = {}  # by UUID: indexes that ever were advertised
        self._made: dict[str, tuple[object, tuple[Device, ...]]] = {}  # by UUID: of what, and what came out

    def known(self, pool: Pool, listed: Mapping[str, Collection[int]]) -> dict[str, tuple[int, ...]]:
        """Say which indexes there are by now, by UUID in the ID, where these are not the usual ones of a GPU."""
        usual = frozenset(range(pool.vgpus_per_gpu))
        ours = {gpu.uuid: usual for gpu in pool.gpus}
        for uuid in {**ours, **listed}:
            self._known[uuid] = self._known.get(uuid, frozenset()).union(ours.get(uuid, ()), listed.get(uuid, ()))
        return {uuid: tuple(sorted(indexes)) for uuid, indexes in self._known.items() if indexes != ours.get(uuid)}

    def devices(self, pool: Pool, healthy: Mapping[str, Collection[int]]) -> list[tuple[Device, ...]]:
        """Make the devices that name each GPU."""
        named = [(gpu.uuid, gpu.numa_node, pool.indexes_of(gpu)) for gpu in pool.gpus]
        named += [(uuid, None, pool.indexes[uuid]) for uuid in pool.others]
        return [self._of_gpu(*one, healthy=frozenset(healthy.get(one[0], ()))) for one in named]

    def _of_gpu(
        self, uuid: str, numa_node: int | None, indexes: Sequence[int], *, healthy: frozenset[int]
    ) -> tuple[Device, ...]:
        state = (numa_node, indexes, healthy)
        made = self._made.get(uuid)
        if made is None or made[0] != state:
            devices = (
                Device(id=device_id(uuid, index), gpu_uuid=uuid, numa_node=numa_node, healthy=index in healthy)
                for index in indexes
            )
            made = self._made[uuid] = (state, tuple(devices))
        return made[1]


def free_labels(  # noqa: PLR0913 - what is held and wanted of a resource, and what the kubelet has
    wanted: Mapping[str, int],
    held: Mapping[str, Collection[int]],
    *,
    gpus: Sequence[Gpu],
    vgpus_per_gpu: int,
    seen: Collection[str],
    by_id: bool = False,
) -> Indexes:
    """
    Choose IDs that nobody holds.

    Args:
        wanted: How many, by UUID of the GPU that has room for them; GPUs that are left out have none.
        held: The indexes of those that are held, by UUID of the GPU that they name.
        gpus: All GPUs of the resource.
        vgpus_per_gpu: IDs that each GPU has, and more where they are not enough.
        seen: IDs that the kubelet takes for healthy: they stay so before others become it.
        by_id: Whether a vGPU is on the GPU that its ID names, so that no ID can stand for another GPU.
    """
    chosen: dict[str, list[int]] = {}
    left: dict[str, list[int]] = {}
    for gpu in gpus:
        number, own = wanted.get(gpu.uuid, 0), held.get(gpu.uuid, ())
        free = [index for index in range(vgpus_per_gpu) if index not in own]
        if 0 < number < len(free):
            free = _seen_first(gpu.uuid, free, seen)
        chosen[gpu.uuid], left[gpu.uuid] = free[:number], free[number:]
    for gpu in gpus:
        missing = wanted.get(gpu.uuid, 0) - len(chosen[gpu.uuid])
        if missing <= 0:
            continue
        neighbours = sorted(gpus, key=lambda one: (one.numa_node != gpu.numa_node, one.uuid not in wanted))
        for other in () if by_id else neighbours:
            taken, left[other.uuid] = left[other.uuid][:missing], left[other.uuid][missing:]
            chosen[other.uuid] += taken
            missing -= len(taken)
        further = _further(held.get(gpu.uuid, ()), vgpus_per_gpu)
        chosen[gpu.uuid] += [next(further) for _ in range(missing)]
    return {uuid: set(indexes) for uuid, indexes in chosen.items()}


def _seen_first(gpu_uuid: str, indexes: Sequence[int], seen: Collection[str]) -> list[int]:
    return sorted(indexes, key=lambda index: device_id(gpu_uuid, index) not in seen)


def _further(held: Collection[int], vgpus_per_gpu: int) -> Iterator[int]:
    return (index for index in count(vgpus_per_gpu) if index not in held)


@lru_cache(8192)  # the same IDs all day, and hundreds in each message
def device_id(gpu_uuid: str, index: int) -> str:
    """Write the ID of a vGPU."""
    return str(VGpuId(gpu_uuid, index))
