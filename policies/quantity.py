"""Whole numbers out of Kubernetes quantities, exactly: `2`, `"2"`, `1k` and `2000m` are whole, `0.5` is not."""

import re

_GRAMMAR = re.compile(
    r"\+?(?P<number>[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:(?P<suffix>[numkMGTPE]|[KMGTPE]i)|[eE](?P<exponent>[+-]?[0-9]{1,2}))?",
    re.ASCII,
)
_DECIMAL = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_LONGEST = 24  # characters


def whole(quantity: str | float) -> int | None:
    """Return the whole, non-negative number that *quantity* says, or None if it says none."""
    if isinstance(quantity, int):
        return quantity if quantity >= 0 else None
    text = str(quantity)
    if len(text) <= _LONGEST and text.isdigit() and text.isascii():
        return int(text)
    match = _GRAMMAR.fullmatch(text) if len(text) <= _LONGEST else None
    if match is None:
        return None
    digits, _, places = match["number"].partition(".")
    suffix = match["suffix"] or ""
    exponent = _DECIMAL.get(suffix, 0) + int(match["exponent"] or 0) - len(places)
    number = int(digits + places) << _BINARY.get(suffix, 0)
    if exponent >= 0:
        return int(number * 10**exponent)
    count, rest = divmod(number, 10**-exponent)
    return None if rest else count
