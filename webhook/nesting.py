"""How deep a body nests that could not be decoded. The decoder has a limit of its own, whose sentence says less."""

import re
from typing import Final

DEEPEST: Final = 500  # levels of nesting; a pod has about 15, and the decoder stops above 800

_LARGEST_COUNTED = 1024 * 1024  # bytes
# With all before them that is no bracket, or a string, to the end if it is open. One by one: all at once would be a
# list that takes sixty times the body.
_BRACKETS = re.compile(rb'(?:(?>[^][{}"]++|"[^"\\]*+(?:(?>\\.[^"\\]*+))*+"?))*+([][{}]++|\Z)', re.DOTALL)


def is_too_deep(body: bytes | bytearray) -> bool:
    """Whether the brackets in the first MiB of *body* nest deeper than DEEPEST."""
    depth = 0
    for brackets in _BRACKETS.finditer(body, 0, _LARGEST_COUNTED):
        for bracket in brackets[1]:
            depth += 1 if bracket in b"[{" else -1
            if depth > DEEPEST:
                return True
    return False
