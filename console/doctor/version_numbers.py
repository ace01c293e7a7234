"""Numbers of versions of what is below gpu-share, for comparison."""

import re
from typing import Final

_VERSION: Final = re.compile(r"v?(\d{1,6}(?:\.\d{1,6}){0,3})", re.ASCII)


def numbers_in(version: str) -> tuple[int, ...] | None:
    """Read the numbers that a version begins with; None if there are none."""
    found = _VERSION.match(version)
    return tuple(map(int, found[1].split("."))) if found else None
