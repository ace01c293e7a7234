"""How `gpu-share top` draws: GPUs as bars cut into tenants, then pods by namespace."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from console.seen import Denial, Unseen
from console.top.rows import NodeRow, PodRow, Top
from console.words import ABSENT, Shown, age, gib, moment, percent, several
from policies.contract import MILLI_PER_GPU
from policies.node_state import Gpu
from policies.share import milli_text

_COLOURS = ("cyan", "magenta", "yellow", "green", "blue", "bright_cyan", "bright_magenta")
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_BAR_COLUMNS = 30
_FREE, _HIDDEN, _UNKNOWN = "░", "▒", "·"
_RUNS = ("Running", "Succeeded")

Owners = Mapping[tuple[str, str], int]  # the number of each pod on some GPU, by namespace and name


def draw(shown: Top, *, wide: bool) -> RenderableType:
    """Draw all of it."""
    owners = _owners(shown)
    now = moment(shown.at) or datetime.now().astimezone()
    return Group(
        *_head(shown),
        *_nodes(shown.nodes, owners, now, wide=wide),
        *_pods(shown, owners, now, wide=wide),
        *_denied(shown.denied, now),
        *_unseen(shown.unseen),
    )


def bar(gpu: Gpu, owners: Owners) -> Text:
    """Draw a GPU: a letter and a colour for each pod, then what is hidden, then what is free."""
    drawn = Text()
    if gpu.granted is None:
        return drawn.append(_UNKNOWN * _BAR_COLUMNS, "dim")
    ends = _Ends(gpu.parts)
    for tenant in gpu.tenants:
        number = owners[tenant.namespace, tenant.pod]
        drawn.append(_letter(number) * ends.columns(tenant.parts), f"black on {_colour(number)}")
    drawn.append(_UNKNOWN * ends.columns(gpu.granted - sum(one.parts for one in gpu.tenants)), "dim")
    drawn.append(_HIDDEN * ends.columns(gpu.hidden or 0), "dim yellow")
    drawn.append(_FREE * ends.columns(gpu.parts), "dim" if gpu.healthy else "red")
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


def _owners(shown: Top) -> Owners:
    """Number the pods as they stand on the GPUs."""
    owners: dict[tuple[str, str], int] = {}
    for node in shown.nodes:
        for gpu in node.gpus:
            for tenant in gpu.tenants:
                owners.setdefault((tenant.namespace, tenant.pod), len(owners))
    return owners


def _head(shown: Top) -> Iterator[RenderableType]:
    gpus = [gpu for node in shown.nodes for gpu in node.gpus]
    unhealthy = sum(not gpu.healthy for node in shown.nodes if node.health_known for gpu in node.gpus)
    largest = max((_milli(gpu, gpu.largest_free) for gpu in gpus if gpu.largest_free is not None), default=None)
    told = [several(len(shown.nodes), "node"), several(len(gpus), "GPU")]
    told += [f"{unhealthy} unhealthy"] if unhealthy else []
    told += [f"largest share that fits: {milli_text(largest)}"] if largest is not None else []
    yield Text.assemble((Shown(shown.context), "bold"), f"  {', '.join(told)}  {shown.at[11:19]} UTC")


def _nodes(nodes: Sequence[NodeRow], owners: Owners, now: datetime, *, wide: bool) -> Iterator[RenderableType]:
    if not nodes:
        yield Text("no node has a part of gpu-share, or the label gpu-share.dev/node=true", "yellow")
    for node in nodes:
        yield Text()
        yield _node_title(node)
        if node.trouble:
            yield Text(f"! {node.trouble}", "yellow")
        table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
        for gpu in node.gpus:
            table.add_row(*_gpu(gpu, owners, known=node.health_known, wide=wide))
        if node.gpus:
            yield table
        for gpu in node.gpus:
            yield from (
                Text(f"✗ GPU {gpu.index}: {fault.why} (for {age(fault.since, now)})", "red") for fault in gpu.faults
            )
        yield from (Text(f"! {note}", "yellow") for note in node.notes)


def _node_title(node: NodeRow) -> Text:
    title = Text.assemble(("── ", "dim"), (node.name, "bold"))
    title.append(f"  driver {node.driver}" if node.driver else "")
    title.append("  not Ready" if node.ready is False else "", "red")
    title.append("  without the label gpu-share.dev/node=true" if node.labelled is False else "", "yellow")
    return title


def _gpu(gpu: Gpu, owners: Owners, *, known: bool, wide: bool) -> Iterator[Text]:
    yield Text(f"GPU {gpu.index}")
    yield Text(gpu.uuid if wide else gpu.model)
    yield bar(gpu, owners)
    if known:
        yield Text("healthy", "green") if gpu.healthy else Text("UNHEALTHY", "bold red")
    else:
        yield Text("unknown", "yellow")
    yield Text(f"{_share(gpu, gpu.free)} free")
    yield Text(f"{_share(gpu, gpu.hidden)} hidden" if gpu.hidden else "")
    yield Text(f"largest {_share(gpu, gpu.largest_free)}")
    if wide:
        daemon = gpu.mps_daemon.state if gpu.mps_daemon else ABSENT
        yield from map(Text, (gpu.model, gpu.strategy, gpu.allocation, gib(gpu.memory_bytes), f"MPS {daemon}"))


def _pods(shown: Top, owners: Owners, now: datetime, *, wide: bool) -> Iterator[RenderableType]:
    yield Text()
    heads = ["", "NAMESPACE", "POD", "CONTAINER", "SHARE", "LIMIT", "USED", "SM", "AGE", "STATUS"]
    heads += ["NODE", "THREADS", "PROCESSES", "GPU"] if wide else []
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for head in heads:
        table.add_column(head, no_wrap=True, overflow="ellipsis")
    for row in shown.pods:
        table.add_row(*_pod(row, owners, now, wide=wide))
    yield table if shown.pods else Text("no pod with a share", "dim")
    for row in shown.pods:
        if row.why:
            yield Text(f"! {row.namespace}/{row.pod} is {row.phase}: {row.why}", "yellow")


def _pod(row: PodRow, owners: Owners, now: datetime, *, wide: bool) -> Iterator[Text]:
    number = owners.get((row.namespace, row.pod))
    yield Text(f" {_letter(number)} ", f"black on {_colour(number)}") if number is not None else Text()
    yield Text(row.namespace)
    yield Text(row.pod)
    yield Text(row.container or ABSENT)
    yield Text(row.share or ABSENT)
    yield Text(gib(row.memory_limit_bytes))
    yield Text(gib(row.memory_used_bytes))
    yield Text(percent(row.sm_ratio))
    yield Text(age(row.created, now))
    yield Text(row.phase or ABSENT, "" if row.phase in (*_RUNS, None) else "yellow")
    if wide:
        yield Text(row.node or ABSENT)
        yield Text(percent(row.thread_limit_ratio))
        yield Text(ABSENT if row.processes is None else str(row.processes))
        yield Text(", ".join(row.gpus) or ABSENT)


def _denied(denied: Sequence[Denial], now: datetime) -> Iterator[RenderableType]:
    for one in denied:
        where = f"{one.namespace}/{one.kind}/{one.name}"
        often = several(one.count, "time")
        yield Text(f"✗ {where}: denied {often}, last {age(one.last, now)} ago: {one.message}", "red")


def _unseen(unseen: Sequence[Unseen]) -> Iterator[RenderableType]:
    for one in unseen:
        could = f"; the right to {one.right} is missing" if one.right else ""
        yield Text(f"? not seen: {one.what}: {one.why}{could}", "yellow")


def _share(gpu: Gpu, parts: int | None) -> str:
    return ABSENT if parts is None else milli_text(_milli(gpu, parts))


def _milli(gpu: Gpu, parts: int) -> int:
    return MILLI_PER_GPU * parts // gpu.parts


def _letter(number: int) -> str:
    """A to Z, and again: there are 7 colours, so the 182 first pods look different."""
    return _LETTERS[number % len(_LETTERS)]


def _colour(number: int) -> str:
    return _COLOURS[number % len(_COLOURS)]
