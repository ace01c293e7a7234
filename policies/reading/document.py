"""
Hostile YAML to plain values with line numbers.

Nothing is built before the stream of events has passed: the C loader itself crashes on 60 KB of brackets, aliases
multiply, tags construct, and duplicate keys let the last one win in silence. Scalars follow YAML 1.2, so that `no`
is a string and `010` is not eight.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
import yaml

from policies.errors import GpuShareError, quoted
from policies.reading.syntax import syntax_fault

LARGEST_BYTES = 1024 * 1024  # a ConfigMap, with all its files, is at most this
DEEPEST = 32
MOST_NODES = 50_000

# libyaml compares each %TAG with all before it, and copies its prefix into each tag that uses it: 1 MB takes 10 s.
_LINE_BEGINS = r"(?<![^\n\r\x85\u2028\u2029\ufeff])"
_DIRECTIVE = re.compile(f"{_LINE_BEGINS}%")
_TAG_DIRECTIVE = re.compile(rf"{_LINE_BEGINS}%TAG\b")
_PARSER: type = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the C one where libyaml was at hand
_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]*)", re.ASCII)
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", re.ASCII)
_CONSTANTS = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_YES, _NO = ("y", "yes", "on"), ("n", "no", "off")
_OLD_CONSTANTS = {
    **_CONSTANTS,
    **{form: word in _YES for word in (*_YES, *_NO) for form in (word, word.capitalize(), word.upper())},
}


class DocumentError(GpuShareError):
    """An invalid YAML document."""

    def __init__(self, line: int, message: str) -> None:
        self.line = line  # 1 is the first
        self.message = message
        super().__init__(f"line {line}: {message}")


class Node(msgspec.Struct, gc=False):
    """One value of a document and where it stands."""

    value: Any  # str, int, float, bool, None, list or dict
    line: int  # 1 is the first
    fields: "dict[str, Node]" = {}
    items: "list[Node]" = []
    key_line: int = 0  # of the key that names this value, or 0


def read(text: str, *, old_booleans: bool = False) -> Node:
    """
    Read one document; with *old booleans* values such as `yes` are booleans as well, as in YAML 1.1, and keys are not.

    Raises:
        DocumentError: If *text* is invalid YAML, is too large or too deep, holds more than one document, a directive,
            an alias, an anchor, a tag or a duplicate key, or has a key that is not a string.
    """
    of_values = _OLD_CONSTANTS if old_booleans else _CONSTANTS
    root: Node | None = None
    open_nodes: list[Node] = []
    keys: list[Node | None] = []  # of each open node: the key that still waits for its value
    for event in events(text):
        if not isinstance(event, yaml.NodeEvent):
            if isinstance(event, yaml.CollectionEndEvent):
                open_nodes.pop()
                keys.pop()
            elif isinstance(event, yaml.DocumentStartEvent) and root is not None:
                raise DocumentError(_line(event), "a policy file is one document: remove what follows the second ---")
            continue
        is_key = bool(open_nodes) and isinstance(open_nodes[-1].value, dict) and keys[-1] is None
        node = _node(event, _CONSTANTS if is_key else of_values)
        if not open_nodes:
            root = node
        else:
            _attach(open_nodes[-1], keys, node)
        if isinstance(event, yaml.CollectionStartEvent):
            open_nodes.append(node)
            keys.append(None)
    return root if root is not None else Node(None, 1)


def events(
    text: str,
    *,
    largest_bytes: int = LARGEST_BYTES,
    most_nodes: int = MOST_NODES,
    deepest: int = DEEPEST,
    may_say_version: bool = False,
) -> Iterator[yaml.Event]:
    """
    Yield the events of a YAML stream, within the limits on size, depth and number of nodes.

    Raises:
        DocumentError: If *text* is invalid YAML, is beyond a limit, or has a %TAG directive, or any directive unless it
            *may say* which version of YAML each document is of.
    """
    if len(text.encode(errors="surrogatepass")) > largest_bytes:
        raise DocumentError(1, f"larger than {largest_bytes // 1024} KiB: split it")
    if directive := (_TAG_DIRECTIVE if may_say_version else _DIRECTIVE).search(text):
        line = text.count("\n", 0, directive.start()) + 1
        message = f"a line that begins with {directive[0]} is a directive: remove it, or indent it if it is text"
        raise DocumentError(line, message)
    depth = nodes = 0
    try:
        for event in yaml.parse(text, Loader=_PARSER):
            if isinstance(event, yaml.NodeEvent):
                nodes += 1
                depth += isinstance(event, yaml.CollectionStartEvent)
            else:
                depth -= isinstance(event, yaml.CollectionEndEvent)
            if depth > deepest or nodes > most_nodes:
                limit = f"{deepest} levels" if depth > deepest else f"{most_nodes} values"
                raise DocumentError(_line(event), f"more than {limit}: simplify it")
            yield event
    except yaml.YAMLError as error:
        raise DocumentError(*syntax_fault(error, text)) from None


def _line(event: yaml.Event) -> int:
    return event.start_mark.line + 1 if event.start_mark else 1


def _node(event: yaml.NodeEvent, constants: Mapping[str, bool | None]) -> Node:
    line = _line(event)
    if isinstance(event, yaml.AliasEvent):
        written = quoted(f"*{event.anchor}")
        raise DocumentError(
            line, f"a value that begins with * is an alias, which is not allowed: put it in quotes, {written}"
        )
    if event.anchor or getattr(event, "tag", None) not in (None, "!"):
        raise DocumentError(line, "anchors and tags are not allowed: write a plain value")
    if isinstance(event, yaml.ScalarEvent):
        return Node(_scalar(event, constants), line)
    return Node({}, line, fields={}) if isinstance(event, yaml.MappingStartEvent) else Node([], line, items=[])


def _attach(parent: Node, keys: list[Node | None], node: Node) -> None:
    """Put *node* under *parent*, as an item, as a key, or as the value of the key before it."""
    if isinstance(parent.value, list):
        parent.value.append(node.value)
        parent.items.append(node)
        return
    key = keys[-1]
    if key is not None:
        node.key_line = key.line
        parent.value[key.value] = node.value
        parent.fields[key.value] = node
        keys[-1] = None
    elif not isinstance(node.value, str):
        raise DocumentError(node.line, "a key must be a string: put it in quotes")
    elif node.value in parent.fields:
        raise DocumentError(node.line, f"{quoted(node.value)} is here twice: remove one")
    else:
        keys[-1] = node


def _scalar(event: yaml.ScalarEvent, constants: Mapping[str, bool | None]) -> str | int | float | bool | None:
    text: str = event.value
    if event.style or event.tag == "!":  # quoted, or a block
        return text
    if text in constants:
        return constants[text]
    if _INTEGER.fullmatch(text) and len(text) <= 18:  # noqa: PLR2004 - longer ones are no setting of ours
        return int(text)
    is_float = not text.isdigit() and _FLOAT.fullmatch(text)
    return float(text) if is_float else text
