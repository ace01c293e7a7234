"""On which GPU a container goes that the kubelet allocates vGPUs to, and which of its vGPUs is on which of its GPUs."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from plugin.device_plugin.devices import Devices
from plugin.device_plugin.holder import Holder, parsed
from plugin.errors import AllocationError, NoRoomError
from plugin.gpus.gpu import Gpu, Pool
from plugin.shares.allocation import Allocation, allocate, check_ids
from plugin.shares.binding import bind
from plugin.shares.preference import AllocationPolicy


def place(
    ids: Sequence[str],
    devices: Devices,
    policy: AllocationPolicy,
    *,
    held: Mapping[str, Holder],
    left: Mapping[str, Holder],
) -> Allocation:
    """
    Choose the GPU for *ids* of *devices*, or whole ones, beside what is *held*.

    What init containers have *left*, and what the kubelet has for another container now, is as good as free.

    Raises:
        AllocationError: If they cannot be held to a share, or one is held as another resource, or a GPU is unhealthy.
        NoRoomError: If no GPU has room for so many.
    """
    check_ids(ids, devices.pool)
    _check_resource(ids, devices.resource, held)
    allocation = _bound(ids, devices, policy, left) if devices.binds_late else allocate(ids, devices.pool)
    if devices.only_one and len(allocation.gpus) > 1:
        raise _too_large(len(ids), devices.only_one)
    per_gpu = allocation.vgpus_per_gpu
    for gpu in allocation.gpus:
        # The kubelet may have chosen them before it heard of it: a container without limits is worse than none.
        if unhealthy := _unhealthy(gpu, devices):
            raise AllocationError(unhealthy)
        free = devices.free(gpu, vgpus_per_gpu=per_gpu, but={*ids, *left})
        if free < allocation.vgpus:
            raise NoRoomError(f"{gpu.uuid} must have {allocation.vgpus} of {per_gpu} vGPUs free, it has {free}")
    return allocation


def distributed(ids: Collection[str], allocation: Allocation) -> dict[str, str]:
    """Say by ID on which of a container's GPUs each of its vGPUs is: on the one that it names, where that can be."""
    named = {text: vgpu.gpu_uuid for text in ids if (vgpu := parsed(text))}
    if Counter(named.values()) == {gpu.uuid: allocation.vgpus for gpu in allocation.gpus}:
        return named
    return {text: allocation.gpus[number // allocation.vgpus].uuid for number, text in enumerate(sorted(ids))}


def is_askable(vgpus: int, vgpus_per_gpu: int) -> bool:
    """Whether a container can ask for so many: a part of one GPU, or whole ones; where the number is 0, for any."""
    return vgpus <= vgpus_per_gpu or not vgpus_per_gpu or vgpus % vgpus_per_gpu == 0


def can_be_had(vgpus: int, devices: Devices) -> bool:
    """Whether a container can have so many of *devices*, if nobody else holds any."""
    per_gpu = devices.pool.vgpus_per_gpu
    return is_askable(vgpus, per_gpu) and (not devices.only_one or vgpus <= per_gpu)


def _check_resource(ids: Sequence[str], resource: str, held: Mapping[str, Holder]) -> None:
    """See that no ID is held as another resource: it would stand for two things, and one of them would be forgotten."""
    for text in ids:
        if (one := held.get(text)) and one.resource not in ("", resource):
            raise AllocationError(f"{text} must be held as {resource} or by nobody, it is held as {one.resource}")


def _bound(ids: Sequence[str], devices: Devices, policy: AllocationPolicy, left: Mapping[str, Holder]) -> Allocation:
    """Choose the GPUs, where they have room those of what is *left* by init containers: it is of as many as it was."""
    pool, reused = devices.pool, [left[text] for text in ids if text in left]
    if not pool.gpus:
        raise AllocationError(
            f"{devices.resource} must have a GPU on this node, its last one is gone or allocated by DRA"
        )
    numbers = {holder.of for holder in reused} - {0}
    if len(numbers) == 1 and numbers != {pool.vgpus_per_gpu}:
        pool = replace(pool, vgpus_per_gpu=numbers.pop())
        if not is_askable(len(ids), pool.vgpus_per_gpu):
            raise AllocationError(
                f"the vGPUs of a pod must be of one number, its init container got some of {pool.vgpus_per_gpu}, and "
                f"{len(ids)} can only be of another: vgpusPerGpu has changed meanwhile, so create the pod anew"
            )
    theirs, several = frozenset(holder.gpu for holder in reused), not devices.only_one
    choices = devices.alignment.candidates(ids, pool)
    for candidates, included in _places(theirs, pool, choices):
        healthy = [gpu for gpu in candidates if not devices.fault(gpu.uuid)]
        but = {*ids, *left}
        room = {gpu.uuid: devices.free(gpu, vgpus_per_gpu=pool.vgpus_per_gpu, but=but) for gpu in healthy}
        if gpus := bind(len(ids), room=room, pool=pool, policy=policy, included=included, several=several):
            return Allocation(gpus=gpus, vgpus=len(ids) // len(gpus), vgpus_per_gpu=pool.vgpus_per_gpu)
    unhealthy = [_unhealthy(gpu, devices) for gpu in choices[-1]]
    if all(unhealthy):
        raise NoRoomError(unhealthy[0])
    if not can_be_had(len(ids), devices):
        raise _too_large(len(ids), devices.only_one or "several can only be whole")
    raise NoRoomError(f"{len(ids)} vGPUs must lie on one GPU{', or be whole GPUs' * several}")


def _too_large(size: int, why: str) -> NoRoomError:
    return NoRoomError(f"{size} vGPUs are more than a GPU of this node has, and {why}")


def _places(
    theirs: frozenset[str], pool: Pool, others: Sequence[tuple[Gpu, ...]]
) -> Iterator[tuple[tuple[Gpu, ...], frozenset[str]]]:
    """List where a container may go, the better ones first, and the GPUs that it must be on: at best *theirs*."""
    if kept := tuple(gpu for gpu in pool.gpus if gpu.uuid in theirs):
        yield kept, frozenset()
        yield from (((*kept, *some), theirs) for some in others)
    yield from ((some, frozenset()) for some in others)


def _unhealthy(gpu: Gpu, devices: Devices) -> str:
    """Say that a GPU is unhealthy, and why; empty if it is healthy."""
    fault = devices.fault(gpu.uuid)
    return f"{gpu.uuid} is unhealthy: {fault}: see `gpu-share plugin status` on this node" if fault else ""
