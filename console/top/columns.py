"""Many rows below each other: a table of rich, which takes a millisecond for each row, only where columns are cut."""

from collections.abc import Sequence
from typing import Final

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

_BETWEEN: Final = 2  # columns of a terminal
_HEAD: Final = "bold"


class Columns:
    """Rows under heads; *may_be_cut* are the heads whose columns give way where a terminal is too narrow."""

    def __init__(self, heads: Sequence[str], rows: Sequence[Sequence[Text]], may_be_cut: Sequence[str]) -> None:
        self._heads = heads
        self._rows = rows
        self._may_be_cut = may_be_cut

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw all of it."""
        widths = [_BETWEEN + max(map(cell_len, told)) for told in zip(self._heads, *self._plain(), strict=True)]
        if sum(widths) > options.max_width:
            yield self._table()
            return
        bold = console.get_style(_HEAD)
        for head, width in zip(self._heads, widths, strict=True):
            yield Segment(_padded(head, width), bold)
        yield Segment.line()
        for row in self._rows:
            for cell, width in zip(row, widths, strict=True):
                text = cell.plain
                yield Segment(text, console.get_style(cell.style) if cell.style else None)
                yield Segment(_padded("", width - cell_len(text)))
            yield Segment.line()

    def _plain(self) -> list[list[str]]:
        return [[cell.plain for cell in row] for row in self._rows]

    def _table(self) -> Table:
        table = Table(box=None, padding=(0, _BETWEEN, 0, 0), header_style=_HEAD)
        for head in self._heads:
            table.add_column(head, no_wrap=head not in self._may_be_cut, overflow="ellipsis")
        for row in self._rows:
            table.add_row(*row)
        return table


def _padded(text: str, width: int) -> str:
    return text + " " * (width - cell_len(text))
