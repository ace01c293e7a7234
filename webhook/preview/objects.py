"""Kubernetes objects out of the text of a file, YAML or JSON, with the places of their fields."""

import re
from collections.abc import Iterator
from typing import Any, TypeGuard

import yaml
from yaml.composer import Composer
from yaml.resolver import Resolver

from policies.errors import GpuShareError, quoted
from policies.reading.document import DocumentError, events
from policies.reading.syntax import syntax_fault
from webhook.preview.json_texts import as_yaml
from webhook.preview.plain_values import DEEPEST, MERGE, STRING, key_text, plain_tag, plain_value

LARGEST_BYTES = 8 * 1024 * 1024
MOST_NODES = 500_000

_INVALID = "invalid YAML: "
# Of a template; Argo has it too, in texts that are valid YAML. Up to the next {{, so that each is looked at once.
_HELM = re.compile(r"\{\{(?:(?!\{\{).)*?\}\}")
_BEHIND_START = re.compile(r"(?m)^(---[ \t]*\r?\n)\ufeff")  # where files with a byte order mark were joined


class UnreadableError(GpuShareError):
    """An input that cannot be read; the message names file, line, field and fix."""

    def __init__(self, file: str, line: int, problem: str) -> None:
        self._file, self._line, self._problem = file, line, problem
        super().__init__(f"{file}:{line}: {problem}")

    def of(self, name: str) -> str:
        """Say whose field it is, too: of an object in a list, of which the others can be read."""
        return f"{self._file}:{self._line}: {name}: {self._problem}"


class _AsApiMachinery:
    """YAML as the API machinery reads it: a date is a string, and 12:30:45 no number."""

    def resolve(self, kind: type[yaml.Node], value: str, implicit: tuple[bool, bool]) -> str:
        is_plain = kind is yaml.ScalarNode and implicit[0]
        return plain_tag(value) if is_plain else str(super().resolve(kind, value, implicit))  # type: ignore[misc]


class _Loader(_AsApiMachinery, getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc] # by machine
    pass


class _AsYamlSays(_AsApiMachinery, Composer, Resolver):
    """Does what PyYAML does not: a later anchor replaces one of its name, and the tag `!` makes a scalar a string."""

    def __init__(self, found: Iterator[yaml.Event]) -> None:
        Composer.__init__(self)
        Resolver.__init__(self)
        self._found = found
        self._next: yaml.Event | None = next(found, None)

    def peek_event(self) -> yaml.Event | None:
        return self._next

    def get_event(self) -> yaml.Event | None:
        event, self._next = self._next, next(self._found, None)
        if _is_tagged_string(event):
            event.tag = STRING
        return event

    def check_event(self, *kinds: type[yaml.Event]) -> bool:
        return isinstance(self._next, kinds)

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        if not isinstance(self._next, yaml.AliasEvent):
            self.anchors.pop(getattr(self._next, "anchor", None), None)
        return super().compose_node(parent, index)

    def documents(self) -> Iterator[yaml.Node]:
        while self.check_node():
            if (node := self.get_node()) is not None:
                yield node


def read_objects(text: str, file: str) -> Iterator[tuple[Any, yaml.Node]]:
    """
    Yield each document that is not empty, as a value and as the node it was made of.

    Raises:
        UnreadableError: If *text* is invalid YAML or JSON; *file* is its name there.
    """
    text = text.removeprefix("\ufeff")
    if text.lstrip()[:1] in ("{", "["):
        text = as_yaml(text)
    text = _BEHIND_START.sub(r"\1", text)
    for node in _nodes(text, file):
        try:
            document = plain_value(node, most=MOST_NODES)
        except DocumentError as error:
            raise _unreadable(text, file, error.line, error.message) from None
        if document is not None:
            yield document, node


def line_of(node: yaml.Node, steps: list[Any]) -> int:
    """The line of the value at *steps*, or of the last of them that is there."""
    for step in steps:
        inner = child(node, step)
        if inner is None:
            break
        node = inner
    return int(node.start_mark.line) + 1


def child(node: yaml.Node, step: str | int) -> yaml.Node | None:
    """Find the value of a field or the item of a list; None if it is not there."""
    if isinstance(node, yaml.MappingNode):
        return next((value for key, value in node.value if key.tag != MERGE and key_text(key) == step), None)
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        inner: yaml.Node = node.value[step]
        return inner
    return None


def children(node: yaml.Node) -> dict[str, yaml.Node]:
    """Find the values of all fields, as `child` does one by one."""
    pairs = node.value if isinstance(node, yaml.MappingNode) else ()
    return {key_text(key): value for key, value in reversed(pairs) if key.tag != MERGE}


def _nodes(text: str, file: str) -> list[yaml.Node]:
    try:
        is_special = False
        anchors: set[str] = set()
        for event in _events(text):
            is_special |= _is_twin(event, anchors) or _is_tagged_string(event)
        return [*(_AsYamlSays(_events(text)).documents() if is_special else yaml.compose_all(text, Loader=_Loader))]
    except DocumentError as error:
        raise _unreadable(text, file, error.line, error.message) from None
    except yaml.YAMLError as error:
        raise _unreadable(text, file, *syntax_fault(error, text)) from None


def _events(text: str) -> Iterator[yaml.Event]:
    return events(text, largest_bytes=LARGEST_BYTES, most_nodes=MOST_NODES, deepest=DEEPEST, may_say_version=True)


def _is_tagged_string(event: yaml.Event | None) -> TypeGuard[yaml.ScalarEvent]:
    return isinstance(event, yaml.ScalarEvent) and event.tag == "!"


def _is_twin(event: yaml.Event, anchors: set[str]) -> bool:
    """Whether an anchor is among those before it in its document, to which it is added."""
    if isinstance(event, yaml.DocumentStartEvent):
        anchors.clear()
    anchor = None if isinstance(event, yaml.AliasEvent) else getattr(event, "anchor", None)
    if anchor is None:
        return False
    is_twin = anchor in anchors
    anchors.add(anchor)
    return is_twin


def _unreadable(text: str, file: str, line: int, problem: str) -> UnreadableError:
    if problem.startswith(_INVALID) and (template := _HELM.search(text)):
        line = text.count("\n", 0, template.start()) + 1
        problem = f"{quoted(template[0])} is of a Helm template: give what helm template prints of the chart"
    return UnreadableError(file, line, problem)
