"""The form of a policy file's mappings and strings, declared once: for the check, its messages and the schema."""

from typing import Annotated

import msgspec
from msgspec import Meta


class Section(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, rename="camel", gc=False):
    """A mapping in a policy file. Unknown fields are errors, because a typo would otherwise lift a limit."""


def form(words: str, example: str, *, pattern: str | None = None, max_length: int | None = None) -> Meta:
    """
    Constrain a string.

    Args:
        words: What it is; they complete "expected …" in messages.
        example: One that fits.
        pattern: A regular expression for all of it.
        max_length: How many characters it may have.
    """
    whole = rf"^(?:{pattern})$(?!\n)" if pattern else None  # $ alone would let a final newline pass
    return Meta(pattern=whole, max_length=max_length, examples=[example], extra={"form": words})


_SUBDOMAIN = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
_LABEL = r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?"
Subdomain = Annotated[
    str,
    form(
        "a name of lower-case letters, digits, dashes and dots",
        "nvidia",
        pattern=_SUBDOMAIN,
        max_length=253,
    ),
]
LabelKey = Annotated[
    str,
    form(
        "the key of a label",
        "example.com/gpu",
        pattern=rf"({_SUBDOMAIN}/)?{_LABEL}",
        max_length=317,
    ),
]
TaintKey = Annotated[
    str,
    form(
        "the key of a taint",
        "example.com/gpu",
        pattern=rf"(({_SUBDOMAIN}/)?{_LABEL})?",  # none at all is the key of all
        max_length=317,
    ),
]
LabelValue = Annotated[
    str,
    form("the value of a label", "shared", pattern=rf"({_LABEL})?"),
]
