"""
Every fault in a policy file: the field, its line, what was expected, what came and what to do.

Each field is checked on its own, so that one reading reports every fault.
"""

import difflib
import typing
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import FieldInfo

from policies.cluster import Cluster
from policies.errors import ShareError, quoted
from policies.policy import Policy
from policies.reading.document import Node
from policies.reading.wording import plain, sentence
from policies.share import Headroom, Share


class Fault(NamedTuple):
    """One fault in one file."""

    field: str  # dotted path such as `share.maximum`; empty if the fault is the file as a whole
    line: int  # 1 is the first
    message: str


def faults(node: Node, model: type[msgspec.Struct], path: str = "") -> Iterator[Fault]:
    """Yield everything in *node*, which stands at *path*, that *model* does not allow, found as it is asked for."""
    if not isinstance(node.value, dict):
        yield _fault(path, node, sentence(model, node.value))
        return
    is_good = True
    for fault in _field_faults(node, model, path):
        is_good = False
        yield fault
    if is_good and model is not Policy:  # which is checked as a whole layer over layer
        yield from _struct_faults(node, model, path)


def is_valid(policy: object) -> bool:
    """Whether *policy* has no fault, at the cost of one look and not of one for each field. False may be wrong."""
    try:
        msgspec.convert(policy, Policy, dec_hook=decode_share)
    except msgspec.ValidationError:
        return False
    return True


def decode_share(of: type, value: object) -> object:
    """
    Build the types that YAML has not; the `dec_hook` of msgspec.

    Raises:
        ShareError: If *value* is an invalid share.
        NotImplementedError: If *of* is another type.
    """
    if not issubclass(of, Share | Headroom):
        raise NotImplementedError(of)
    if not isinstance(value, str):
        raise ShareError(str(value), "is not in quotes")
    return of.parse(value)


def is_section(of: Any) -> bool:
    """Whether a field of this type is a mapping with fields of its own."""
    return isinstance(of, type) and issubclass(of, msgspec.Struct)


@cache
def _fields(model: type[msgspec.Struct]) -> tuple[FieldInfo, ...]:
    return msgspec.structs.fields(model)


def _dotted(model: type[msgspec.Struct], path: str = "") -> Iterator[str]:
    for field in _fields(model):
        yield f"{path}{field.encode_name}"
        if is_section(field.type):
            yield from _dotted(field.type, f"{field.encode_name}.")


_FILES: dict[type[msgspec.Struct], str] = {Policy: "_default.yaml or <namespace>.yaml", Cluster: "_cluster.yaml"}
_DOTTED = {model: frozenset(_dotted(model)) for model in _FILES}


def _field_faults(node: Node, model: type[msgspec.Struct], path: str) -> Iterator[Fault]:
    fields = {field.encode_name: field for field in _fields(model)}
    for key, child in node.fields.items():
        here = _join(path, key)
        if key in fields and not _is_other_frameworks(here, child, model):
            yield from _value_faults(child, fields[key].type, here)
        else:
            yield _fault(here, child, _unknown(here, key, model))
    for name, field in fields.items():
        if field.required and name not in node.fields:
            yield _fault(_join(path, name), node, "is missing: add it")


def _is_other_frameworks(path: str, node: Node, model: type[msgspec.Struct]) -> bool:
    """Both files have `frameworks`: a list of additions to the catalogue in one, rules in the other."""
    return path == "frameworks" and isinstance(node.value, dict if model is Cluster else list)


def _unknown(path: str, key: str, model: type[msgspec.Struct]) -> str:
    for other, file in _FILES.items():
        if other is not model and path in _DOTTED[other]:
            return f"belongs in {file}: move it there"
    fields = [field.encode_name for field in _fields(model)]
    near = difflib.get_close_matches(key, fields, n=1, cutoff=0.5)
    return f"unknown field: did you mean {near[0]}?" if near else f"unknown field: known are {', '.join(fields)}"


def _struct_faults(node: Node, model: type, path: str) -> Iterator[Fault]:
    """Yield what only the whole mapping shows, such as two fields that exclude each other."""
    try:
        msgspec.convert(node.value, model, dec_hook=decode_share)
    except msgspec.ValidationError as error:
        if isinstance(error.__cause__, ValueError) and not isinstance(error.__cause__, ShareError):
            field, _, rest = str(error.__cause__).partition(" ")
            if field in node.fields:
                yield _fault(_join(path, field), node.fields[field], rest)
            else:
                yield _fault(path, node, str(error.__cause__))


def _value_faults(node: Node, of: Any, path: str) -> Iterator[Fault]:
    bare = plain(of)
    if is_section(bare) and (node.value is not None or bare is of):
        yield from faults(node, bare, path)
        return
    is_good = True
    for fault in _inner_faults(node, bare, path):
        is_good = False
        yield fault
    if not is_good:
        return
    try:
        msgspec.convert(node.value, of, dec_hook=decode_share)
    except msgspec.ValidationError as error:
        yield _fault(path, node, sentence(of, node.value, error))


def _inner_faults(node: Node, bare: Any, path: str) -> Iterator[Fault]:
    """Yield the faults of what a list or a mapping holds."""
    if isinstance(node.value, list) and typing.get_origin(bare) in (list, tuple):
        yield from _same_names(node, path)
        for index, child in enumerate(node.items):
            yield from _value_faults(child, typing.get_args(bare)[0], f"{path}[{index}]")
    elif isinstance(node.value, dict) and typing.get_origin(bare) is dict:
        of_key, of_value = typing.get_args(bare)
        for key, child in node.fields.items():
            yield from _value_faults(Node(key, child.key_line), of_key, path)
            yield from _value_faults(child, of_value, _join(path, key))


def _same_names(node: Node, path: str) -> Iterator[Fault]:
    """Yield the items of a list that have the name of one before them."""
    names: set[str] = set()
    for index, child in enumerate(node.items):
        name = child.value.get("name") if isinstance(child.value, dict) else None
        if not isinstance(name, str):
            continue
        if name in names:
            yield _fault(f"{path}[{index}].name", child.fields["name"], f"{quoted(name)} is here twice: remove one")
        names.add(name)


def _join(path: str, key: str) -> str:
    shown = quoted(key, 80)[1:-1]  # printable, whatever it is
    return f"{path}.{shown}" if path else shown


def _fault(path: str, node: Node, message: str) -> Fault:
    return Fault(path, node.key_line or node.line, message)
