"""What is wrong with a value in a policy file, in words for the person who wrote it."""

import re
import typing
from typing import Any, Literal

import msgspec

from policies.errors import ShareError, quoted

# The form of a string in words, where its pattern would say it in signs.
_FORMS = {
    "nodeSelector": "labels such as {gpu: shared}",
    "runtimeClassName": "the name of a RuntimeClass such as nvidia",
    "schedulerName": "the name of a scheduler",
    "resourceNames": "resources such as example.com/vgpu, outside kubernetes.io and none of a vendor's own plugin",
    "pipeDirectory": "an absolute path of at most 46 characters, with no . or .. and no / at its end",
    "exemptNamespaces": "the name of a namespace",
    "node": "the name of nodes such as gpu-*, of at most 100 characters",
    "model": "a model such as *H200*, of at most 100 characters",
    "indexes": "the number of at least one GPU such as [0, 1]",
    "name": "lower-case letters, digits, dots and dashes",
    "images": "a glob without spaces",
    "programs": "a command line with single spaces",
    "argument": "an option such as --memory",
    "variable": "the name of a variable such as GPU_MEMORY",
    "value": "a string with one of {fraction}, {percent} and {percentLeft}",
    "since": "major and minor version such as 2.10",
    "ofFree": "a decimal below 1 such as 0.8",
}

_OF_TYPE = re.compile(r"Expected (?P<types>[a-z]+( \| [a-z]+)*), got [a-z]+")
_TYPES = {"array": "a list", "object": "fields", "int": "a whole number", "str": "a string"}


def sentence(error: msgspec.ValidationError, of: Any, value: object, *, field: str) -> str:
    """Say what was expected of *field*, and what came."""
    if isinstance(error.__cause__, ShareError):
        if isinstance(value, str):
            return str(error.__cause__)
        return f'expected a share in quotes, got {shown(value)}: write "{value}"'
    choices = [choice for choice in typing.get_args(of) if isinstance(choice, str)]
    if typing.get_origin(of) is Literal and choices:
        return f"expected {' or '.join(choices)}, got {shown(value)}"
    if of is bool:
        return f"expected true or false, got {shown(value)}"
    form = _FORMS.get(field, "")
    if form and ("regex" in str(error) or "length" in str(error)):
        return f"expected {form}, got {shown(value)}"
    if isinstance(value, dict) and "enum value" in str(error):
        known = typing.get_args(typing.get_args(of)[0])
        unknown = next(key for key in value if key not in known)
        return f"expected {', '.join(known[:-1])} or {known[-1]}, got {quoted(unknown)}"
    told = str(error).split(" - at ")[0].replace("`", "")
    if match := _OF_TYPE.fullmatch(told):
        types = [_TYPES.get(one, one) for one in match["types"].split(" | ") if one != "null"]
        return f"expected {' or '.join(types)}, got {shown(value)}"
    return f"{told} (here: {shown(value)})"


def shown(value: object) -> str:
    """Write a value as its author would recognise it."""
    match value:
        case None:
            return "nothing"
        case bool():
            return str(value).lower()
        case str():
            return quoted(value)
        case int() | float():
            return f"the number {value}"
        case list():
            return "a list"
        case _:
            return "fields"
