"""Rows of `gpu-share top` look as those of a table of rich."""

from io import StringIO

import pytest
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from console.top.columns import Columns

HEADS = ("", "POD", "STATUS")


def rows(number: int) -> list[list[Text]]:
    looks = (("A", "black on cyan"), ("resnet-图-0 [bold]", ""), ("Pending", "yellow"))
    every = [[Text(text, style) for text, style in looks], [Text(), Text("a-pod-with-a-long-name"), Text("-")]]
    return [every[one % 2] for one in range(number)]


def table(made: list[list[Text]]) -> Table:
    found = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for head in HEADS:
        found.add_column(head, no_wrap=head != "POD", overflow="ellipsis")
    for row in made:
        found.add_row(*row)
    return found


def drawn(picture: RenderableType, columns: int) -> str:
    console = Console(file=StringIO(), width=columns, color_system=None)
    with console.capture() as captured:
        console.print(picture)
    return captured.get()


@pytest.mark.parametrize("columns", [4096, 120, 38, 37, 36, 20])
@pytest.mark.parametrize("number", [0, 1, 5])
def test_rows_look_as_in_a_table_at_any_width(columns: int, number: int) -> None:
    made = rows(number)
    assert drawn(Columns(HEADS, made, ("POD",)), columns) == drawn(table(made), columns)
