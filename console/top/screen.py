"""As much of `gpu-share top` as a screen has lines for: what is wrong comes first, and how much is left out last."""

from collections.abc import Callable, Iterator
from datetime import datetime
from functools import partial
from itertools import islice
from typing import Final, NamedTuple

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.segment import Segment
from rich.text import Text

from console.top.drawing import draw, gpus_table, head, node_title, pods_table
from console.top.rows import Top
from console.top.segments import owners
from console.top.summary import denied, fault, pod_trouble
from console.words import moment, several

_OF_TROUBLES: Final = 3  # they have a third of the screen at most, and GPUs and pods the rest
_Lines = list[list[Segment]]


class _Block(NamedTuple):
    """Some lines of the picture, which are drawn if there is room for one of them."""

    lines: int  # as many as it has where none is too long for the screen
    draw: Callable[[], RenderableType]


class Screen:
    """A picture that is drawn for as many lines as the terminal has at the time."""

    def __init__(self, shown: Top, *, wide: bool) -> None:
        """Draw what is *shown*."""
        self._shown = shown
        self._wide = wide

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw all of it, or what fits."""
        most = console.height
        render = partial(console.render_lines, options=options.update(height=None), pad=False)
        if _count(self._shown) <= most:
            drawn = render(draw(self._shown, wide=self._wide))
            if len(drawn) <= most:
                yield from _joined(drawn)
                return
        yield from _joined(self._fitted(most, render))

    def _fitted(self, most: int, render: Callable[[RenderableType], _Lines]) -> _Lines:
        now = moment(self._shown.at) or datetime.now().astimezone()
        drawn = render(head(self._shown, *_counted(self._shown)))
        left = 0
        for one in (
            *_troubles(self._shown, now, most // _OF_TROUBLES),
            *_blocks(self._shown, now, most, wide=self._wide),
        ):
            room = most - 1 - len(drawn)
            made = render(one.draw())[: max(0, room)] if room > 0 else []
            left += max(0, one.lines - len(made))
            drawn += made
        left_out = Text(f"{several(left, 'more line')}: --node, -n or --once", "yellow")
        return [*drawn[: max(0, most - 1)], *render(left_out)[:1]]


def _joined(lines: _Lines) -> Iterator[Segment]:
    for line in lines:
        yield from line
        yield Segment.line()


def _count(shown: Top) -> int:
    """Count the lines of the whole picture, at least."""
    return 1 + sum(2 + len(node.gpus) for node in shown.nodes) + len(shown.pods) + len(shown.denied) + len(shown.unseen)


def _counted(shown: Top) -> Iterator[str]:
    """Count what asks for attention and may be below the end of the screen."""
    waiting = len({(row.namespace, row.pod) for row in shown.pods if row.phase == "Pending"})
    for count, what in ((waiting, "Pending"), (len(shown.denied), "denied"), (len(shown.unseen), "not seen")):
        if count:
            yield f"{count} {what}"


def _troubles(shown: Top, now: datetime, most: int) -> Iterator[_Block]:
    """Yield what is wrong, a line each, and of *most* lines the last says how many there are more."""
    told = [*dict.fromkeys(_said(shown, now))]  # of a pod once, whatever number of containers it has
    room = len(told) if len(told) <= most else max(0, most - 1)
    for said, style in told[:room]:
        # One line each: whoever wants to read all of it has other commands for it.
        yield _Block(1, partial(Text, said, style, no_wrap=True, overflow="ellipsis"))
    if len(told) > room:
        yield _Block(1, partial(Text, f"! {several(len(told) - room, 'more line')} of what is wrong", "yellow"))


def _said(shown: Top, now: datetime) -> Iterator[tuple[str, str]]:
    yield from ((f"✗ {denied(one, now)}", "red") for one in shown.denied)
    yield from ((f"? not seen: {one.sentence}", "yellow") for one in shown.unseen)
    for node in shown.nodes:
        yield from ((f"✗ {node.name} {fault(gpu, one, now)}", "red") for gpu in node.gpus for one in gpu.faults)
        yield from ((f"! {node.name}: {one}", "yellow") for one in (node.trouble, *node.notes) if one)
    yield from ((f"! {said}", "yellow") for row in shown.pods if (said := pod_trouble(row)))


def _blocks(shown: Top, now: datetime, most: int, *, wide: bool) -> Iterator[_Block]:
    """Yield nodes and pods; of these no more are drawn than a screen has lines."""
    numbers = owners(shown.nodes)
    for node in shown.nodes:
        yield _Block(1, partial(node_title, node))
        if node.gpus:
            yield _Block(len(node.gpus), partial(gpus_table, node, numbers, wide=wide))
    if shown.pods:
        rows = [*islice(shown.pods, most)]
        yield _Block(1 + len(shown.pods), partial(pods_table, rows, numbers, now, wide=wide))
