"""Quantities as the API server stores them: it shortens most spellings, and keeps some as they were written."""

import re

from policies.quantity import whole

_PARTS = re.compile(r"[+-]?0*(?P<number>[0-9]*)\.?(?P<fraction>[0-9]*)(?P<suffix>.*)")
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"": 0, "Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}


def kept(quantity: str | float) -> str:
    """Return *quantity* as the API server stores it; what is not a whole number is returned as it is."""
    written = str(quantity)
    number, parts = whole(quantity), _PARTS.fullmatch(written)
    if number is None or parts is None:
        return written
    digits, suffix = (parts["number"] or "0") + parts["fraction"], parts["suffix"]
    if number == 0:
        return "0"
    if suffix.endswith("i"):
        return written if not parts["fraction"] and int(digits) % 8 else _shortened(number, 1024, list(_BINARY))
    if suffix[:1] in {"e", "E"} and len(suffix) > 1:
        power = int(suffix[1:])
        names = ["", *(f"e{thousands}" for thousands in range(3, 64, 3))]
    else:
        power = _DECIMAL[suffix]
        names = [name for name, each in _DECIMAL.items() if each >= 0]
    stays = (power - len(parts["fraction"])) % 3 == 0 and not digits.startswith("0") and not digits.endswith("000")
    return written if stays else _shortened(number, 1000, names)


def _shortened(number: int, step: int, names: list[str]) -> str:
    for name in names[:-1]:
        if number % step:
            return f"{number}{name}"
        number //= step
    return f"{number}{names[-1]}"
