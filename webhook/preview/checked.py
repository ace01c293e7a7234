"""What is read of an object and of its pods, with the types that it must have, and what nothing means there."""

from typing import TypeVar

import msgspec
import yaml

from policies.errors import quoted
from policies.pod import Part, Pod
from program.structs import decoder
from webhook.preview.fields import fault_of
from webhook.preview.objects import UnreadableError, line_of
from webhook.preview.places import Found, steps_to, written
from webhook.preview.shapes import Fields

T = TypeVar("T", bound=Part)


def drop_empty_metadata(holder: Fields) -> None:
    """`metadata:` with nothing behind it means no metadata."""
    if holder.get("metadata", ...) is None:
        del holder["metadata"]


def check_annotations(source: Fields, document: Fields, node: yaml.Node, file: str) -> None:
    """
    Name the mistake that everybody makes first: a share without quotes, which the API server rejects.

    Raises:
        UnreadableError: If there is one in *source*.
    """
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


def fill_empty(pod: Fields) -> None:
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


def typed(value: Fields, to: type[T], found: Found, file: str) -> T:
    """
    Check the types of what is read of *value*, which stands at the place *found*.

    Raises:
        UnreadableError: If one is another.
    """
    decoder(to)  # the page reads in several threads
    try:
        return msgspec.convert(value, to)
    except msgspec.ValidationError as error:
        place, message = fault_of(error, value)
        at = written((*found.steps, *place)) or "object"
        raise UnreadableError(file, line_of(found.node, place), f"{at}: {message}") from None


def parse(pod: Fields, found: Found, file: str) -> Pod:
    """
    Read the pod that is made of what stands at the place *found*.

    Raises:
        UnreadableError: If a field of it has the wrong type.
    """
    decoder(Pod)
    try:
        return msgspec.convert(pod, Pod)
    except msgspec.ValidationError as error:
        place, message = fault_of(error, pod)
        line = line_of(found.node, place if "spec" in found.value else place[1:])
        raise UnreadableError(file, line, f"{written(tuple(place)) or 'pod'}: {message}") from None
