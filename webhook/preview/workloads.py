"""Pods and pod templates in YAML or JSON, as people keep them in files."""

import json
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

import msgspec
import yaml

from policies.cluster import Cluster
from policies.errors import quoted
from policies.pod import Pod
from webhook.preview.asking import IsOurs
from webhook.preview.checked import check_annotations, drop_empty_metadata, fill_empty, parse, typed
from webhook.preview.kinds import Known, known_kind
from webhook.preview.named import named_shape
from webhook.preview.near_misses import near_misses
from webhook.preview.object_fields import OwnMetadata
from webhook.preview.objects import UnreadableError, child, read_objects
from webhook.preview.places import Found, dotted, mappings_at
from webhook.preview.shapes import KUBERNETES_SCHEDULER, Fields, Shape, mapping
from webhook.preview.unread import misplaced, name_in_list, patches, unknown


class Replaced(msgspec.Struct):
    """How an object took a changed pod, by what its controller makes of it now."""

    lost: list[str]  # fields of the pod's spec that have no place in it
    kept: list[str]  # fields that are not as they should be, since they stand elsewhere in it too
    said: list[str]  # sentences about what its controller may not take
    unwritable: list[str] = []  # sentences that say why nothing of the pod was written


class Workload(msgspec.Struct):
    """One pod in an object."""

    kind: str  # printable
    name: str
    namespace: str | None  # as written
    document: Fields  # the whole object, changed in place by `replace_pod`
    pod: Fields  # the pod or the template in it, or what its controller makes a pod of
    parsed: Pod
    shape: Shape
    holder: Fields  # what stands in the object for the pod
    path: str  # of it, if the object can hold several pods
    oversights: tuple[str, ...] = ()  # in the object, as sentences; of several pods the first has them
    translated: Fields | None = None  # the pod as it is after a translation from another system
    became: tuple[str, ...] = ()  # what that made of each field, as sentences

    @property
    def sent(self) -> Fields:
        """The pod as the API server would send it."""
        return self.pod if self.translated is None else self.translated

    def replace_pod(self, pod: Fields) -> Replaced:
        """Put *pod* where the pod was, if that place can take it."""
        if unwritable := self.shape.unwritable(self.document, self.holder, self.pod, pod):
            return Replaced([], [], [], unwritable)
        for name in self.pod["spec"].keys() - pod["spec"].keys():
            self.holder.pop(name, None)
        said = self.shape.put_back(self.document, self.holder, self.pod, pod)
        again = self.shape.build(self.document, self.holder) or {}
        fill_empty(again)
        made, wanted = mapping(again, "spec"), self.shape.remade(self.document, self.holder, pod["spec"])
        names = [name for name in {**wanted, **made} if _value(made, name) != _value(wanted, name)]
        return Replaced(
            lost=[name for name in names if name not in made],
            kept=[name for name in names if name in made],
            said=said,
        )


class Input(msgspec.Struct):
    """One input: all its objects in order, those with a pod, and what could not be made out."""

    documents: list[Any]
    workloads: list[Workload]
    # Sentences about objects whose pods were not found, though they ask for a share or hold containers, and about those
    # in lists that cannot be read.
    unknown: list[str]
    used_paths: set[str]  # where pods were found


_SHIPPED = Cluster()


class _Source(msgspec.Struct, frozen=True):
    """Where objects come from, and how they are read."""

    file: str
    pod_paths: Sequence[str]
    is_ours: IsOurs


def read_input(text: str, file: str, pod_paths: Sequence[str] = (), *, is_ours: IsOurs = _SHIPPED.is_ours) -> Input:
    """
    Read a stream of documents; *file* is its name for messages, *pod_paths* say where pods are in other kinds.

    Which resources ask for a share, *is_ours* says.

    Raises:
        UnreadableError: If it is invalid YAML or JSON, or a pod in it has a field of the wrong type and is in no list.
    """
    read = Input([], [], [], set())
    source = _Source(file, pod_paths, is_ours)
    for document, node in read_objects(text, file):
        read.documents.append(document)
        for one, at in _objects(document, node, file):
            try:
                _read_object(one, at, source, read)
            except UnreadableError as error:
                if one is document:
                    raise
                read.unknown.append(error.of(name_in_list(one)))
    return read


def _objects(document: Any, node: yaml.Node, file: str) -> Iterator[tuple[Fields, yaml.Node]]:
    """Yield the object, or those of a list."""
    if not isinstance(document, dict) or not isinstance(document.get("kind"), str):
        line = node.start_mark.line + 1
        raise UnreadableError(file, line, "kind: expected a Kubernetes object, got none: add apiVersion and kind")
    kind = document["kind"]
    if kind != "List" and not (kind.endswith("List") and isinstance(document.get("items"), list)):
        yield document, node
        return
    inner = child(node, "items")
    items = document.get("items") or []
    if not isinstance(items, list):
        line = (inner or node).start_mark.line + 1
        raise UnreadableError(file, line, "items: expected a list of objects: correct it")
    for index, item in enumerate(items):
        found = child(inner, index) if inner else None
        _name_kind(item, document)
        yield from _objects(item, found or node, file)


def _name_kind(item: Any, document: Fields) -> None:
    """Give an item of a typed list the list's kind if it says none, as the API's own lists do not and kubectl does."""
    kind = document["kind"].removesuffix("List")
    if not kind or not isinstance(item, dict) or item.get("kind"):
        return
    own = {name: value for name, value in item.items() if name not in ("apiVersion", "kind")}
    item.clear()
    item.update({"apiVersion": document.get("apiVersion") or "", "kind": kind, **own})


def _read_object(document: Fields, node: yaml.Node, source: _Source, read: Input) -> None:
    file = source.file
    known = known_kind(document.get("apiVersion"), document["kind"])
    places: list[tuple[str, Known | None]] = [(path, known) for path in known.paths] if known else []
    if known is None or not known.is_built_in:
        places += [(path, None) for path in source.pod_paths]
    workloads: dict[int, Workload] = {}
    patched = [*known.patches] if known else []
    for path, kind in places:
        for found in mappings_at(document, node, path, kind.nested if kind else ()):
            workload = _workload(found, document, node, file, kind)
            if workload is not None and workloads.setdefault(id(found.value), workload) is workload:
                patched += [dotted((*found.steps, name)) for name in (kind.pod_patches if kind else ())]
                read.used_paths.add(path)
    if workloads:
        sources = [one.shape.annotations(document, one.holder) for one in workloads.values()]
        place = known.annotations_at if known else "the pod's own metadata"
        first = next(iter(workloads.values()))
        unread = patches(document, node, patched)
        first.oversights = (*misplaced(document, [*chain(*sources)], place), *unread, *near_misses(document))
        read.workloads += workloads.values()
    elif known and known.is_built_in:
        raise _no_template(known.paths[0], document, node, file)
    if known is None or not known.is_built_in:
        lists = [*chain(*(one.shape.lists(document, one.holder) for one in workloads.values()))]
        read.unknown += unknown(document, node, file, source.is_ours, lists if workloads else None)


def _workload(found: Found, document: Fields, node: yaml.Node, file: str, known: Known | None) -> Workload | None:
    """Read the pod at one place; None if there is none."""
    shape = known.shape if known else named_shape(found)
    if shape is None:
        return None
    drop_empty_metadata(document)
    drop_empty_metadata(found.value)
    for source in shape.annotations(document, found.value):
        check_annotations(source, document, node, file)
    of_object, of_holder = shape.reads
    metadata = typed(document, of_object, Found((), document, node), file).metadata or OwnMetadata()
    typed(found.value, of_holder, found, file)
    pod = shape.build(document, found.value)
    if pod is None:
        return None
    fill_empty(pod)
    return Workload(
        kind=quoted(document["kind"], 63)[1:-1],
        name=metadata.name or metadata.generate_name or "(no name)",
        namespace=metadata.namespace or None,
        document=document,
        pod=pod,
        parsed=parse(pod, found, file),
        shape=shape,
        holder=found.value,
        path=found.path if known is None or known.holds_several else "",
    )


def _value(spec: Fields, name: str) -> Any:
    """Return a field of a pod's spec; to have no scheduler is to have Kubernetes' own."""
    return _unordered(spec.get(name, KUBERNETES_SCHEDULER if name == "schedulerName" else None), name)


def _unordered(value: Any, name: str) -> Any:
    """Bring volumes and mounts in one order, which means nothing."""
    if isinstance(value, dict):
        return {key: _unordered(inner, key) for key, inner in value.items()}
    if not isinstance(value, list):
        return value
    items = [_unordered(one, "") for one in value]
    return sorted(items, key=_sorted_text) if name in ("volumes", "volumeMounts") else items


def _sorted_text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)


def shown_name(workload: Workload, namespace: str) -> str:
    """How messages call it: `Deployment team-vision/detector`."""
    at = f", {workload.path}" if workload.path else ""
    return f"{workload.kind} {quoted(namespace, 63)[1:-1]}/{quoted(workload.name, 253)[1:-1]}{at}"


def _no_template(path: str, document: Fields, node: yaml.Node, file: str) -> UnreadableError:
    value: Any = document
    for step in path.split("."):
        if not isinstance(value.get(step), dict):
            break
        value, node = value[step], child(node, step) or node
    line = node.start_mark.line + 1
    return UnreadableError(file, line, f"{path}: expected the pod template of a {document['kind']}, got none: add it")
