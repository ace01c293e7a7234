"""Pods and pod templates in YAML or JSON, as people keep them in files."""

from collections.abc import Iterator
from typing import Any

import msgspec
import yaml

from policies.contract import CONTAINER_ANNOTATION_PREFIX, SHARE_ANNOTATION, SHARE_ANNOTATION_ALIAS
from policies.errors import quoted
from policies.pod import Pod
from webhook.preview.fields import fault_of
from webhook.preview.objects import UnreadableError, child, line_of, read_objects

# Where the pod stands in each kind that holds one.
POD_AT: dict[str, tuple[str, ...]] = {
    "Pod": (),
    "PodTemplate": ("template",),
    **dict.fromkeys(
        ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "ReplicationController", "Job"), ("spec", "template")
    ),
    "CronJob": ("spec", "jobTemplate", "spec", "template"),
}


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


def read_input(text: str, file: str) -> Input:
    """
    Read a stream of documents; *file* is its name for messages.

    Raises:
        UnreadableError: If it is invalid YAML or JSON, or a pod in it has a field of the wrong type.
    """
    documents: list[Any] = []
    workloads: list[Workload] = []
    for document, node in read_objects(text, file):
        documents.append(document)
        workloads.extend(_workloads(document, node, file))
    return Input(documents, workloads)


def _workloads(document: Any, node: yaml.Node, file: str) -> Iterator[Workload]:
    if not isinstance(document, dict) or not isinstance(document.get("kind"), str):
        line = node.start_mark.line + 1
        raise UnreadableError(f"{file}:{line}: kind: expected a Kubernetes object, got none: add apiVersion and kind")
    kind = document["kind"]
    if kind == "List" or (kind.endswith("List") and isinstance(document.get("items"), list)):
        inner = child(node, "items")
        items = document.get("items") or []
        if not isinstance(items, list):
            line = (inner or node).start_mark.line + 1
            raise UnreadableError(f"{file}:{line}: items: expected a list of objects: correct it")
        for index, item in enumerate(items):
            found = child(inner, index) if inner else None
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
        pod, pod_node = inner, child(pod_node, step) or pod_node
    _drop_empty_metadata(document)
    _drop_empty_metadata(pod)
    _check_annotations(pod, pod_node, file)
    _fill_empty_texts(pod)
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
    """Name the mistake that everybody makes first: a share without quotes, which the API server rejects."""
    metadata = pod.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    if not isinstance(annotations, dict):
        return
    for key, value in annotations.items():
        if value is None or isinstance(value, str):
            continue
        line = line_of(node, ["metadata", "annotations", key])
        shown = str(value).lower() if isinstance(value, bool) else str(value)
        raise UnreadableError(
            f"{file}:{line}: metadata.annotations.{key}: expected a string, got {shown} without quotes, which the API "
            f'server rejects: write {key}: "{shown}"'
        )


def _fill_empty_texts(pod: dict[str, Any]) -> None:
    """A label, annotation or selector with nothing behind it is an empty string to the API server."""
    metadata, spec = pod.get("metadata"), pod.get("spec")
    for holder, fields in ((metadata, ("annotations", "labels")), (spec, ("nodeSelector",))):
        for field in fields:
            texts = holder.get(field) if isinstance(holder, dict) else None
            if isinstance(texts, dict):
                texts.update({key: "" for key, value in texts.items() if value is None})


def _parse(pod: dict[str, Any], node: yaml.Node, file: str) -> Pod:
    try:
        return msgspec.convert(pod, Pod)
    except msgspec.ValidationError as error:
        place, message = fault_of(error, pod)
        where = "".join(f"[{step}]" if isinstance(step, int) else f".{quoted(step, 80)[1:-1]}" for step in place)
        line = line_of(node, place)
        raise UnreadableError(f"{file}:{line}: {where.removeprefix('.') or 'pod'}: {message}") from None


def shown_name(workload: Workload, namespace: str) -> str:
    """How messages call it: `Deployment team-vision/detector`."""
    return f"{workload.kind} {namespace}/{quoted(workload.name, 253)[1:-1]}"
