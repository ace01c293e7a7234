"""
Values in what a node publishes of itself: each is bounded, whoever wrote it, and no text moves a terminal's cursor.

`policies/node_state.py` is the document that is made of them.
"""

from typing import Annotated, Final

import msgspec

_LONGEST_TEXT: Final = 2048
_LARGEST_INTEGER: Final = 2**53 - 1  # what every JSON reader keeps exactly
# No control characters, and none that changes the direction of what stands around it.
_PRINTABLE: Final = r"^[^\x00-\x1f\x7f-\x9f\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]*\Z"
Text = Annotated[str, msgspec.Meta(max_length=_LONGEST_TEXT, pattern=_PRINTABLE)]
# Of objects.
Name = Annotated[str, msgspec.Meta(max_length=253, pattern=r"^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?\Z")]
Word = Annotated[str, msgspec.Meta(max_length=128, pattern=r"^[A-Za-z0-9._/-]*\Z")]
# As long as Kubernetes lets it be: a domain of 253 characters, the slash, and 63. `resourceNames` and a device make it.
Resource = Annotated[str, msgspec.Meta(max_length=253 + 1 + 63, pattern=r"^[A-Za-z0-9._/-]*\Z")]
Moment = Annotated[str, msgspec.Meta(max_length=40, pattern=r"^[0-9T:.+Z-]*\Z")]  # ISO 8601, UTC
Count = Annotated[int, msgspec.Meta(ge=0, le=_LARGEST_INTEGER)]
Part = Annotated[int, msgspec.Meta(ge=0, le=1000)]  # of `Gpu.parts`
Ratio = Annotated[float, msgspec.Meta(ge=0, le=1)]
Seconds = Annotated[float, msgspec.Meta(ge=0, le=1e12)]


def printable(text: str) -> str:
    """Write a text of others so that it can be read: without what `read` rejects, and cut."""
    shown = text if text.isprintable() else "".join(one if one.isprintable() else "?" for one in text)
    return shown if len(shown) <= _LONGEST_TEXT else f"{shown[: _LONGEST_TEXT - 1]}…"
