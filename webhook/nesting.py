"""How deep a body nests, before anything is built from it."""

import re
from typing import Final

DEEPEST: Final = 500  # levels of nesting; a pod has about 15

_USUAL_DEPTH = 32
_LARGEST_COUNTED = 1024 * 1024  # bytes
_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))


def is_too_deep(body: bytes) -> bool:
    """
    Whether the brackets nest deeper than DEEPEST.

    Almost free for a usual pod, and bounded for every other body: the decoder has a limit of its own, only a less
    even one, so what is very large is left to it.
    """
    if len(body) > _LARGEST_COUNTED:
        return False
    brackets = body.translate(None, _NO_BRACKETS)
    if len(brackets) <= 2 * DEEPEST:
        return False
    for _ in range(_USUAL_DEPTH):  # each round takes the innermost level off
        inner, brackets = brackets, brackets.replace(b"{}", b"").replace(b"[]", b"")
        if not brackets:
            return False
        if len(brackets) == len(inner):
            break
    depth = 0
    for bracket in _STRING.sub(b"", body).translate(None, _NO_BRACKETS):
        depth += 1 if bracket in b"[{" else -1
        if depth > DEEPEST:
            return True
    return False
