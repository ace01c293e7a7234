"""
Which devices the scheduler must not allocate now: it takes for free what processes use that outlive their pod.

A counter of the GPU cannot say that: below what is allocated, the scheduler allocates nothing of the whole node. So
devices are marked. Those of one size that are not, and that no claim holds, fit together.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from plugin.dra.checkpoint import HeldBack, Prepared, gpus_of
from plugin.dra.devices import Device
from plugin.shares.offer import Outlived
from plugin.usage.pod_cgroups import HasProcesses

# After a deletion by force the kubelet kills containers within 2 seconds. To mark devices and take that back again is
# to write up to all slices of the node twice, and until the last is written the scheduler allocates nothing there. Who
# is sent meanwhile waits within the kubelet's call, as where nobody sees processes and all is over in 10 seconds.
_SETTLE_SECONDS = 3.0

OutlivedGpus = dict[str, Outlived]  # by UUID


def outlived_gpus(
    claims: Mapping[str, Prepared], held_back: Iterable[HeldBack], now_seconds: float, has_processes: HasProcesses
) -> OutlivedGpus:
    """
    Find the GPUs of which processes use something that have outlived their pod for some seconds.

    *claims* has by UID what is prepared, and *held_back* what still is.
    """
    gone = [one for one in held_back if one.uid not in claims]  # one that is prepared again has it once
    settled = (one for one in gone if one.since_seconds + _SETTLE_SECONDS <= now_seconds)
    outliving = gpus_of(one.prepared for one in settled if has_processes(one.prepared.pod_uid))
    if not outliving:
        return {}
    used, claimed = _parts(one.prepared for one in gone), _parts(claims.values())
    return {gpu: Outlived(used[gpu], 1 - used[gpu] - claimed[gpu]) for gpu in sorted(outliving)}


def _parts(held: Iterable[Prepared]) -> dict[str, Fraction]:
    """Add up what is held of each GPU."""
    parts: dict[str, Fraction] = defaultdict(Fraction)
    for device in (device for prepared in held for device in prepared.devices):
        for gpu in device.gpus:
            parts[gpu] += device.part
    return parts


def outlived(devices: Sequence[Device], gpus: OutlivedGpus, held: Collection[str]) -> tuple[Device, ...]:
    """
    Mark those *devices* that cannot be given to anybody now; *held* are those that claims hold, by name.

    Of each size as many stay unmarked as fit into what is left, so that of several pods at once those that do not
    fit go to another GPU. They are the first, for which the scheduler looks first.
    """
    return tuple(_marked(devices, {gpu: one.left for gpu, one in gpus.items()}, held) if gpus else devices)


def _marked(devices: Iterable[Device], left: Mapping[str, Fraction], held: Collection[str]) -> Iterator[Device]:
    taken: dict[tuple[str, Fraction], Fraction] = {}  # by GPU and part, by those that are unmarked
    for device in devices:
        gpus = [gpu.uuid for gpu in device.gpus if gpu.uuid in left]
        if not gpus or device.name in held or device.is_earlier:  # an earlier one is marked for good
            yield device
            continue
        together = {gpu: taken.get((gpu, device.part), Fraction(0)) + device.part for gpu in gpus}
        fits = all(part <= left[gpu] for gpu, part in together.items())
        if fits:
            taken |= {(gpu, device.part): part for gpu, part in together.items()}
        yield device if fits else replace(device, is_outlived=True)
