"""Warnings as the API server passes them on: short lines, and no more of them than it keeps."""

from textwrap import wrap
from typing import Final

LONGEST_WARNING: Final = 120  # characters, as the API's documentation asks
MOST_WARNED: Final = 4096  # characters in all warnings; beyond, the API server drops some

_PREFIX = "gpu-share: "


def printable(warnings: tuple[str, ...]) -> list[str] | None:
    """Cut what is too long for one warning into several, between words; leave out what the API server would drop."""
    if not warnings:
        return None
    room = LONGEST_WARNING - len(_PREFIX)
    printed: list[str] = []
    left = MOST_WARNED - LONGEST_WARNING
    for number, text in enumerate(warnings):
        lines = [f"{_PREFIX}{line}" for line in (wrap(text, room) if len(text) > room else [text])]
        left -= sum(map(len, lines))
        if left < 0:
            return [*printed, f"{_PREFIX}and {len(warnings) - number} more warnings, which gpu-share preview shows"]
        printed += lines
    return printed
