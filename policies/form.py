"""The form of a value in a policy file, declared once: for the check, for its messages and for the schema."""

from msgspec import Meta


def form(words: str, example: str, *, pattern: str | None = None, max_length: int | None = None) -> Meta:
    """Constrain a string. *words* complete "expected …" in messages; *example* is one that fits."""
    return Meta(pattern=pattern, max_length=max_length, examples=[example], extra={"form": words})
