"""Pods and pod templates in YAML or JSON, as people keep them in files."""

import json
import re
from collections.abc import Iterator
from typing import Any

import msgspec
import yaml

from policies.contract import CONTAINER_ANNOTATION_PREFIX, SHARE_ANNOTATION, SHARE_ANNOTATION_ALIAS
from policies.document import DEEPEST, DocumentError, events
from policies.errors import GpuShareError, quoted
from policies.pod import Pod

LARGEST_BYTES = 8 * 1024 * 1024
MOST_NODES = 500_000

# Where the pod stands in each kind that holds one.
POD_AT: dict[str, tuple[str, ...]] = {
    "Pod": (),
    "PodTemplate": ("template",),
    **dict.fromkeys(
        ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "ReplicationController", "Job"), ("spec", "template")
    ),
    "CronJob": ("spec", "jobTemplate", "spec", "template"),
}

_STEP = re.compile(r"\.([^.\[]+)|\[(\d+|\.\.\.)\]")


class UnreadableError(GpuShareError):
    """An input that cannot be read; the message names file, line, field and fix."""


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc] # which one depends on the machine
    """YAML as the API machinery reads it: a date is a text, and 12:30:45 no number."""


_Loader.yaml_implicit_resolvers = {
    first: [
        (tag, pattern)
        for tag, pattern in resolvers
        if tag.rpartition(":")[2] not in ("timestamp", "value", "int", "float")
    ]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:int", re.compile(r"[-+]?(0|[1-9][0-9]*|0[0-7]+|0x[0-9a-fA-F]+)$"), list("-+0123456789")
)
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$"),
    list("-+.0123456789"),
)


class Workload(msgspec.Struct):
    """One object with a pod in it."""

    kind: str
    name: str
    namespace: str | None  # as written
    document: dict[str, Any]  # the whole object, changed in place by `replace_pod`
    pod: dict[str, Any]  # the pod or the template in it
    parsed: Pod
    misplaced: tuple[str, ...]  # annotations of ours that stand on the object instead of on its pod template

    def replace_pod(self, pod: dict[str, Any]) -> None:
        """Put *pod* where the pod was."""
        place = POD_AT[self.kind]
        if not place:
            self.document.clear()
            self.document.update(pod)
            return
        holder = self.document
        for step in place[:-1]:
            holder = holder[step]
        holder[place[-1]] = pod


class Input(msgspec.Struct):
    """One input: all its objects in order, and those with a pod."""

    documents: list[Any]
    workloads: list[Workload]


# The groups of the API that these kinds are of; a Job of another group is another's.
_GROUPS = ("", "apps", "batch", "extensions")
_SURROGATES = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}")


def read_input(text: str, file: str) -> Input:
    """
    Read a stream of documents; *file* is its name for messages.

    Raises:
        UnreadableError: If it is no YAML or JSON, or a pod in it has a field of the wrong type.
    """
    documents: list[Any] = []
    workloads: list[Workload] = []
    if text.lstrip()[:1] in ("{", "["):  # JSON writes some characters as a pair of escapes, which YAML does not know
        text = _SURROGATES.sub(lambda pair: str(json.loads(f'"{pair[0]}"')), text)
    for node in _nodes(text, file):
        document = _construct(node, file)
        if document is None:
            continue
        documents.append(document)
        workloads.extend(_workloads(document, node, file))
    return Input(documents, workloads)


def _nodes(text: str, file: str) -> list[yaml.Node]:
    try:
        for _ in events(text, largest_bytes=LARGEST_BYTES, most_nodes=MOST_NODES):
            pass
        return [*yaml.compose_all(text, Loader=_Loader)]
    except DocumentError as error:
        raise UnreadableError(f"{file}:{error.line}: {error.message}") from None
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise UnreadableError(f"{file}:{line}: not YAML: {error.problem}") from None


def _construct(node: yaml.Node, file: str) -> Any:
    try:
        return _unshared(yaml.constructor.SafeConstructor().construct_document(node), [MOST_NODES], 0)
    except (yaml.MarkedYAMLError, ValueError, TypeError) as error:
        problem = getattr(error, "problem", None) or str(error)
        mark = getattr(error, "problem_mark", None) or node.start_mark
        raise UnreadableError(f"{file}:{mark.line + 1}: not YAML: {problem}") from None


def _unshared(value: Any, left: list[int], depth: int) -> Any:
    """Copy what an alias stands for, so that a change in one place is none in another; *left* counts values."""
    left[0] -= 1
    if left[0] < 0 or depth > DEEPEST:
        raise ValueError("its aliases multiply or hold themselves: write the values out")
    if isinstance(value, dict):
        return {key: _unshared(inner, left, depth + 1) for key, inner in value.items()}
    if isinstance(value, list):
        return [_unshared(inner, left, depth + 1) for inner in value]
    return value


def _workloads(document: Any, node: yaml.Node, file: str) -> Iterator[Workload]:
    if not isinstance(document, dict) or not isinstance(document.get("kind"), str):
        line = node.start_mark.line + 1
        raise UnreadableError(f"{file}:{line}: kind: expected a Kubernetes object, got none: add apiVersion and kind")
    kind = document["kind"]
    if kind == "List" or (kind.endswith("List") and isinstance(document.get("items"), list)):
        inner = _child(node, "items")
        items = document.get("items") or []
        if not isinstance(items, list):
            line = (inner or node).start_mark.line + 1
            raise UnreadableError(f"{file}:{line}: items: expected a list of objects: correct it")
        for index, item in enumerate(items):
            found = _child(inner, index) if inner else None
            yield from _workloads(item, found or node, file)
    elif kind in POD_AT and str(document.get("apiVersion", "")).rpartition("/")[0] in _GROUPS:
        yield _workload(document, node, file)


def _workload(document: dict[str, Any], node: yaml.Node, file: str) -> Workload:
    kind = document["kind"]
    pod, pod_node = document, node
    for step in POD_AT[kind]:
        inner = pod.get(step)
        if not isinstance(inner, dict):
            place = ".".join(POD_AT[kind])
            line = pod_node.start_mark.line + 1
            raise UnreadableError(f"{file}:{line}: {place}: expected the pod template of a {kind}, got none: add it")
        pod, pod_node = inner, _child(pod_node, step) or pod_node
    _drop_empty_metadata(document)
    _drop_empty_metadata(pod)
    _check_annotations(pod, pod_node, file)
    metadata = document.get("metadata")
    outer = metadata if isinstance(metadata, dict) else {}
    name, namespace = outer.get("name") or outer.get("generateName"), outer.get("namespace")
    annotations = outer.get("annotations") if pod is not document else None
    return Workload(
        kind=kind,
        name=str(name or "(no name)"),
        namespace=str(namespace) if namespace else None,
        document=document,
        pod=pod,
        parsed=_parse(pod, pod_node, file),
        misplaced=tuple(key for key in annotations if _is_share(key)) if isinstance(annotations, dict) else (),
    )


def _drop_empty_metadata(holder: dict[str, Any]) -> None:
    """`metadata:` with nothing behind it means no metadata."""
    if holder.get("metadata", ...) is None:
        del holder["metadata"]


def _is_share(key: object) -> bool:
    return key in (SHARE_ANNOTATION, SHARE_ANNOTATION_ALIAS) or str(key).startswith(CONTAINER_ANNOTATION_PREFIX)


def _check_annotations(pod: dict[str, Any], node: yaml.Node, file: str) -> None:
    """Name the mistake that everybody makes first: a share without quotes, which the API server refuses."""
    metadata = pod.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    if not isinstance(annotations, dict):
        return
    for key, value in annotations.items():
        if isinstance(value, str):
            continue
        line = _line(node, ["metadata", "annotations", key])
        shown = str(value).lower() if isinstance(value, bool) else str(value)
        got = "nothing" if value is None else f"{shown} without quotes"
        raise UnreadableError(
            f"{file}:{line}: metadata.annotations.{key}: expected a text, got {got}, which the API server refuses: "
            f'write {key}: "{"0.2" if value is None else shown}"'
        )


def _parse(pod: dict[str, Any], node: yaml.Node, file: str) -> Pod:
    try:
        return msgspec.convert(pod, Pod)
    except msgspec.ValidationError as error:
        message, _, where = str(error).replace("`", "").partition(" - at ")
        where = where.replace("key in ", "").removeprefix("$").removeprefix(".")
        steps = [int(index) if index.isdigit() else name for name, index in _STEP.findall(f".{where}")]
        place = f"{file}:{_line(node, steps)}: {where or 'pod'}"
        raise UnreadableError(f"{place}: {_in_words(message)}") from None


def _in_words(message: str) -> str:
    """Say msgspec's finding to somebody who writes YAML."""
    if missing := re.search(r"missing required field (\w+)", message):
        return f"{missing[1]} is missing: add it"
    if found := re.search(r"Expected str.*got (int|float|bool)", message):
        return f"expected a text, got {'true or false' if found[1] == 'bool' else 'a number'}: put it in quotes"
    return f"{message}: correct it"


def _line(node: yaml.Node, steps: list[Any]) -> int:
    """The line of the value at *steps*, or of the last of them that is there."""
    for step in steps:
        inner = _child(node, step)
        if inner is None:
            break
        node = inner
    return int(node.start_mark.line) + 1


def _child(node: yaml.Node, step: str | int) -> yaml.Node | None:
    if isinstance(node, yaml.MappingNode):
        return next((value for key, value in node.value if key.value == step), None)
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        inner: yaml.Node = node.value[step]
        return inner
    return None


def shown_name(workload: Workload, namespace: str) -> str:
    """How messages call it: `Deployment team-vision/detector`."""
    return f"{workload.kind} {namespace}/{quoted(workload.name, 253)[1:-1]}"
