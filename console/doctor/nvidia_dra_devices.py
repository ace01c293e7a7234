"""What NVIDIA's DRA driver has of a node: GPUs and MIG instances, some of which are left to it."""

from collections.abc import Iterator, Sequence
from math import inf
from typing import Final, NamedTuple

from console.doctor.left_to_others import MOST_INSTANCES, Had, Left
from console.dra_objects import Device
from console.seen import SeenNode

NVIDIA_DRA_DRIVER: Final = "gpu.nvidia.com"  # https://github.com/NVIDIA/k8s-dra-driver-gpu
DRA_DEVICES: Final = f"devices of the DRA driver {NVIDIA_DRA_DRIVER}"
_AN_INSTANCE: Final = "mig"
_A_GPU_ONCE_MORE: Final = "vfio"


class _Told(NamedTuple):
    """What a device says of itself."""

    kind: str
    uuid: str
    gpu: str  # UUID of the GPU that it is, or is an instance of; empty if it does not say


def published(devices: Sequence[Device], node: SeenNode, left: Left) -> Iterator[Had]:
    """Count the devices: those of what is shared, and those that may be."""
    told = _each_once([_told(one) for one in devices])
    shared = {gpu.uuid for gpu in node.gpus}
    of_shared = shared | {one.gpu for one in told if one.uuid in shared and one.gpu}
    is_taken = [one.uuid in shared or one.gpu in of_shared for one in told]
    yield Had(what=DRA_DEVICES, amount=sum(is_taken), surely=0, perhaps=0)
    others = [one for one, taken in zip(told, is_taken, strict=True) if not taken and not left.names(one.gpu)]
    # A node that is silent names no GPU that it shares, nor is that of an instance named.
    are_named = bool(shared) and not any(gpu.is_instance for gpu in node.gpus)
    gpus = [one.gpu for one in others if _is_gpu(one) and not (one.gpu and are_named)]
    surely = left.gpus + (0 if all(gpus) else left.in_mig_mode)
    yield _counted(DRA_DEVICES, len(gpus), surely, more=left.perhaps_as_gpus - left.in_mig_mode)
    if left.shares_instances:
        instances = [one for one in others if one.kind == _AN_INSTANCE]
        of_gpus = {one.gpu for one in instances if one.gpu and left.is_told}
        if of_gpus:
            yield _counted(f"GPUs with MIG {DRA_DEVICES}", len({*of_gpus, *filter(None, gpus)}), left.gpus)
        # Of an instance that has a UUID it is known whether it is shared, where the node names some.
        unclear = sum(one.gpu not in of_gpus and not (one.uuid and shared) for one in instances)
        yield _uncounted(unclear, left)


def _each_once(told: list[_Told]) -> list[_Told]:
    """Leave out devices that are told of again: while a pool is updated, its slices can name one twice."""
    return [*{one for one in told if one.uuid}, *(one for one in told if not one.uuid)]


def _counted(what: str, amount: int, surely: float, *, more: float = 0) -> Had:
    return Had(what=what, amount=amount, surely=0 if surely == inf else surely, perhaps=surely + more)


def _uncounted(instances: int, left: Left) -> Had:
    """Count instances of which nobody knows whose they are: those that the driver can make may overlap."""
    perhaps = inf if left.perhaps_in_mig_mode else 0
    surely = left.in_mig_mode * MOST_INSTANCES
    return Had(what=f"MIG {DRA_DEVICES}", amount=instances, surely=surely, perhaps=perhaps)


def _is_gpu(told: _Told) -> bool:
    return told.kind not in (_AN_INSTANCE, _A_GPU_ONCE_MORE)


def _told(device: Device) -> _Told:
    kind, uuid = device.attribute("type"), device.attribute("uuid")
    return _Told(kind, uuid, device.attribute("parentUUID") or ("" if kind == _AN_INSTANCE else uuid))
