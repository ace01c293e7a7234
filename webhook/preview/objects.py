"""Kubernetes objects out of the text of a file, YAML or JSON, with the places of their fields."""

import json
import re
from collections.abc import Iterator
from typing import Any

import msgspec
import yaml

from policies.errors import GpuShareError, quoted
from policies.reading.document import DocumentError, events
from policies.reading.syntax import syntax_fault
from webhook.preview.plain_values import MERGE, key_text, plain_tag, plain_value

LARGEST_BYTES = 8 * 1024 * 1024
MOST_NODES = 500_000

_INVALID = "invalid YAML: "
# Of a template; Argo has it too, in texts that are valid YAML. Up to the next {{, so that each is looked at once.
_HELM = re.compile(r"\{\{(?:(?!\{\{).)*?\}\}")
_SURROGATES = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}")

# Characters that JSON has in its texts as they are, and YAML not at all, or as the end of a line.
_NOT_IN_YAML = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
_KEY = re.compile(r'"(?:[^"\\]|\\.)*+"(\s*:)?')  # or another text, without the colon
_LONGEST_KEY = 1000  # characters; YAML takes 1024 without a question mark


class UnreadableError(GpuShareError):
    """An input that cannot be read; the message names file, line, field and fix."""

    def __init__(self, file: str, line: int, problem: str) -> None:
        self._file, self._line, self._problem = file, line, problem
        super().__init__(f"{file}:{line}: {problem}")

    def of(self, name: str) -> str:
        """Say whose field it is, too: of an object in a list, of which the others can be read."""
        return f"{self._file}:{self._line}: {name}: {self._problem}"


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc] # which one depends on the machine
    """YAML as the API machinery reads it: a date is a string, and 12:30:45 no number."""

    def resolve(self, kind: type[yaml.Node], value: str, implicit: tuple[bool, bool]) -> str:
        is_plain = kind is yaml.ScalarNode and implicit[0]
        return plain_tag(value) if is_plain else str(super().resolve(kind, value, implicit))


def read_objects(text: str, file: str) -> Iterator[tuple[Any, yaml.Node]]:
    """
    Yield each document that is not empty, as a value and as the node it was made of.

    Raises:
        UnreadableError: If *text* is invalid YAML or JSON; *file* is its name there.
    """
    if text.lstrip()[:1] in ("{", "["):
        text = _as_yaml(text)
    for node in _nodes(text, file):
        try:
            document = plain_value(node, most=MOST_NODES)
        except DocumentError as error:
            raise _unreadable(text, file, error.line, error.message) from None
        if document is not None:
            yield document, node


def _as_yaml(text: str) -> str:
    """Write JSON so that YAML reads the same in it; its parts stay in their lines."""
    # Some characters are a pair of escapes there, which YAML does not know.
    text = _SURROGATES.sub(lambda pair: str(json.loads(f'"{pair[0]}"')), text)
    try:
        msgspec.json.decode(text, type=msgspec.Raw)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return text
    text = _NOT_IN_YAML.sub(lambda sign: f"\\u{ord(sign[0]):04x}", text)
    return _KEY.sub(lambda one: f"? {one[0]}" if one[1] and len(one[0]) > _LONGEST_KEY else one[0], text)


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


def _nodes(text: str, file: str) -> list[yaml.Node]:
    try:
        for _ in events(text, largest_bytes=LARGEST_BYTES, most_nodes=MOST_NODES, may_say_version=True):
            pass
        return [*yaml.compose_all(text, Loader=_Loader)]
    except DocumentError as error:
        raise _unreadable(text, file, error.line, error.message) from None
    except yaml.YAMLError as error:
        raise _unreadable(text, file, *syntax_fault(error, text)) from None


def _unreadable(text: str, file: str, line: int, problem: str) -> UnreadableError:
    if problem.startswith(_INVALID) and (template := _HELM.search(text)):
        line = text.count("\n", 0, template.start()) + 1
        problem = f"{quoted(template[0])} is of a Helm template: give what helm template prints of the chart"
    return UnreadableError(file, line, problem)
