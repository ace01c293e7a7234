"""How `gpu-share top` draws: GPUs as bars cut into tenants, then pods by namespace."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from console.seen import Denial, Unseen
from console.top.columns import Columns
from console.top.rows import NodeRow, PodRow, Top
from console.top.segments import Kind, Owners, letter, owners, segments
from console.top.summary import denied, fault, pod_trouble, share, summary
from console.words import ABSENT, Shown, age, gib, moment, percent
from policies.contract import NODE_LABEL
from policies.node_state import Gpu

_COLOURS = ("cyan", "magenta", "yellow", "green", "blue", "bright_cyan", "bright_magenta")
_BAR_COLUMNS = 30  # 10 in a terminal that is too narrow for the row
_NARROW_BAR_COLUMNS = 10
_MAY_BE_CUT = ("NAMESPACE", "POD", "CONTAINER", "NODE", "GPU")  # where a terminal is too narrow
_NARROWEST = {False: 80, True: 160}  # columns of a table, by whether it is wide; a narrower terminal cuts it off
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
        head(shown),
        *_nodes(shown, numbers, now, wide=wide),
        *_pods(shown, numbers, now, wide=wide),
        *_denied(shown.denied, now),
        *_unseen(shown.unseen),
    )


class Bar:
    """A GPU as wide as there is room for, and whole at every width."""

    def __init__(self, gpu: Gpu, numbers: Owners) -> None:
        self._gpu = gpu
        self._numbers = numbers

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        """Say how narrow and how wide it can be."""
        return Measurement(_NARROW_BAR_COLUMNS, _BAR_COLUMNS)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw it in the columns that it has."""
        yield bar(self._gpu, self._numbers, columns=min(options.max_width, _BAR_COLUMNS))


def bar(gpu: Gpu, numbers: Owners, *, columns: int = _BAR_COLUMNS) -> Text:
    """Draw a GPU: a letter and a colour for each pod, then what is hidden, then what is free."""
    drawn = Text()
    ends = _Ends(gpu.parts, columns)
    for one in segments(gpu):
        length = ends.columns(one.parts)
        if one.tenant is not None:
            number = numbers[one.tenant.namespace, one.tenant.pod]
            drawn.append(letter(number) * length, f"black on {_colour(number)}")
        else:
            glyph, style = _LOOKS[one.kind]
            drawn.append(glyph * length, style)
    return drawn


class _AtLeast:
    """A table that is cut off at the right by a terminal in which its columns could not be read."""

    def __init__(self, table: RenderableType, columns: int) -> None:
        self._table = table
        self._columns = columns

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw it as wide as the terminal, and no narrower than it may be."""
        yield from console.render(self._table, options.update(width=max(options.max_width, self._columns)))


class _Ends:
    """Where the parts of a bar end, so that all of them together fill it whatever is rounded."""

    def __init__(self, parts: int, columns: int) -> None:
        self._parts = parts
        self._of_all = columns
        self._at = self._columns = 0

    def columns(self, parts: int) -> int:
        """Give the columns of the next *parts*."""
        self._at = min(self._parts, self._at + max(0, parts))
        before, self._columns = self._columns, self._at * self._of_all // self._parts
        return self._columns - before


def head(shown: Top, *told: str) -> Text:
    """Draw the first line: all of it in numbers, and what else is *told*."""
    said = ", ".join((*summary(shown), *told))
    return Text.assemble((Shown(shown.context), "bold"), f"  {said}  {shown.at[11:19]} UTC")


def _nodes(shown: Top, numbers: Owners, now: datetime, *, wide: bool) -> Iterator[RenderableType]:
    if shown.has_no_nodes:
        yield Text(f"no node has a part of gpu-share, or the label {NODE_LABEL}=true", "yellow")
    for node in shown.nodes:
        yield Text()
        yield node_title(node)
        if node.trouble:
            yield Text(f"! {node.trouble}", "yellow")
        if node.gpus:
            yield gpus_table(node, numbers, wide=wide)
        for gpu in node.gpus:
            yield from (Text(f"✗ {fault(gpu, one, now)}", "red") for one in gpu.faults)
        yield from (Text(f"! {note}", "yellow") for note in node.notes)


def gpus_table(node: NodeRow, numbers: Owners, *, wide: bool) -> RenderableType:
    """Draw the GPUs of a node."""
    table = _gpu_table(wide=wide)
    for gpu in node.gpus:
        table.add_row(*_gpu(gpu, numbers, known=node.health_known, wide=wide))
    return _AtLeast(table, _NARROWEST[wide])


def _gpu_table(*, wide: bool) -> Table:
    """Make the table whose rows `_gpu` yields: only names and the bar give way in a narrow terminal."""
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="ellipsis")
    table.add_column()
    for _ in range(9 if wide else 4):
        table.add_column(no_wrap=True)
    return table


def node_title(node: NodeRow) -> Text:
    """Draw the line above a node's GPUs."""
    title = Text.assemble(("── ", "dim"), (node.name, "bold"))
    title.append(f"  driver {node.driver}" if node.driver else "")
    for why in node.closed:
        title.append(f"  {why}", "yellow" if why == "cordoned" else "red")
    title.append(f"  without the label {NODE_LABEL}=true" if node.labelled is False else "", "yellow")
    return title


def _gpu(gpu: Gpu, numbers: Owners, *, known: bool, wide: bool) -> Iterator[RenderableType]:
    yield Text(f"GPU {gpu.index}")
    yield Text(gpu.uuid if wide else gpu.model)
    yield Bar(gpu, numbers)
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
    if shown.pods:
        yield pods_table(shown.pods, numbers, now, wide=wide)
    elif shown.has_no_pods:
        yield Text(f"no pod with a share{f' in namespace {Shown(shown.namespace)}' if shown.namespace else ''}", "dim")
    elif shown.silent_nodes:
        yield Text(f"nobody knows which pods have a share on {', '.join(shown.silent_nodes)}", "yellow")
    for row in shown.pods:
        if told := pod_trouble(row):
            yield Text(f"! {told}", "yellow")


def pods_table(rows: Sequence[PodRow], numbers: Owners, now: datetime, *, wide: bool) -> RenderableType:
    """Draw pods below each other."""
    heads = ["", "NAMESPACE", "POD", "CONTAINER", "SHARE", "LIMIT", "USED", "SM", "AGE", "STATUS"]
    heads += ["NODE", "THREADS", "PROCESSES", "GPU"] if wide else []
    drawn = [[*_pod(row, numbers, now, wide=wide)] for row in rows]
    return _AtLeast(Columns(heads, drawn, _MAY_BE_CUT), _NARROWEST[wide])


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
