"""What stands in an object and is not read: annotations in the wrong place, patches, and pods of unknown kinds."""

from collections.abc import Iterator, Sequence
from typing import Any

import yaml

from policies.errors import quoted
from webhook.preview.asking import IsOurs, asking, makes_no_pods
from webhook.preview.objects import line_of
from webhook.preview.places import Step, containers_in, mappings_at, pattern, requests_in, written
from webhook.preview.shapes import Fields


def misplaced(document: Fields, read: Sequence[Fields], place: str) -> Iterator[str]:
    """Yield a sentence for each annotation of ours in none of *read*, which the pods get; it belongs to *place*."""
    mappings = {id(source.get("annotations")) for source in read}
    for steps, annotations, key in requests_in(document):
        if id(annotations) not in mappings:
            where = (
                f"on the {quoted(document['kind'], 63)[1:-1]}"
                if steps == ("metadata", "annotations")
                else f"at {written(steps)}"
            )
            yield f"{quoted(key, 80)[1:-1]} is {where}; move it to {place}"


def patches(document: Fields, node: yaml.Node, paths: Sequence[str]) -> Iterator[str]:
    """Yield a sentence for each field at *paths* that is not empty."""
    for path in paths:
        holder, _, name = path.rpartition(".")
        for found in mappings_at(document, node, holder):
            if found.value.get(name):
                yield f"{written((*found.steps, name))} is not read, and the controller patches its pods with it"


def unknown(
    document: Fields, node: yaml.Node, file: str, is_ours: IsOurs, read: Sequence[Any] | None = None
) -> Iterator[str]:
    """
    Yield a sentence about an object with containers in none of the lists *read*, or that asks for a share.

    The latter only if *read* is None: none of its pods is known then.
    """
    metadata = document.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    title = f"{quoted(document['kind'], 63)[1:-1]} {quoted(str(name or '(no name)'), 253)[1:-1]}"
    known = {id(one) for one in read or ()}
    spec = {key: value for key, value in document.items() if key != "status"}  # which controllers write
    found = () if makes_no_pods(document) else containers_in(spec)
    lists = [steps for steps in found if id(_at(document, steps)) not in known]
    if lists:
        options = " ".join(dict.fromkeys(f"--pod-path {pattern(_pod_of(steps))}" for steps in lists if steps[1:]))
        why = "where this kind has its pods is not known" if read is None else "no pod that is known has them"
        what = f"{written(lists[0])} has containers, and {why}: add {options}"
        if not options:
            what = "containers is at the top level, where no object has its pods: move it to where they are"
        yield f"{file}:{line_of(node, [*lists[0]])}: {title}: {what}"
    elif read is None and (asks := next(asking(document, is_ours), None)) is not None:
        steps, key = asks
        what = f"{written(steps)} has {quoted(key, 80)[1:-1]}, and no pod is found"
        fix = "name its place, as in --pod-path spec.template, or preview a pod that its controller made"
        yield f"{file}:{line_of(node, [*steps, key])}: {title}: {what}: {fix}"


def name_in_list(item: Fields) -> str:
    """How messages call an object of which nothing but its kind is known to be valid: `Pod team-vision/detector`."""
    metadata = item.get("metadata")
    names = [metadata.get(key) if isinstance(metadata, dict) else None for key in ("namespace", "name")]
    namespace, name = (quoted(one, 253)[1:-1] if isinstance(one, str) else "" for one in names)
    return f"{quoted(item['kind'], 63)[1:-1]} {f'{namespace}/' if namespace else ''}{name or '(no name)'}"


def _at(document: Any, steps: tuple[Step, ...]) -> Any:
    for step in steps:
        document = document[step]
    return document


def _pod_of(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """Return the place of the pod template, or of the fields of a pod, with these containers."""
    *outer, last = steps[:-1]
    return tuple(outer) if outer and last == "spec" else (*outer, last)
