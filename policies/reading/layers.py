"""
One policy file to a layer of fields, and layers to the policy in force.

Each field is checked on its own, so that one reading reports every problem with its file, line and field.
"""

import difflib
import re
import types
import typing
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, TypeVar

import msgspec

from policies.cluster import Cluster
from policies.errors import Problem, ShareError, quoted
from policies.policy import EffectivePolicy, Placement, Policy, Source
from policies.reading.document import DocumentError, Node, read
from policies.reading.wording import sentence, shown
from policies.share import Headroom, Share

CLUSTER_FILE = "_cluster.yaml"
DEFAULT_FILE = "_default.yaml"

_NAMESPACE = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", re.ASCII)
_SECTIONS = frozenset(
    field.encode_name
    for field in msgspec.structs.fields(Policy)
    if isinstance(field.type, type) and issubclass(field.type, msgspec.Struct)
)

T = TypeVar("T")


class Layer(msgspec.Struct, frozen=True):
    """What one file says: plain values, and the line of each field."""

    file: str
    values: dict[str, Any]
    lines: dict[str, int]  # by dotted field

    def convert(self, to: type[T]) -> T:
        """Build the typed value; every field has passed already."""
        return msgspec.convert(self.values, to, dec_hook=decode_share)


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


def is_namespace(name: str) -> bool:
    """Whether Kubernetes could have a namespace called *name*."""
    return _NAMESPACE.fullmatch(name) is not None


def problem_of_name(name: str) -> Problem | None:
    """Say what is wrong with a policy file's name, if anything is."""
    if name in (CLUSTER_FILE, DEFAULT_FILE) or (name.endswith(".yaml") and is_namespace(name[: -len(".yaml")])):
        return None
    message = f"expected {CLUSTER_FILE}, {DEFAULT_FILE} or <namespace>.yaml: rename the file"
    return Problem(name, 0, "", message)


def read_layer(file: str, text: str, problems: list[Problem]) -> Layer:
    """Read one file; what is wrong with it is added to *problems* and left out of the layer."""
    try:
        root = read(text)
    except DocumentError as error:
        problems.append(Problem(file, error.line, "", error.message))
        return Layer(file=file, values={}, lines={})
    layer = Layer(file=file, values={}, lines={})
    if root.value is None:
        return layer
    model: type[msgspec.Struct] = Cluster if file == CLUSTER_FILE else Policy
    before = len(problems)
    for field, node, message in _faults(root, model, ""):
        problems.append(Problem(file, node.key_line or node.line, field, message))
    if len(problems) == before:
        layer.values.update(root.value)
        layer.lines.update(_lines(root))
        problems.extend(_whole_faults(layer, model))
    return layer


def effective(layers: Sequence[Layer], problems: list[Problem]) -> EffectivePolicy:
    """Lay *layers* over the built-in defaults, the last on top; conflicts between them are added to *problems*."""
    values: dict[str, Any] = {}
    sources: dict[str, Source] = {}
    for layer in layers:
        for key, value in layer.values.items():
            values[key] = {**values.get(key, {}), **value} if key in _SECTIONS else value
        sources.update({field: Source(layer.file, line) for field, line in layer.lines.items()})
    policy = msgspec.convert(values, Policy, dec_hook=decode_share)
    file = layers[-1].file if layers else ""
    name = file.removesuffix(".yaml") or "built-in"
    made = EffectivePolicy(file=file, name=name, policy=policy, places=policy.placement != Placement(), sources=sources)
    problems.extend(_conflicts(made))
    return made


def _conflicts(made: EffectivePolicy) -> Iterator[Problem]:
    share, headroom = made.policy.share, made.policy.memory.headroom
    if share.minimum > share.maximum:
        yield _conflict(made, "share.minimum", f"{share.minimum} is above share.maximum", "share.maximum")
    if share.pod_maximum is not None and share.pod_maximum < share.minimum:
        yield _conflict(made, "share.podMaximum", f"{share.pod_maximum} is below share.minimum", "share.minimum")
    if headroom >= share.minimum and made.source("share.minimum").file:
        message = f"{headroom} leaves nothing of the smallest share, share.minimum {share.minimum}"
        yield _conflict(made, "memory.headroom", message, "share.minimum")


def _conflict(made: EffectivePolicy, field: str, message: str, other: str) -> Problem:
    """Blame the field that was written last, in the file on top."""
    first, second = made.source(field), made.source(other)
    blamed = field if first.file == made.file or second.file != made.file else other
    source = made.source(blamed)
    return Problem(source.file, source.line, blamed, f"{message} ({second}): change one of the two")


def _faults(node: Node, model: type[msgspec.Struct], path: str) -> Iterator[tuple[str, Node, str]]:
    """Yield the field, the node and the sentence of everything in *node* that *model* does not allow."""
    if not isinstance(node.value, dict):
        yield path, node, f"expected fields, got {shown(node.value)}"
        return
    faults = [*_field_faults(node, model, path)]
    yield from faults
    if not faults and model not in (Policy, Cluster):  # those two are checked as a whole, layer over layer
        yield from _struct_faults(node, model, path)


def _field_faults(node: Node, model: type[msgspec.Struct], path: str) -> Iterator[tuple[str, Node, str]]:
    fields = {field.encode_name: field for field in msgspec.structs.fields(model)}
    for key, child in node.fields.items():
        here = f"{path}.{key}" if path else key
        if key in fields:
            yield from _value_faults(child, fields[key].type, here)
            continue
        near = difflib.get_close_matches(key, fields, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(fields)}"
        yield here, child, f"unknown field: {hint}"
    for name, field in fields.items():
        if field.required and name not in node.fields:
            yield f"{path}.{name}" if path else name, node, "is missing: add it"


def _struct_faults(node: Node, model: type, path: str) -> Iterator[tuple[str, Node, str]]:
    """Yield what only the whole mapping shows, such as two fields that exclude each other."""
    try:
        msgspec.convert(node.value, model, dec_hook=decode_share)
    except msgspec.ValidationError as error:
        if isinstance(error.__cause__, ValueError) and not isinstance(error.__cause__, ShareError):
            yield path, node, str(error.__cause__)


def _value_faults(node: Node, of: Any, path: str) -> Iterator[tuple[str, Node, str]]:
    plain = _plain(of)
    if _is_struct(plain):
        yield from _faults(node, plain, path)
        return
    item = _item(plain)
    if item is not None and isinstance(node.value, list):
        faults = [*_same_names(node, path)]
        for index, child in enumerate(node.items):
            faults += _value_faults(child, item, f"{path}[{index}]")
        if faults:
            yield from faults
            return
    try:
        msgspec.convert(node.value, of, dec_hook=decode_share)
    except msgspec.ValidationError as error:
        yield path, node, sentence(error, plain, node.value, field=re.sub(r"\[.*|.*\.", "", path))


def _same_names(node: Node, path: str) -> Iterator[tuple[str, Node, str]]:
    """Yield the items of a list that have the name of one before them."""
    names: set[str] = set()
    for index, child in enumerate(node.items):
        name = child.value.get("name") if isinstance(child.value, dict) else None
        if not isinstance(name, str):
            continue
        if name in names:
            yield f"{path}[{index}].name", child.fields["name"], f"{quoted(name)} stands here twice: remove one"
        names.add(name)


def _whole_faults(layer: Layer, model: type) -> Iterator[Problem]:
    try:
        layer.convert(model)
    except msgspec.ValidationError as error:
        yield Problem(layer.file, 0, "", str(error.__cause__ or error))


def _lines(root: Node) -> dict[str, int]:
    lines = {}
    for key, node in root.fields.items():
        lines[key] = node.key_line
        if key in _SECTIONS:
            lines.update({f"{key}.{inner}": child.key_line for inner, child in node.fields.items()})
    return lines


def _plain(of: Any) -> Any:
    """Take Annotated and `| None` off a type."""
    if typing.get_origin(of) is Annotated:
        return _plain(typing.get_args(of)[0])
    if typing.get_origin(of) in (typing.Union, types.UnionType):
        rest = [one for one in typing.get_args(of) if one is not type(None)]
        return _plain(rest[0]) if len(rest) == 1 else of
    return of


def _item(of: Any) -> Any:
    arguments = typing.get_args(of)
    return arguments[0] if typing.get_origin(of) in (list, tuple) else None


def _is_struct(of: Any) -> bool:
    return isinstance(of, type) and issubclass(of, msgspec.Struct)
