"""Which field of a pod has the wrong type, and what to do, for its author: what msgspec finds, in words."""

import re
from typing import Any

import msgspec

from policies.reading.wording import shown

_STEP = re.compile(r"\.([^.\[]+)|\[(\d+|\.\.\.)\]")
_TYPES = re.compile(r"Expected (?P<expected>[a-z |]+), got (?P<got>[a-z]+)")
_MISSING = re.compile(r"missing required field (\w+)")

# By the name that msgspec has for it: the type, and what it is in YAML.
_KINDS: dict[str, tuple[type, str]] = {
    "str": (str, "a string"),
    "int": (int, "a number"),
    "float": (float, "a number"),
    "bool": (bool, "true or false"),
    "array": (list, "a list"),
    "object": (dict, "a mapping"),
    "null": (type(None), ""),
}
_FIXES = {
    "a list": "begin each of its items with a dash",
    "a mapping": "write its fields below it",
    "true or false": "write one of the two",
}


def fault_of(error: msgspec.ValidationError, pod: dict[str, Any]) -> tuple[list[str | int], str]:
    """Return the place in *pod* of what msgspec did not take, and a sentence about it."""
    message, _, path = str(error).replace("`", "").partition(" - at ")
    if missing := _MISSING.search(message):
        return _place(pod, path, object)[0], f"{missing[1]} is missing: add it"
    types = _TYPES.search(message)
    if types is None:
        return _place(pod, path, object)[0], "invalid value: correct it"
    kind = _KINDS.get(types["got"], (object, ""))[0]
    place, value = _place(pod, path, kind)
    expected = list(dict.fromkeys(words for name in types["expected"].split(" | ") if (words := _KINDS[name][1])))
    fix = _FIXES.get(expected[-1], "write one")
    if value is None:
        fix = "give it a value, or remove it"
    elif expected == ["a string"] and isinstance(value, int | float):
        fix = "put it in quotes"
    return place, f"expected {' or '.join(expected)}, got {shown(value)}: {fix}"


def _place(pod: Any, path: str, kind: type) -> tuple[list[str | int], Any]:
    """Follow msgspec's *path*; where it names no key of a mapping, take the first whose value is of that *kind*."""
    place: list[str | int] = []
    for name, index in _STEP.findall(path.removeprefix("$")):
        step: Any = int(index) if index.isdigit() else name
        if index == "...":
            step = next((key for key, value in pod.items() if type(value) is kind), None)
        if step is None:
            break
        place.append(step)
        pod = pod[step]
    return place, pod
