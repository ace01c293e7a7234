"""Lines for a terminal: long ones broken between words, and indented where they go on; those of others harmless."""

import re
import shutil
import sys
from collections.abc import Iterable, Iterator

_BREAKS = re.compile(r"""(?<=\s)(?=\S)|(?<=,)(?=["{])""")  # between words, and in JSON without blanks
_HANG = 2  # columns


def for_output(lines: Iterable[str]) -> Iterator[str]:
    """Yield *lines* as standard output wants them: within the width of a terminal, and as they are for a program."""
    if not sys.stdout.isatty():
        yield from lines
        return
    width = shutil.get_terminal_size().columns
    for line in lines:
        yield from wrapped(line, width)


def wrapped(line: str, width: int) -> Iterator[str]:
    """Break *line* so that each part fits into *width* columns, but for a word that is longer by itself."""
    text = line.lstrip()
    indent = len(line) - len(text)
    part = " " * indent
    is_empty = True
    for piece in _BREAKS.split(text):
        if not is_empty and len(part) + len(piece.rstrip()) > width:
            yield part.rstrip()
            part = " " * (indent + _HANG)
        part += piece
        is_empty = False
    yield part.rstrip()


def printable(text: str) -> str:
    """Give a text of somebody else in one line, without what moves a cursor or turns the direction of writing."""
    return "".join(one if one.isprintable() else "?" for one in " ".join(text.split()))
