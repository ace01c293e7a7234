"""How lines of a report are broken on a terminal."""

import io

from rich.console import Console
from rich.text import Text

from console.lines import print_lines

_LINE = Text("    gpu-a GPU 0: the driver reported XID 79; recovers by a reset", "yellow")


def printed(*lines: Text, columns: int = 40, terminal: bool = True) -> list[str]:
    file = io.StringIO()
    print_lines(Console(file=file, width=columns, force_terminal=terminal, color_system=None), lines)
    return file.getvalue().splitlines()


def test_a_line_goes_on_below_itself_and_two_columns_to_the_right() -> None:
    assert printed(_LINE) == ["    gpu-a GPU 0: the driver reported", "      XID 79; recovers by a reset"]


def test_a_word_that_is_longer_than_the_terminal_is_whole_in_its_pieces() -> None:
    assert "".join(line.strip() for line in printed(Text("  " + "x" * 90))) == "x" * 90


def test_an_empty_line_stays_one() -> None:
    assert printed(Text("a"), Text(), Text("b")) == ["a", "", "b"]


def test_without_a_terminal_a_line_is_one_line() -> None:
    assert printed(_LINE, terminal=False) == [_LINE.plain]
