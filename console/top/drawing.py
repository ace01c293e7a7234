"""How `gpu-share top` draws: GPUs as bars cut into tenants, then pods by namespace."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from console.seen import Denial, Unseen
from console.top.rows import NodeRow, PodRow, Top
from console.top.segments import Kind, Owners, letter, owners, segments
from console.top.summary import denied, fault, pod_trouble, share, summary
from console.words import ABSENT, Shown, age, gib, moment, percent
from policies.contract import NODE_LABEL
from policies.node_state import Gpu

_COLOURS = ("cyan", "magenta", "yellow", "green", "blue", "bright_cyan", "bright_magenta")
_BAR_COLUMNS = 30
_LOOKS: Mapping[Kind, tuple[str, str]] = {  # glyph and style of what no tenant has
    "unknown": ("·", "dim"),
    "hidden": ("▒", "dim yellow"),
    "free": ("░", "dim"),
    "unusable": ("░", "red"),
}


def draw(shown: Top, *, wide: bool) -> RenderableType:
    """Draw all of it."""
    numbers = owners(shown.nodes)
    now = moment(shown.at) or datetime.now().astimezone()
    return Group(
        *_head(shown),
        *_nodes(shown.nodes, numbers, now, wide=wide),
        *_pods(shown, numbers, now, wide=wide),
        *_denied(shown.denied, now),
        *_unseen(shown.unseen),
    )


def bar(gpu: Gpu, numbers: Owners) -> Text:
    """Draw a GPU: a letter and a colour for each pod, then what is hidden, then what is free."""
    drawn = Text()
    ends = _Ends(gpu.parts)
    for one in segments(gpu):
        columns = ends.columns(one.parts)
        if one.tenant is not None:
            number = numbers[one.tenant.namespace, one.tenant.pod]
            drawn.append(letter(number) * columns, f"black on {_colour(number)}")
        else:
            glyph, style = _LOOKS[one.kind]
            drawn.append(glyph * columns, style)
    return drawn


class _Ends:
    """Where the parts of a bar end, so that all of them together fill it whatever is rounded."""

    def __init__(self, parts: int) -> None:
        self._parts = parts
        self._at = self._columns = 0

    def columns(self, parts: int) -> int:
        """Give the columns of the next *parts*."""
        self._at = min(self._parts, self._at + max(0, parts))
        before, self._columns = self._columns, self._at * _BAR_COLUMNS // self._parts
        return self._columns - before


def _head(shown: Top) -> Iterator[RenderableType]:
    told = ", ".join(summary(shown))
    yield Text.assemble((Shown(shown.context), "bold"), f"  {told}  {shown.at[11:19]} UTC")


def _nodes(nodes: Sequence[NodeRow], numbers: Owners, now: datetime, *, wide: bool) -> Iterator[RenderableType]:
    if not nodes:
        yield Text(f"no node has a part of gpu-share, or the label {NODE_LABEL}=true", "yellow")
    for node in nodes:
        yield Text()
        yield _node_title(node)
        if node.trouble:
            yield Text(f"! {node.trouble}", "yellow")
        table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
        for gpu in node.gpus:
            table.add_row(*_gpu(gpu, numbers, known=node.health_known, wide=wide))
        if node.gpus:
            yield table
        for gpu in node.gpus:
            yield from (Text(f"✗ {fault(gpu, one, now)}", "red") for one in gpu.faults)
        yield from (Text(f"! {note}", "yellow") for note in node.notes)


def _node_title(node: NodeRow) -> Text:
    title = Text.assemble(("── ", "dim"), (node.name, "bold"))
    title.append(f"  driver {node.driver}" if node.driver else "")
    title.append("  not Ready" if node.ready is False else "", "red")
    title.append(f"  without the label {NODE_LABEL}=true" if node.labelled is False else "", "yellow")
    return title


def _gpu(gpu: Gpu, numbers: Owners, *, known: bool, wide: bool) -> Iterator[Text]:
    yield Text(f"GPU {gpu.index}")
    yield Text(gpu.uuid if wide else gpu.model)
    yield bar(gpu, numbers)
    if known:
        yield Text("healthy", "green") if gpu.healthy else Text("UNHEALTHY", "bold red")
    else:
        yield Text("unknown", "yellow")
    yield Text(f"{share(gpu, gpu.free)} free")
    yield Text(f"{share(gpu, gpu.hidden)} hidden" if gpu.hidden else "")
    yield Text(f"largest {share(gpu, gpu.largest_free)}")
    if wide:
        daemon = gpu.mps_daemon.state if gpu.mps_daemon else ABSENT
        yield from map(Text, (gpu.model, gpu.strategy, gpu.allocation, gib(gpu.memory_bytes), f"MPS {daemon}"))


def _pods(shown: Top, numbers: Owners, now: datetime, *, wide: bool) -> Iterator[RenderableType]:
    yield Text()
    heads = ["", "NAMESPACE", "POD", "CONTAINER", "SHARE", "LIMIT", "USED", "SM", "AGE", "STATUS"]
    heads += ["NODE", "THREADS", "PROCESSES", "GPU"] if wide else []
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for head in heads:
        table.add_column(head, no_wrap=True, overflow="ellipsis")
    for row in shown.pods:
        table.add_row(*_pod(row, numbers, now, wide=wide))
    yield table if shown.pods else Text("no pod with a share", "dim")
    for row in shown.pods:
        if told := pod_trouble(row):
            yield Text(f"! {told}", "yellow")


def _pod(row: PodRow, numbers: Owners, now: datetime, *, wide: bool) -> Iterator[Text]:
    number = numbers.get((row.namespace, row.pod))
    yield Text(f" {letter(number)} ", f"black on {_colour(number)}") if number is not None else Text()
    yield Text(row.namespace)
    yield Text(row.pod)
    yield Text(row.container or ABSENT)
    yield Text(row.share or ABSENT)
    yield Text(gib(row.memory_limit_bytes))
    yield Text(gib(row.memory_used_bytes))
    yield Text(percent(row.sm_ratio))
    yield Text(age(row.created, now))
    yield Text(row.phase or ABSENT, "" if row.runs else "yellow")
    if wide:
        yield Text(row.node or ABSENT)
        yield Text(percent(row.thread_limit_ratio))
        yield Text(ABSENT if row.processes is None else str(row.processes))
        yield Text(", ".join(row.gpus) or ABSENT)


def _denied(rows: Sequence[Denial], now: datetime) -> Iterator[RenderableType]:
    for one in rows:
        yield Text(f"✗ {denied(one, now)}", "red")


def _unseen(unseen: Sequence[Unseen]) -> Iterator[RenderableType]:
    for one in unseen:
        yield Text(f"? not seen: {one.sentence}", "yellow")


def _colour(number: int) -> str:
    return _COLOURS[number % len(_COLOURS)]
