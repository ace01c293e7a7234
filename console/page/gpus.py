"""Nodes and their GPUs as the page shows them: each GPU a bar, whose segments are in percent of it."""

from collections.abc import Iterator
from datetime import datetime

import msgspec

from console.page.filters import Filters
from console.top.rows import NodeRow, Top
from console.top.segments import COLOURS, Owners, Segment, letter, owners, segments
from console.top.summary import fault, share
from console.words import gib
from policies.contract import NODE_LABEL
from policies.node_state import Gpu

_NARROW = 0.04  # of a bar: a segment without room for a letter
_MOST_LINKED = 100  # GPUs in view; the segments of more would be thousands of links, which a browser pays for


class SegmentView(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a bar."""

    kind: str  # as in `segments`; "other" for tenants that are not in view
    begin: str  # percent
    width: str  # likewise
    middle: str  # likewise
    letter: str = ""
    colour: int = 0
    title: str
    namespace: str = ""
    pod: str = ""


class GpuView(msgspec.Struct, frozen=True, kw_only=True):
    """A GPU."""

    index: int
    uuid: str
    health: str  # healthy, unhealthy, unknown
    free: str
    hidden: str  # empty if nothing is
    largest: str
    segments: tuple[SegmentView, ...]
    details: tuple[tuple[str, str], ...]  # what is shown of it where one node is in view


class NodesView(msgspec.Struct, frozen=True, kw_only=True):
    """The nodes in view."""

    nodes: tuple["NodeView", ...]
    are_seen: bool  # False where nobody knows whether there are any
    are_linked: bool  # whether the segments lead to their pods


class NodeView(msgspec.Struct, frozen=True, kw_only=True):
    """A node."""

    name: str
    about: tuple[str, ...]  # driver and model
    badges: tuple[str, ...]  # what is wrong with the node itself
    trouble: str
    faults: tuple[str, ...]
    notes: tuple[str, ...]
    gpus: tuple[GpuView, ...]


def nodes_view(shown: Top, filters: Filters, now: datetime) -> NodesView:
    """Show the nodes in view."""
    numbers = owners(shown.nodes)
    nodes = [one for one in shown.nodes if not filters.node or one.name == filters.node]
    return NodesView(
        nodes=tuple(_node(one, numbers, filters, now) for one in nodes),
        are_seen=bool(shown.nodes) or shown.has_no_nodes,
        are_linked=sum(len(one.gpus) for one in nodes) <= _MOST_LINKED,
    )


def _node(node: NodeRow, numbers: Owners, filters: Filters, now: datetime) -> NodeView:
    models = {gpu.model for gpu in node.gpus}
    about = [f"{len(node.gpus)} x {models.pop()}" if len(models) == 1 else f"{len(node.gpus)} GPUs"] if models else []
    about += [f"driver {node.driver}"] if node.driver else []
    badges = [*node.closed]
    badges += [f"without the label {NODE_LABEL}=true"] if node.labelled is False else []
    return NodeView(
        name=node.name,
        about=tuple(about),
        badges=tuple(badges),
        trouble=node.trouble,
        faults=tuple(fault(gpu, one, now) for gpu in node.gpus for one in gpu.faults),
        notes=node.notes,
        gpus=tuple(_gpu(gpu, numbers, filters, known=node.health_known) for gpu in node.gpus),
    )


def _gpu(gpu: Gpu, numbers: Owners, filters: Filters, *, known: bool) -> GpuView:
    return GpuView(
        index=gpu.index,
        uuid=gpu.uuid,
        health=("healthy" if gpu.healthy else "unhealthy") if known else "unknown",
        free=share(gpu, gpu.free),
        hidden=share(gpu, gpu.hidden) if gpu.hidden else "",
        largest=share(gpu, gpu.largest_free),
        segments=tuple(_segments(gpu, numbers, filters)),
        details=_details(gpu) if filters.node else (),
    )


def _details(gpu: Gpu) -> tuple[tuple[str, str], ...]:
    daemon = (("MPS daemon", gpu.mps_daemon.state),) if gpu.mps_daemon else ()
    return (
        ("UUID", gpu.uuid),
        ("model", gpu.model),
        ("strategy", gpu.strategy),
        ("allocation", gpu.allocation),
        ("memory", gib(gpu.memory_bytes)),
        ("largest share that fits", share(gpu, gpu.largest_free)),
        *daemon,
    )


def _segments(gpu: Gpu, numbers: Owners, filters: Filters) -> Iterator[SegmentView]:
    begin = 0
    for one in segments(gpu):
        kind, title, pod = _named(gpu, one, filters)
        number = numbers[one.tenant.namespace, one.tenant.pod] if one.tenant else 0
        is_lettered = kind == "tenant" and one.parts / gpu.parts > _NARROW
        yield SegmentView(
            kind=kind,
            begin=_percent(begin / gpu.parts),
            width=_percent(one.parts / gpu.parts),
            middle=_percent((begin + one.parts / 2) / gpu.parts),
            letter=letter(number) if is_lettered else "",
            colour=number % COLOURS,
            title=title,
            namespace=one.tenant.namespace if one.tenant else "",
            pod=pod,
        )
        begin += one.parts


def _named(gpu: Gpu, segment: Segment, filters: Filters) -> tuple[str, str, str]:
    """Give the kind of a segment, what it says, and its pod."""
    amount = share(gpu, segment.parts)
    if segment.tenant is None:
        words = {"unknown": "of unknown containers", "unusable": "unusable"}
        return segment.kind, f"{amount} {words.get(segment.kind, segment.kind)}", ""
    is_other = bool(filters.namespace) and segment.tenant.namespace != filters.namespace
    return "other" if is_other else "tenant", f"{segment.tenant.name} {amount}", segment.tenant.pod


def _percent(ratio: float) -> str:
    return f"{100 * ratio:.4g}%"
