"""What a YAML node says, in the values that JSON has: no later line meets a date, a set or a key that is no string."""

import math
import re
import struct
from base64 import b64decode
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import yaml

from policies.errors import quoted
from policies.reading.document import DocumentError

DEEPEST = 100  # levels; the schemas of custom resources have more than 30

_INTEGER = re.compile(r"[-+]?(?:[1-9][0-9]*|0[xX][0-9a-fA-F]+|0[bB][-+]?[01]+|0[oO]?[0-7]+|0)")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_SPACE = re.compile(r"\s")
_BASES = {"0x": 16, "0b": 2, "0o": 8}

_YAML = "tag:yaml.org,2002:"
MERGE = f"{_YAML}merge"
STRING = f"{_YAML}str"
_INT, _FLOATING = f"{_YAML}int", f"{_YAML}float"
_BOOLEANS = {**yaml.SafeLoader.bool_values, "y": True, "n": False}
_WORDS = {
    **{form: f"{_YAML}bool" for word in _BOOLEANS for form in (word, word.capitalize(), word.upper())},
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), f"{_YAML}null"),
    **{f"{sign}.{word}": _FLOATING for sign in ("", "-", "+") for word in ("inf", "Inf", "INF")},
    **{f".{word}": _FLOATING for word in ("nan", "NaN", "NAN")},
    "<<": MERGE,
}
_DIGITS_OF_SINGLE, _LARGEST_SINGLE = 9, 3.4e38
_LARGEST_INTEGER = 2**63 - 1  # the API machinery takes a larger one for a float


def plain_tag(text: str) -> str:
    """Say by its tag what the API machinery takes a scalar without quotes for (go.yaml.in/yaml/v2, resolve.go)."""
    if text in _WORDS:
        return _WORDS[text]
    digits = text.replace("_", "") if text[0] in "-+.0123456789" else ""
    if _INTEGER.fullmatch(digits):
        return _INT
    return _FLOATING if _FLOAT.fullmatch(digits) and math.isfinite(float(digits)) else STRING


def plain_value(node: yaml.Node, *, most: int) -> Any:
    """
    Return what *node* says, at most *most* values with those that aliases repeat, none of which share anything.

    Raises:
        DocumentError: If a tag names what JSON does not have or does not fit its value, a key is not a scalar or is
            there twice, or there are too many or too deep values.
    """
    return _Reading(most).value(node, 0)


def key_text(node: yaml.Node) -> str:
    """
    Return a key as the API machinery makes it of a scalar: `true` of `on`, `8` of `010`, `1e+06` of `1e6`.

    Raises:
        DocumentError: If it is no scalar, or empty.
    """
    value = _scalar(node) if isinstance(node, yaml.ScalarNode) and node.tag in _SCALARS else None
    match value:
        case None:
            raise _fault(node, "a key must be a string: put it in quotes")
        case bool():
            return str(value).lower()
        case int():
            return str(value)
        case float() if abs(value) <= _LARGEST_SINGLE:
            return _as_go(value)
        case str():
            return value
        case _:
            return str(node.value)


class _Reading:
    def __init__(self, most: int) -> None:
        self._left = most

    def value(self, node: yaml.Node, depth: int) -> Any:
        self._left -= 1
        if self._left < 0 or depth > DEEPEST:
            raise _fault(node, "its aliases multiply or contain themselves: write the values out")
        match node:
            case yaml.ScalarNode(tag=tag) if tag in _SCALARS:
                return _scalar(node)
            case yaml.SequenceNode(tag=tag) if tag == f"{_YAML}seq":
                return [self.value(item, depth + 1) for item in node.value]
            case yaml.MappingNode(tag=tag) if tag == f"{_YAML}map":
                return self._mapping(node, depth)
        tag = quoted(node.tag.replace(_YAML, "!!"))[1:-1]
        raise _fault(node, f"the tag {tag} does not fit here: write a plain value without it")

    def _mapping(self, node: yaml.MappingNode, depth: int) -> dict[str, Any]:
        made: dict[str, Any] = {}
        own: set[str] = set()
        for key, inner in node.value:
            if key.tag == MERGE:  # in its place: the API machinery lets it replace what stands above it, as well
                made |= self._merged(inner, depth)
                continue
            name = key_text(key)
            if name in own:
                raise DocumentError(_line(key), f"{quoted(name)} is here twice: remove one")
            own.add(name)
            made[name] = self.value(inner, depth + 1)
        return made

    def _merged(self, node: yaml.Node, depth: int) -> dict[str, Any]:
        values = self.value(node, depth + 1)
        mappings = values if isinstance(values, list) else [values]
        if not all(isinstance(one, dict) for one in mappings):
            raise _fault(node, "expected a mapping or a list of mappings behind <<: write the fields out")
        return {name: value for one in reversed(mappings) for name, value in one.items()}


def _scalar(node: yaml.ScalarNode) -> Any:
    read, expected = _SCALARS[node.tag]
    try:
        return read(node)
    except (KeyError, ValueError, OverflowError):
        raise _fault(node, f"expected {expected}, got {quoted(node.value)}: correct it") from None


def _text(node: yaml.ScalarNode) -> str:
    text: str = node.value
    if any("\ud800" <= sign <= "\udfff" for sign in text if not sign.isascii()):
        raise _fault(node, "half of a character, as \\ud800 is: remove it")
    return text


def _decoded(node: yaml.ScalarNode) -> str:
    return b64decode(_SPACE.sub("", node.value), validate=True).decode()


def _integer(node: yaml.ScalarNode) -> int | float:
    text = node.value.replace("_", "")
    if not _INTEGER.fullmatch(text):
        raise ValueError
    sign = -1 if text[0] == "-" else 1
    digits = text.lstrip("+-").lower()
    number = sign * int(digits, _BASES.get(digits[:2], 8 if digits[0] == "0" else 10))
    return number if abs(number) <= _LARGEST_INTEGER else float(number)


def _float(node: yaml.ScalarNode) -> float:
    text = node.value.replace("_", "")
    if not _FLOAT.fullmatch(text) or not math.isfinite(float(text)):
        raise ValueError
    return float(text)


def _as_go(number: float) -> str:
    """Write a number as Go does by the format g, with as many digits as one of 32 bits has."""
    bits = struct.pack("f", number)
    (single,) = struct.unpack("f", bits)
    written = (f"{single:.{digits}e}" for digits in range(_DIGITS_OF_SINGLE))
    text = next((one for one in written if struct.pack("f", float(one)) == bits), f"{single:e}")
    exact = Decimal(text)
    is_plain = not number or -4 <= exact.adjusted() < 6  # noqa: PLR2004 - https://pkg.go.dev/strconv#FormatFloat
    return f"{exact:f}" if is_plain else text


# By its tag: what reads a scalar, and what that expects.
_SCALARS: dict[str, tuple[Callable[[yaml.ScalarNode], Any], str]] = {
    f"{_YAML}null": (lambda _: None, "nothing"),
    f"{_YAML}bool": (lambda node: _BOOLEANS[node.value.lower()], "true or false"),
    _INT: (_integer, "a number"),
    _FLOATING: (_float, "a number that is finite"),
    STRING: (_text, "a string"),
    f"{_YAML}binary": (_decoded, "a text in base64"),
}


def _fault(node: yaml.Node, problem: str) -> DocumentError:
    return DocumentError(_line(node), f"invalid YAML: {problem}")


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1
