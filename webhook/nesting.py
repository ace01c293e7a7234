"""How deep a body nests that could not be decoded. The decoder has a limit of its own, whose sentence says less."""

import re
from typing import Final

DEEPEST: Final = 500  # levels of nesting; a pod has about 15, and the decoder stops above 800

_LARGEST_COUNTED = 1024 * 1024  # bytes
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)  # to the end, if it is open
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))


def is_too_deep(body: bytes) -> bool:
    """Whether the brackets in the first MiB of *body* nest deeper than DEEPEST."""
    depth = 0
    for bracket in _STRING.sub(b"", body[:_LARGEST_COUNTED]).translate(None, _NO_BRACKETS):
        depth += 1 if bracket in b"[{" else -1
        if depth > DEEPEST:
            return True
    return False
