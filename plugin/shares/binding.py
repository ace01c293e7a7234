"""On which GPU a container goes: a pure choice by what is free of each, made when its vGPUs are allocated."""

from collections.abc import Collection, Mapping

from plugin.gpus.gpu import Gpu, Pool
from plugin.shares.grouping import best_group
from plugin.shares.preference import AllocationPolicy


def bind(  # noqa: PLR0913 - all that decides
    size: int,
    *,
    room: Mapping[str, int],
    pool: Pool,
    policy: AllocationPolicy,
    included: Collection[str] = (),
    several: bool = True,
) -> tuple[Gpu, ...]:
    """
    Choose the GPU that *size* vGPUs go on, or the GPUs that they make up whole.

    Args:
        size: vGPUs that the container gets.
        room: How many each GPU has free for it, by UUID; those that are left out are none for it.
        pool: The GPUs, and how many vGPUs each has.
        policy: Which comes first: the GPU with least room for it, or the one with most.
        included: GPUs that it must be on, by UUID: what it takes over is there.
        several: Whether it may be on several GPUs, all of them whole.

    Returns:
        The GPUs in inventory order; none where it fits on none.
    """
    count, rest = divmod(size, pool.vgpus_per_gpu)
    if not rest and count and (several or count == 1):
        return _whole(count, room=room, pool=pool, included=included)
    fitting = [gpu for gpu in pool.gpus if room.get(gpu.uuid, 0) >= size and {*included} <= {gpu.uuid}]
    sign = 1 if policy == "pack" else -1
    return (min(fitting, key=lambda gpu: sign * room[gpu.uuid]),) if fitting and size > 0 else ()


def _whole(count: int, *, room: Mapping[str, int], pool: Pool, included: Collection[str]) -> tuple[Gpu, ...]:
    empty = [position for position, gpu in enumerate(pool.gpus) if room.get(gpu.uuid) == pool.vgpus_per_gpu]
    fixed = [position for position in empty if pool.gpus[position].uuid in included]
    if not len(fixed) == len(included) <= count <= len(empty):
        return ()
    return tuple(pool.gpus[position] for position in best_group(pool.weights, empty, size=count, included=fixed))
