"""What is said in words: of all GPUs together, of shares of one, and of what is wrong."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from console.seen import Denial
from console.top.rows import NodeRow, PodRow, Top
from console.words import ABSENT, age, several
from policies.node_state import Fault, Gpu
from policies.share import milli_text

_PREFIX: Final = "gpu-share.dev/"  # of most resources


class _Free(NamedTuple):
    """What a new share can have of a GPU."""

    milli: int | None  # None if nobody knows
    is_open: bool  # whether its node could be read, and so pods come to it


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
    of_each: dict[str, list[_Free]] = {}  # of each GPU, by what is asked for to get a share of it
    for node in taking:
        for gpu in node.gpus:
            of_each.setdefault(_asked_for(gpu), []).append(_Free(_largest(node, gpu), node.labelled is not None))
    known = {kind: found for kind, found in of_each.items() if any(one.milli is not None for one in found)}
    is_all = all(node.gpus_known and (node.health_known or not node.gpus) for node in taking)
    told = [_bounded(found, is_all=is_all) for found in known.values()]
    if len(known) > 1:
        told = [f"{share} ({kind})" for share, kind in zip(told, known, strict=True)]
    if told or (not taking and any(node.gpus for node in nodes)):
        yield f"largest share that fits: {', '.join(told) or 0}"


def _asked_for(gpu: Gpu) -> str:
    """Name the GPUs of which a share can be where it can be of this one: as Kubernetes calls what is asked for."""
    return gpu.resource.removeprefix(_PREFIX) or f"{gpu.device or gpu.strategy} by {gpu.allocation}"


def _largest(node: NodeRow, gpu: Gpu) -> int | None:
    """Count, in thousandths, what a new share can have of a GPU; None if nobody knows how the GPU is now."""
    if not node.health_known or gpu.largest_free is None:
        return None
    return 0 if gpu.resource in node.not_advertised else gpu.milli(gpu.largest_free)


def _bounded(found: Sequence[_Free], *, is_all: bool) -> str:
    """Write the largest of these, and whether it could be larger, or smaller: on a node of which nobody knows more."""
    certain = max((one.milli or 0 for one in found if one.is_open), default=0)
    possible = max(one.milli or 0 for one in found)
    if not is_all or any(one.milli is None for one in found):
        return f"at least {milli_text(certain)}"
    return f"{'at most ' if possible > certain else ''}{milli_text(possible)}"


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
