"""What of another system's resources stays in an object once its pods are translated: quotas, and pods not known."""

from collections.abc import Collection, Iterator, Sequence
from typing import Any

from policies.errors import quoted
from webhook.preview.places import Step, written
from webhook.preview.shapes import Fields, mapping

_NOT_WRITTEN = "status"  # by whoever writes the object
_NAMED = 3  # places, in one sentence


def left_over(document: Fields, resources: Collection[str]) -> str:
    """Name the places in an object that still have some of *resources*, in one sentence; empty if none has."""
    names = {f"{group}{one}" for one in resources for group in ("", "limits.", "requests.")}
    spec = {key: value for key, value in document.items() if key != _NOT_WRITTEN}
    places = [f"{written(steps)} has {key}" for steps, key in _found(spec, names)]
    if not places:
        return ""
    more = f", and {len(places) - _NAMED} more places have some" if len(places) > _NAMED else ""
    name = mapping(document, "metadata").get("name")
    title = f"{quoted(str(document.get('kind')), 63)[1:-1]} {quoted(str(name or '(no name)'), 253)[1:-1]}"
    fix = "is in no pod that is known: write it anew, or name its pod by --pod-path"
    return f"{title}: {', '.join(places[:_NAMED])}{more}, which {fix}"


def _found(value: Any, names: Collection[str], steps: Sequence[Step] = ()) -> Iterator[tuple[tuple[Step, ...], str]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, inner in items:
        if isinstance(value, dict) and step in names:
            yield tuple(steps), str(step)
        else:
            yield from _found(inner, names, (*steps, step))


def objects(documents: Collection[Any]) -> Iterator[Fields]:
    """Yield all objects, those of lists one by one."""
    for one in documents:
        if isinstance(one, dict):
            items = one.get("items")
            if isinstance(items, list):
                yield from objects(items)
            else:
                yield one
