"""Pods and pod templates in YAML or JSON, as people keep them in files."""

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, TypeVar

import msgspec
import yaml

from policies.errors import quoted
from policies.pod import Part, Pod
from program.structs import decoder
from webhook.preview.fields import fault_of
from webhook.preview.kinds import Known, known_kind
from webhook.preview.near_misses import near_misses
from webhook.preview.object_fields import OwnMetadata
from webhook.preview.objects import UnreadableError, child, line_of, read_objects
from webhook.preview.places import Found, mappings_at, steps_to, written
from webhook.preview.shapes import Fields, Inline, Shape, Template
from webhook.preview.unread import misplaced, name_in_list, patches, unknown

T = TypeVar("T", bound=Part)


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

    def replace_pod(self, pod: Fields) -> list[str]:
        """Put *pod* where the pod was; return the fields of its spec that have no place in this object."""
        removed = self.pod["spec"].keys() - pod["spec"].keys()
        unplaced = self.shape.put_back(self.document, self.holder, self.pod, pod)
        for name in removed:
            self.holder.pop(name, None)
        return unplaced


class Input(msgspec.Struct):
    """One input: all its objects in order, those with a pod, and what could not be made out."""

    documents: list[Any]
    workloads: list[Workload]
    # Sentences about objects whose pods were not found, though they ask for a share or hold containers, and about those
    # in lists that cannot be read.
    unknown: list[str]
    used_paths: set[str]  # where pods were found


def read_input(text: str, file: str, pod_paths: Sequence[str] = ()) -> Input:
    """
    Read a stream of documents; *file* is its name for messages, *pod_paths* say where pods are in other kinds.

    Raises:
        UnreadableError: If it is invalid YAML or JSON, or a pod in it has a field of the wrong type and is in no list.
    """
    read = Input([], [], [], set())
    for document, node in read_objects(text, file):
        read.documents.append(document)
        for one, at in _objects(document, node, file):
            try:
                _read_object(one, at, file, pod_paths, read)
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
        yield from _objects(item, found or node, file)


def _read_object(document: Fields, node: yaml.Node, file: str, pod_paths: Sequence[str], read: Input) -> None:
    known = known_kind(document.get("apiVersion"), document["kind"])
    places: list[tuple[str, Known | None]] = [(path, known) for path in known.paths] if known else []
    if known is None or not known.is_built_in:
        places += [(path, None) for path in pod_paths]
    workloads: dict[int, Workload] = {}
    for path, kind in places:
        for found in mappings_at(document, node, path):
            workload = _workload(found, document, node, file, kind)
            if workload is not None:
                workloads.setdefault(id(found.value), workload)
                read.used_paths.add(path)
    if workloads:
        sources = [one.shape.annotations(document, one.holder) for one in workloads.values()]
        place = known.annotations_at if known else "the pod's own metadata"
        first = next(iter(workloads.values()))
        unread = patches(document, node, known.patches if known else ())
        first.oversights = (*misplaced(document, [*chain(*sources)], place), *unread, *near_misses(document))
        read.workloads += workloads.values()
    elif known and known.is_built_in:
        raise _no_template(known.paths[0], document, node, file)
    else:
        read.unknown += unknown(document, node, file)


def _workload(found: Found, document: Fields, node: yaml.Node, file: str, known: Known | None) -> Workload | None:
    """Read the pod at one place; None if there is none."""
    shape = known.shape if known else _guessed(found.value)
    if shape is None:
        return None
    _drop_empty_metadata(document)
    _drop_empty_metadata(found.value)
    for source in shape.annotations(document, found.value):
        _check_annotations(source, document, node, file)
    of_object, of_holder = shape.reads
    metadata = _typed(document, of_object, Found((), document, node), file).metadata or OwnMetadata()
    _typed(found.value, of_holder, found, file)
    pod = shape.build(document, found.value)
    if pod is None:
        return None
    _fill_empty(pod)
    return Workload(
        kind=quoted(document["kind"], 63)[1:-1],
        name=metadata.name or metadata.generate_name or "(no name)",
        namespace=metadata.namespace or None,
        document=document,
        pod=pod,
        parsed=_parse(pod, found, file),
        shape=shape,
        holder=found.value,
        path=found.path if known is None or known.holds_several else "",
    )


def _guessed(value: Fields) -> Shape | None:
    """Say what stands at a path that the user named: a pod template, or the fields of a pod."""
    spec = value.get("spec")
    if isinstance(spec, dict) and isinstance(spec.get("containers"), list):
        return Template()
    return _NAMED if isinstance(value.get("containers"), list) else None


_NAMED = Inline("as a pod of these fields, with the object's annotations in case its controller copies them")


def _no_template(path: str, document: Fields, node: yaml.Node, file: str) -> UnreadableError:
    value: Any = document
    for step in path.split("."):
        if not isinstance(value.get(step), dict):
            break
        value, node = value[step], child(node, step) or node
    line = node.start_mark.line + 1
    return UnreadableError(file, line, f"{path}: expected the pod template of a {document['kind']}, got none: add it")


def _drop_empty_metadata(holder: Fields) -> None:
    """`metadata:` with nothing behind it means no metadata."""
    if holder.get("metadata", ...) is None:
        del holder["metadata"]


def _check_annotations(source: Fields, document: Fields, node: yaml.Node, file: str) -> None:
    """Name the mistake that everybody makes first: a share without quotes, which the API server rejects."""
    annotations = source.get("annotations")
    if not isinstance(annotations, dict):
        return
    for key, value in annotations.items():
        if value is None or isinstance(value, str):
            continue
        steps = (*steps_to(document, annotations), str(key))
        shown = quoted(str(value).lower() if isinstance(value, bool) else str(value), 80)
        raise UnreadableError(
            file,
            line_of(node, [*steps]),
            f"{written(steps)}: expected a string, got {shown[1:-1]} without quotes, which the API server rejects: "
            f"write {quoted(str(key), 80)[1:-1]}: {shown}",
        )


def _fill_empty(pod: Fields) -> None:
    """
    Write what the API server takes the place of nothing for.

    A label, annotation or selector with nothing behind it is an empty string, and a volume of no kind an emptyDir.
    """
    metadata, spec = pod.get("metadata"), pod.get("spec")
    for holder, fields in ((metadata, ("annotations", "labels")), (spec, ("nodeSelector",))):
        for field in fields:
            texts = holder.get(field) if isinstance(holder, dict) else None
            if isinstance(texts, dict):
                texts.update({key: "" for key, value in texts.items() if value is None})
    volumes = spec.get("volumes") if isinstance(spec, dict) else None
    for volume in volumes if isinstance(volumes, list) else ():
        if isinstance(volume, dict) and all(value is None or key == "name" for key, value in volume.items()):
            volume["emptyDir"] = {}


def _typed(value: Fields, to: type[T], found: Found, file: str) -> T:
    """Check the types of what is read of *value*, which stands at the place *found*."""
    decoder(to)  # the page reads in several threads
    try:
        return msgspec.convert(value, to)
    except msgspec.ValidationError as error:
        place, message = fault_of(error, value)
        at = written((*found.steps, *place)) or "object"
        raise UnreadableError(file, line_of(found.node, place), f"{at}: {message}") from None


def _parse(pod: Fields, found: Found, file: str) -> Pod:
    decoder(Pod)
    try:
        return msgspec.convert(pod, Pod)
    except msgspec.ValidationError as error:
        place, message = fault_of(error, pod)
        line = line_of(found.node, place if "spec" in found.value else place[1:])
        raise UnreadableError(file, line, f"{written(tuple(place)) or 'pod'}: {message}") from None


def shown_name(workload: Workload, namespace: str) -> str:
    """How messages call it: `Deployment team-vision/detector`."""
    at = f", {workload.path}" if workload.path else ""
    return f"{workload.kind} {quoted(namespace, 63)[1:-1]}/{quoted(workload.name, 253)[1:-1]}{at}"
