"""
GPUs by DRA that have no device of their own, and a number of vGPUs that is not the cluster's.

Pods are granted sizes of the cluster's number, in thousandths, and these GPUs take those that they have too.
"""

from collections.abc import Collection, Iterator

from policies.cluster import Cluster
from policies.contract import MPS, WHOLE, GrantStrategy
from policies.share import milli_text
from policies.sizes import read_size, size_of


def own_grids(cluster: Cluster) -> Iterator[tuple[str, int, frozenset[int]]]:
    """Yield what to call these GPUs, their number of vGPUs, and their sizes in thousandths, for each entry of nodes."""
    for position, rule in enumerate(cluster.nodes):
        if rule.device is None and rule.vgpus_per_gpu is not None:
            yield f"nodes[{position}]", rule.vgpus_per_gpu, sizes_in_milli(rule.vgpus_per_gpu)


def sizes_in_milli(per_gpu: int) -> frozenset[int]:
    """List the sizes within one GPU."""
    return frozenset(size_of(units, per_gpu, MPS).milli for units in range(1, per_gpu + 1))


def never_granted(cluster: Cluster) -> Iterator[str]:
    """Yield a sentence for each entry of nodes with sizes that no pod is granted."""
    granted = sizes_in_milli(cluster.vgpus_per_gpu)
    for name, per_gpu, sizes in own_grids(cluster):
        if lost := sorted(sizes - granted):
            yield (
                f"{name} has a vgpusPerGpu of {per_gpu} and no device, and pods are granted sizes of the cluster's "
                f"{cluster.vgpus_per_gpu}: nobody gets {', '.join(map(milli_text, lost))} of these GPUs: add a device, "
                f"or make the cluster's a multiple of {per_gpu}"
            )


def not_taken_by(cluster: Cluster, strategy: GrantStrategy, resources: Collection[str]) -> tuple[str, ...]:
    """Say which GPUs do not have all sizes of a pod's *resources*; whole GPUs every one has."""
    grids = () if strategy == WHOLE else tuple(own_grids(cluster))
    if not grids:
        return ()
    sizes = [size for one in resources if (size := read_size(one)) is not None]
    if any(size.device for size in sizes):
        return ()
    wanted = {size.milli for size in sizes if size.gpus == 1}
    return tuple(f"{name} ({per_gpu} vGPUs)" for name, per_gpu, own in grids if not wanted <= own)
