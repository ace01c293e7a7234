"""What a resource offers of each of its GPUs, beside what is held."""

from collections.abc import Iterator
from fractions import Fraction

from plugin.device_plugin.devices import Devices
from plugin.gpus.gpu import Gpu
from plugin.shares.offer import Offer, Outlived
from plugin.shares.parts import part
from policies.contract import DEVICE_PLUGIN, SharingStrategy


def offers(devices: Devices, *, strategy: SharingStrategy, device: str) -> Iterator[Offer]:
    """Say what is offered of each GPU now; from any thread."""
    for gpu in devices.pool.gpus:
        yield _offer(gpu, devices, strategy, device)


def _offer(gpu: Gpu, devices: Devices, strategy: SharingStrategy, device: str) -> Offer:
    per_gpu, held, left = devices.pool.vgpus_per_gpu, devices.held_on(gpu), devices.left(gpu)
    outlived = part(one.of or per_gpu for one in held.values() if one.outlives)
    return Offer(
        gpu=gpu,
        strategy=strategy,
        allocation=DEVICE_PLUGIN,
        resource=devices.resource,
        device=device,
        vgpus_per_gpu=per_gpu,
        left=left,
        advertised=devices.advertised(gpu),
        numbers={text: one.of or per_gpu for text, one in held.items()},
        outlived=Outlived(outlived, Fraction(left[0], per_gpu)) if outlived else None,
    )
