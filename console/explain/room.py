"""Whether the GPUs of a node have room for a pod that waits, as far as the node says: each share, and all together."""

from collections.abc import Iterator, Sequence

from console.explain.subject import Subject
from console.fit import largest, needed, vgpus
from console.grant import Grant
from console.outlived import outlived_text
from console.seen import SeenNode
from policies.contract import DEVICE_PLUGIN, DRA, MILLI_PER_GPU, MPS, PARTITION
from policies.device_names import device_name
from policies.errors import ShareError
from policies.kind import Kind
from policies.node_state import Gpu, NodeState
from policies.peak import peak
from policies.pod import Slot
from policies.quantity import whole
from policies.share import Share, milli_text
from policies.sizes import read_size


def together(grant: Grant | None, containers: Sequence[Slot]) -> int | None:
    """Add up what a pod asks for as the scheduler does: vGPUs or GPUs, by DRA thousandths; None of partitions."""
    if grant is None or grant.strategy == PARTITION:
        return None
    by_dra = grant.allocation == DRA
    sizes = {
        (slot.group, slot.index): (_milli(one) if by_dra else one.vgpus) or 0
        for slot in containers
        if (one := grant.containers.get(slot.name)) is not None
    }
    # Of a kind that is no partition, who allocates it is all that counts.
    return peak(containers, sizes, Kind(MPS, "", MILLI_PER_GPU, allocation=DRA if by_dra else DEVICE_PLUGIN))


def of_gpus(node: SeenNode, subject: Subject) -> Iterator[str]:
    """Say what of its GPUs keeps a node from taking the pod, which waits for a share of ours; nothing if unseen."""
    grant = subject.pod.grant
    if node.state is None or node.state.waiting or not node.gpus:
        yield _without_gpus(node)
        return
    if node.trouble:
        yield node.trouble
    if grant is None:
        return
    yield from _not_seen_by_the_scheduler(node.state, grant)
    kind, offered = _offered(node, grant)
    if not offered:
        yield f"none of its GPUs is shared as {kind}"
    elif any(gpu.largest_free is None or gpu.free is None for gpu in offered):
        yield "it does not say what is free"
    else:
        most = max((needed(_milli(one), one.vgpus, offered[0]) for one in grant.containers.values()), default=0)
        if max(map(largest, offered)) < min(most, MILLI_PER_GPU):
            yield f"no GPU has {milli_text(most)} free: {', '.join(map(_told, offered))}"
        elif subject.together is not None:
            yield from _too_little(node, offered, subject.together)


def _not_seen_by_the_scheduler(state: NodeState, grant: Grant) -> Iterator[str]:
    if state.slices_not_published and grant.allocation == DRA:
        yield f"it does not publish its GPUs for the scheduler: {state.slices_not_published}"
    for one in state.not_registered:
        if one.resource == grant.resource:
            yield f"its kubelet does not know {one.resource}: {one.why}"


def _without_gpus(node: SeenNode) -> str:
    if node.state is None and node.silent is not None:
        return node.trouble
    why = (node.state.waiting or "none was found") if node.state else node.silence
    return f"it has no GPU to share: {why}"


def _offered(node: SeenNode, grant: Grant) -> tuple[str, list[Gpu]]:
    """Return what the pod asks for, for people, and the GPUs that are shared so."""
    if grant.allocation != DRA:
        return grant.resource or grant.strategy, [
            gpu for gpu in node.gpus if gpu.resource and gpu.resource == grant.resource
        ]
    sizes = (read_size(one.resource) for one in grant.containers.values())
    devices = {device_name(size.device) for size in sizes if size is not None}
    gpus = [gpu for gpu in node.gpus if gpu.allocation == DRA and gpu.device in ("", *devices)]
    return f"{' and '.join(sorted(devices))} by {DRA}", gpus


def _too_little(node: SeenNode, offered: Sequence[Gpu], needed: int) -> Iterator[str]:
    used = "".join(f"; GPU {gpu.index}: {told}" for gpu in offered if (told := outlived_text(gpu)))
    if not offered[0].resource:
        left = sum(gpu.milli(gpu.free or 0) for gpu in offered)
        if left < needed:
            yield f"its GPUs have {milli_text(left)} left in all, and the pod asks for {milli_text(needed)}{used}"
        return
    resource = offered[0].resource
    left = sum(vgpus(gpu, gpu.free or 0) for gpu in offered)
    has = whole(node.allocatable.get(resource, "0")) if node.allocatable else None
    if has is not None and all(gpu.advertised is not None for gpu in offered):
        held = sum(gpu.advertised or 0 for gpu in offered) - left
        left = max(0, min(left, has - held))  # what its kubelet does not know of, no scheduler does
    if left < needed:
        yield f"it has {left} {resource} left in all, and the pod asks for {needed}{used}"


def _milli(one: Grant.Container) -> int:
    size = read_size(one.resource)
    if size is not None:
        return size.milli
    try:
        return int(Share.parse(one.share))
    except ShareError:
        return 0


def _told(gpu: Gpu) -> str:
    if not gpu.healthy:
        return f"GPU {gpu.index} is unhealthy"
    hidden = f", {milli_text(gpu.milli(gpu.hidden))} hidden" if gpu.hidden else ""
    return f"GPU {gpu.index} has {milli_text(largest(gpu))}{hidden}{_outlived(gpu)}"


def _outlived(gpu: Gpu) -> str:
    return f", {told}" if (told := outlived_text(gpu)) else ""
