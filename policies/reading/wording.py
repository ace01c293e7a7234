"""What is wrong with a value in a policy file, for its author: what was expected, what came, and what to do."""

import difflib
import types
import typing
from collections.abc import Sequence
from typing import Annotated, Any, Literal

import msgspec
from msgspec import inspect

from policies.errors import ShareError, quoted
from policies.share import Headroom, Share

# As YAML 1.1 has them, which are strings here.
_BOOLEANS = {"yes": "true", "on": "true", "y": "true", "no": "false", "off": "false", "n": "false"}


def sentence(of: Any, value: object, error: msgspec.ValidationError | None = None) -> str:
    """Say what was expected by the annotation *of*, and what came; *error* is why msgspec did not take it."""
    if error is not None and isinstance(error.__cause__, ShareError) and isinstance(value, str):
        return str(error.__cause__)
    choices = typing.get_args(plain(of)) if typing.get_origin(plain(of)) is Literal else ()
    if choices:
        near = difflib.get_close_matches(str(value).lower(), choices, n=1)
        fix = f"did you mean {near[0]}?" if near else "write one of them"
        return f"expected {_any_of(choices)}, got {shown(value)}: {fix}"
    info = inspect.type_info(of)
    return f"expected {_expected(info)}, got {shown(value)}: {_fix(info, value)}"


def plain(of: Any) -> Any:
    """Take Annotated and `| None` off a type."""
    if typing.get_origin(of) is Annotated:
        return plain(typing.get_args(of)[0])
    if typing.get_origin(of) in (typing.Union, types.UnionType):
        rest = [one for one in typing.get_args(of) if one is not type(None)]
        return plain(rest[0]) if len(rest) == 1 else of
    return of


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
            return str(value)
        case list():
            return "a list" if value else "an empty list"
        case dict():
            return "a mapping"
        case _:
            return "another kind of value"


def _expected(info: inspect.Type) -> str:
    """Complete "expected …"."""
    match info:
        case inspect.Metadata(type=inner, extra=extra):
            return str(extra["form"]) if extra else _expected(inner)
        case inspect.UnionType(types=types):
            return " or ".join(_expected(one) for one in types if not isinstance(one, inspect.NoneType))
        case inspect.BoolType():
            return "true or false"
        case inspect.IntType(ge=least, le=most):
            return "a whole number" + _range(least, most)
        case inspect.StrType(max_length=longest) if longest:
            return f"a string of at most {longest} character{'s' * (longest > 1)}"
        case inspect.StrType(min_length=shortest):
            return "a string" if not shortest else "a string that is not empty"
        case inspect.CustomType(cls=cls) if issubclass(cls, Share | Headroom):
            return "a share in quotes"
        case (
            inspect.ListType(min_length=fewest, max_length=most)
            | inspect.VarTupleType(min_length=fewest, max_length=most)
        ):
            return "a list" + _items(fewest, most)
        case inspect.DictType(min_length=fewest, max_length=most):
            return "a mapping" + _items(fewest, most)
        case _:
            return "a mapping"


def _items(fewest: int | None, most: int | None) -> str:
    if most:
        return f" with {fewest} to {most} items" if fewest else f" with at most {most} items"
    return f" with at least {fewest} item{'s' * (fewest > 1)}" if fewest else ""


def _can_be_read(cls: type[Share | Headroom], text: str) -> bool:
    try:
        cls.parse(text)
    except ShareError:
        return False
    return True


def _fix(info: inspect.Type, value: object) -> str:
    """Say what to do."""
    is_scalar = isinstance(value, str | int | float)
    match _bare(info):
        case inspect.BoolType():
            return f"write {_BOOLEANS.get(str(value).lower(), 'one of the two')}"
        case inspect.CustomType(cls=cls) if issubclass(cls, Share | Headroom):
            is_only_unquoted = is_scalar and not isinstance(value, bool) and _can_be_read(cls, str(value))
            return f'write "{value}"' if is_only_unquoted else 'write it like "0.2"'
        case inspect.StrType() if is_scalar and not isinstance(value, str):
            return "put it in quotes"
        case (
            inspect.ListType(max_length=most)
            | inspect.VarTupleType(max_length=most)
            | inspect.DictType(max_length=most)
        ) if most and isinstance(value, list | dict) and len(value) > most:
            return f"take out {len(value) - most} of its {len(value)} items"
        case inspect.ListType(item_type=item) | inspect.VarTupleType(item_type=item):
            return _list_fix(item)
        case inspect.StructType(fields=fields):
            return f"write fields such as {fields[0].encode_name}"
        case inspect.DictType():
            return "write it like {key: value}"
        case _:
            example = _example(info)
            return f"write it like {example}" if example else "write one, or remove the field"


def _list_fix(item: inspect.Type) -> str:
    example = _example(item)
    return f"write it like [{example}]" if example else "begin each of its items with a dash"


def _example(info: inspect.Type) -> str:
    """Write a value that fits, as it stands in YAML; empty if the model names none."""
    match info:
        case inspect.Metadata(extra_json_schema={"examples": [first, *_]}):
            return quoted(first) if isinstance(first, str) else str(first)
        case inspect.Metadata(type=inner):
            return _example(inner)
        case inspect.UnionType(types=types):
            return next((example for one in types if (example := _example(one))), "")
        case _:
            return ""


def _bare(info: inspect.Type) -> inspect.Type:
    """Take metadata and `| None` off."""
    match info:
        case inspect.Metadata(type=inner):
            return _bare(inner)
        case inspect.UnionType(types=types):
            return _bare(next(one for one in types if not isinstance(one, inspect.NoneType)))
        case _:
            return info


def _range(least: float | None, most: float | None) -> str:
    if most is None:
        return "" if least is None else f" from {least} on"
    return f" from {least} to {most}"


def _any_of(choices: Sequence[str]) -> str:
    return f"{', '.join(choices[:-1])} or {choices[-1]}"
