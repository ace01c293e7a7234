"""How much of each GPU the largest of its containers holds: a ceiling below that would take from it what it has."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable
from fractions import Fraction

from plugin.gpus.gpu import Gpu, VGpuId
from plugin.pod_resources.tenants import Tenant
from plugin.shares.parts import part, part_of_size
from plugin.shares.parts_file import Checkpoint
from policies.cluster import Cluster
from policies.contract import MPS


def largest_held(
    gpus: Iterable[Gpu],
    tenants: Collection[Tenant],
    checkpoint: Checkpoint | None,
    cluster: Cluster,
    device_of: Callable[[Gpu], str],
) -> dict[str, Fraction] | None:
    """
    Say how much of each GPU its largest container holds, by UUID; None where that is not known.

    A vGPU that was allocated by an earlier number is that part of its GPU still. Of devices of DRA a container has one,
    also where several are named for it, with those of its pod's init containers. *checkpoint* has what the kubelet does
    not name, or is yet to name, too: it is counted with all that its pod has on the GPU.
    """
    unnamed: dict[str, Fraction] | None = {}
    if checkpoint is not None:
        unnamed = checkpoint.unnamed_parts(vgpu for one in tenants for vgpu in one.vgpus)
    if unnamed is None:
        return None
    known = checkpoint or Checkpoint(cluster.vgpus_per_gpu, {})
    largest: dict[str, Fraction] = defaultdict(Fraction, unnamed)
    for gpu in gpus:
        device = device_of(gpu)
        own, per_gpu = cluster.own_parts(device), cluster.parts(MPS, device)
        held = (
            _part_of_vgpus(tenant.vgpus_on(gpu.uuid), known, own)
            + max((part_of_size(milli, per_gpu) for milli in tenant.sizes_on(gpu.uuid)), default=Fraction(0))
            for tenant in tenants
        )
        largest[gpu.uuid] = max(largest[gpu.uuid], *held, Fraction(0))
    return largest


def _part_of_vgpus(vgpus: Iterable[VGpuId], known: Checkpoint, own: int | None) -> Fraction:
    """Add up vGPUs of one GPU; *own* is into how many it is divided by a rule for its model alone."""
    return part(own if own and vgpu not in known.held else known.number_of(vgpu) for vgpu in vgpus)
