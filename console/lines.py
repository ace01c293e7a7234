"""Lines of a report on a terminal: broken between words, and indented where they go on."""

from collections.abc import Iterable
from typing import Final

from rich.console import Console
from rich.text import Text

_HANG: Final = 2  # columns


def print_lines(console: Console, lines: Iterable[Text]) -> None:
    """Print each line within the width of a terminal, and as it is where there is none."""
    for line in lines:
        if not console.is_terminal:
            console.print(line, soft_wrap=True)
            continue
        indent = len(line.plain) - len(line.plain.lstrip(" "))
        width = max(1, console.width - indent - _HANG)
        for number, part in enumerate(line[indent:].wrap(console, width) or [Text()]):
            part.rstrip()
            console.print(Text.assemble(" " * (indent + (_HANG if number else 0)), part))
