"""The fields of a policy file, as the models declare them."""

from collections.abc import Iterator

import msgspec
from msgspec import inspect


def leaves(of: inspect.Type, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Yield the place of each field that has no fields of its own; 0 stands for the items of a list."""
    match of:
        case inspect.Metadata(type=inner):
            yield from leaves(inner, path)
        case inspect.UnionType(types=types):
            for one in types:
                if not isinstance(one, inspect.NoneType):
                    yield from leaves(one, path)
        case inspect.StructType(fields=fields):
            for field in fields:
                yield from leaves(field.type, (*path, field.encode_name))
        case inspect.ListType(item_type=item) | inspect.VarTupleType(item_type=item) if _has_fields(item):
            yield from leaves(item, (*path, 0))
        case _:
            yield path


def leaves_of(model: type[msgspec.Struct]) -> list[str]:
    """Name the fields of a file: `share.maximum`, `nodes[].offer`."""
    return [
        "".join("[]" if step == 0 else f".{step}" for step in place)[1:] for place in leaves(inspect.type_info(model))
    ]


def placed(field: str, value: object) -> object:
    """Write *value* where *field* names: `nodes[].offer` as the offer of one entry."""
    for step in reversed(field.replace("[]", ".[]").split(".")):
        value = [value] if step == "[]" else {step: value}
    return value


def _has_fields(of: inspect.Type) -> bool:
    return isinstance(of.type if isinstance(of, inspect.Metadata) else of, inspect.StructType)
