"""Why a pod that waits fits on no node: each node with its reason."""

from collections.abc import Iterator

from console.explain.subject import Subject
from console.grant import Grant
from console.seen import SeenNode
from policies.contract import DRA, MILLI_PER_GPU
from policies.device_names import device_name
from policies.errors import ShareError
from policies.node_state import Gpu
from policies.share import Share, milli_text
from policies.sizes import read_size

_CORDONED = "node.kubernetes.io/unschedulable"
_KEEPS_OFF = ("NoSchedule", "NoExecute")


def placement(subject: Subject) -> Iterator[str]:
    """Say of each node why it does not take the pod; that it could, where nothing speaks against it."""
    if not subject.seen.nodes:
        yield "no node shares GPUs, or none can be seen"
    for node in subject.seen.nodes:
        found = [*_of_node(node, subject), *_of_gpus(node, subject.pod.grant)]
        yield f"{node.name}: {'; '.join(found) or 'it has room for it: wait for the scheduler, or look at its log'}"


def _of_node(node: SeenNode, subject: Subject) -> Iterator[str]:
    if node.ready is False:
        yield "it is not Ready"
    if node.unschedulable:
        yield "it is cordoned"
    for key, value in subject.selector.items():
        if node.labels and node.labels.get(key) != value:
            yield f"it lacks the label {key}={value}"
    for taint in node.taints:
        is_told = taint.key == _CORDONED
        if taint.effect in _KEEPS_OFF and not {"", taint.key} & subject.tolerates and not is_told:
            yield f"the pod does not tolerate its taint {taint.key}"


def _of_gpus(node: SeenNode, grant: Grant | None) -> Iterator[str]:
    if node.state is None or node.state.waiting or not node.gpus:
        why = (node.state.waiting or "none was found") if node.state else node.silence
        yield f"it has no GPU to share: {why}"
        return
    if grant is None:
        return
    sizes = [size for one in grant.containers.values() if (size := read_size(one.resource)) is not None]
    if grant.allocation == DRA:
        devices = {device_name(size.device) for size in sizes}
        offered = [gpu for gpu in node.gpus if gpu.allocation == DRA and gpu.device in ("", *devices)]
        kind = f"{' and '.join(sorted(devices))} by {DRA}"
    else:
        offered = [gpu for gpu in node.gpus if gpu.resource == grant.resource]
        kind = grant.resource or grant.strategy
    if not offered:
        yield f"none of its GPUs is shared as {kind}"
        return
    asked = (_milli(one.share) for one in grant.containers.values())
    needed = max((size.milli for size in sizes), default=max(asked, default=0))
    if any(_largest(gpu) is None for gpu in offered):
        yield "it does not say what is free"
    elif max(_largest(gpu) or 0 for gpu in offered) < min(needed, MILLI_PER_GPU):
        yield f"no GPU has {milli_text(needed)} free: {', '.join(map(_told, offered))}"


def _told(gpu: Gpu) -> str:
    if not gpu.healthy:
        return f"GPU {gpu.index} is unhealthy"
    hidden = f", {milli_text(gpu.milli(gpu.hidden))} hidden" if gpu.hidden else ""
    return f"GPU {gpu.index} has {milli_text(_largest(gpu) or 0)}{hidden}"


def _largest(gpu: Gpu) -> int | None:
    return None if gpu.largest_free is None else gpu.milli(gpu.largest_free)


def _milli(share: str) -> int:
    try:
        return int(Share.parse(share))
    except ShareError:
        return 0
