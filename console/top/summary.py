"""What is said in words: of all GPUs together, of shares of one, and of what is wrong."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from console.seen import Denial
from console.top.rows import NodeRow, PodRow, Top
from console.words import ABSENT, age, several
from policies.node_state import Fault, Gpu
from policies.share import milli_text


def summary(shown: Top) -> tuple[str, ...]:
    """Count nodes and GPUs, and say what still fits; nothing where none can be seen, and no more than is known."""
    gpus = [gpu for node in shown.nodes for gpu in node.gpus]
    unhealthy = sum(not gpu.healthy for node in shown.nodes if node.health_known for gpu in node.gpus)
    are_known = all(node.gpus_known for node in shown.nodes)
    counted = several(len(gpus), "GPU") if are_known else f"at least {several(len(gpus), 'GPU')}"
    if not (are_known or gpus):
        counted = f"{ABSENT} GPUs"
    told = [several(len(shown.nodes), "node"), counted] if shown.nodes or shown.has_no_nodes else []
    told += [f"{unhealthy} unhealthy"] if unhealthy else []
    return (*told, *_fits(shown.nodes))


def _fits(nodes: Sequence[NodeRow]) -> Iterator[str]:
    """Say which share still fits, on nodes to which pods come; nothing where of none of them anybody knows."""
    taking = [node for node in nodes if not node.closed]
    of_each = [gpu.largest_free and gpu.milli(gpu.largest_free) for node in taking for gpu in node.gpus]
    free = [one for one in of_each if one is not None]
    is_all = len(free) == len(of_each) and all(node.gpus_known for node in taking)
    if free or (not taking and any(node.gpus for node in nodes)):
        yield f"largest share that fits: {'' if is_all else 'at least '}{milli_text(max(free, default=0))}"


def share(gpu: Gpu, parts: int | None) -> str:
    """Write some parts of a GPU as a share."""
    return ABSENT if parts is None else milli_text(gpu.milli(parts))


def fault(gpu: Gpu, one: Fault, now: datetime) -> str:
    """Say why a GPU is unhealthy."""
    return f"{gpu.called}: {one.why} (for {age(one.since, now)})"


def pod_trouble(row: PodRow) -> str:
    """Say what Kubernetes says of a pod; empty if it says nothing."""
    how = f"is {row.phase}" if row.phase else f"on {row.node}"
    return f"{row.namespace}/{row.pod} {how}: {row.why}" if row.why else ""


def denied(one: Denial, now: datetime) -> str:
    """Say whose pods are denied, and why."""
    where = f"{one.namespace}/{one.kind}/{one.name}"
    return f"{where}: denied {several(one.count, 'time')}, last {age(one.last, now)} ago: {one.message}"
