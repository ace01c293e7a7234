"""
The configurations in a file: one of NVIDIA's own, or several under names.

Several are in the ConfigMap that NVIDIA's Helm chart or the GPU Operator reads, or in the values of either chart, under
`config.map` or `devicePlugin.config.data`.
"""

import re

import msgspec

from policies.errors import PolicyError, Problem, quoted
from policies.migration.written import Text
from policies.reading.document import DocumentError, Node, read
from policies.reading.wording import shown

_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?", re.ASCII)  # nodes name it by the value of a label
_BLOCK = re.compile(r"\|[-+0-9]*\s*(#.*)?")
_VALUES = (("config", "map"), ("devicePlugin", "config", "data"))  # of NVIDIA's chart, and of the Operator's


class Configurations(msgspec.Struct):
    """What a file holds."""

    texts: list[Text]
    are_named: bool  # nodes choose one of them by a label
    default: str | None = None  # for nodes without the label, where the file says it


def configurations_in(text: str, file: str) -> Configurations:
    """
    Find the configurations in *text*.

    Raises:
        PolicyError: If it is invalid YAML, or a ConfigMap or chart's values without any configuration.
    """
    try:
        root = read(text)
    except DocumentError as error:
        raise PolicyError((Problem(file, error.line, "", error.message),)) from None
    for path in (("data",), *_VALUES):
        if path == ("data",) and not (isinstance(root.value, dict) and root.value.get("kind") == "ConfigMap"):
            continue
        node = _at(root, path)
        if node is not None:
            return _named(node, text, file, ".".join(path), _default(root, path))
    if isinstance(root.value, dict) and "kind" in root.value:
        got = root.value["kind"]
        message = "has no data" if got == "ConfigMap" else f"expected a ConfigMap, got {shown(got)}"
        raise PolicyError((Problem(file, 1, "kind", f"{message}: name the ConfigMap that NVIDIA's plugin reads"),))
    return Configurations([Text("", text)], are_named=False)


def _at(node: Node, path: tuple[str, ...]) -> Node | None:
    for step in path:
        inner = node.fields.get(step) if isinstance(node.value, dict) else None
        if inner is None:
            return None
        node = inner
    return node


def _default(root: Node, path: tuple[str, ...]) -> str | None:
    """The name that a chart's values give to `default`, beside the configurations."""
    node = _at(root, (*path[:-1], "default")) if len(path) > 1 else None
    return node.value if node is not None and isinstance(node.value, str) and node.value else None


def _named(node: Node, text: str, file: str, path: str, default: str | None) -> Configurations:
    lines = text.split("\n")
    found, problems = [], []
    for name, child in node.fields.items():
        here = f"{path}.{quoted(name, 80)[1:-1]}"
        if not _NAME.fullmatch(name):
            message = "expected a name that can be the value of a node's label: rename the configuration"
            problems.append(Problem(file, child.key_line, here, message))
        elif not isinstance(child.value, str):
            message = f"expected the text of a configuration, got {shown(child.value)}: write it below, behind |"
            problems.append(Problem(file, child.key_line, here, message))
        else:
            found.append(_text(name, child, lines))
    if not node.fields:
        message = f"expected configurations under names, got {shown(node.value)}: name the file that holds them"
        problems.append(Problem(file, node.key_line or node.line, path, message))
    if default is not None and default not in node.fields:
        message = f"{quoted(default)} is none of the configurations: name one of them"
        problems.append(Problem(file, node.line, "default", message))
    if problems:
        raise PolicyError(tuple(problems))
    return Configurations(found, are_named=True, default=default)


def _text(name: str, node: Node, lines: list[str]) -> Text:
    """Take a configuration out of its scalar; the lines of a literal block are lines of the file."""
    first = lines[node.line - 1] if node.line <= len(lines) else ""
    is_block = _BLOCK.fullmatch(first.rpartition(": ")[2].strip()) is not None
    return Text(name, node.value, node.line + 1 if is_block else node.line, has_lines=is_block)
