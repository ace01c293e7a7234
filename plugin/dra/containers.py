"""What a container gets for a device of its claim."""

from dataclasses import replace

from plugin.dra.checkpoint import HeldDevice
from plugin.dra.claims import Wanted
from plugin.dra.devices import Device
from plugin.shares import cdi
from plugin.shares.allocation import Allocation
from plugin.shares.division import Division
from plugin.shares.handover import HandoverSettings, common_nodes, nodes
from plugin.shares.limits import limits
from plugin.shares.strategy import led, sharing_of
from policies.cluster import Cluster
from policies.contract import NO_DEVICES, VISIBLE_DEVICES


def held_device(wanted: Wanted, *, division: Division, cluster: Cluster, handover: HandoverSettings) -> HeldDevice:
    """Say what a container gets; of NVIDIA's devices first, since ours are to hold where both set a variable."""
    device = wanted.device
    allocation = _allocation(device, division.parts(device.gpus[0], device.size.strategy))
    given = limits(allocation, led(sharing_of(device.size.strategy, cluster), handover.mps()))
    known = handover.nvidia.names if "cdi" in handover.ways else {}
    others = tuple(known[gpu.uuid] for gpu in device.gpus if gpu.uuid in known)
    if others and len(others) == len(device.gpus):
        given = replace(given, environment={**given.environment, VISIBLE_DEVICES: NO_DEVICES})
    else:
        others = ()
    return HeldDevice(
        request=wanted.request,
        name=device.name,
        strategy=device.size.strategy,
        milli=device.size.milli,
        of=allocation.vgpus_per_gpu,
        device=device.size.device,
        gpus=tuple(gpu.uuid for gpu in device.gpus),
        edits=cdi.edits(given, nodes(device.gpus, common_nodes()) if "devices" in handover.ways else ()),
        others=others,
    )


def _allocation(device: Device, parts: int) -> Allocation:
    """Say what a container holds, as the device plugin does; of an earlier grid in the parts of that one."""
    units = device.part * parts
    if units.denominator == 1:
        return Allocation(gpus=device.gpus, vgpus=int(units), vgpus_per_gpu=parts)
    return Allocation(gpus=device.gpus, vgpus=device.part.numerator, vgpus_per_gpu=device.part.denominator)
