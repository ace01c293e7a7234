"""What the webhook adds to the metadata of one pod, and another pod of the same object would get with it."""

import copy
from collections.abc import Sequence

import msgspec

from webhook.preview.previewed import Previewed
from webhook.preview.shapes import Fields, added_metadata, mapping


class Reach(msgspec.Struct, frozen=True):
    """What is not written into an object for reaching pods that are admitted without it."""

    keys: tuple[str, ...] = ()  # of annotations and labels
    places: tuple[str, ...] = ()  # of those pods

    def without(self, one: Previewed) -> tuple[Fields, *tuple[str, ...]]:
        """Return the pod as admitted, but for what reaches others, and behind it a sentence about that, if any does."""
        added = _added(one)
        lost = [key for key in self.keys if key in added]
        if not lost:
            return (one.patched,)
        before, after = (mapping(pod, "metadata") for pod in (one.workload.sent, one.patched))
        metadata = {**after}
        for field in ("annotations", "labels"):
            if field in after:
                own = mapping(before, field)
                kept = {key: text for key, text in after[field].items() if key not in lost}
                metadata[field] = kept | {key: own[key] for key in lost if key in own}
        said = f"{' and '.join(lost)}: left to the webhook, since {' and '.join(self.places)} would get the same"
        return {**one.patched, "metadata": metadata}, said


def reach(pods: Sequence[Previewed]) -> Reach:
    """Write the *pods* of one object as admitted to a copy, and compare what its controller then makes of it."""
    added = {key for one in pods for key in _added(one)}
    if all(added <= _keys(one.patched) for one in pods):
        return Reach()
    copies = copy.deepcopy([(one.workload.document, one.workload.holder) for one in pods])
    for one, (document, holder) in zip(pods, copies, strict=True):
        if _added(one):
            scratch = msgspec.structs.replace(one.workload, document=document, holder=holder)
            scratch.replace_pod(copy.deepcopy(one.patched))
    found = {
        one.workload.path: keys
        for one, (document, holder) in zip(pods, copies, strict=True)
        if (keys := added & _keys(one.workload.shape.build(document, holder) or {}) - _keys(one.patched))
    }
    return Reach(tuple(sorted(set[str]().union(*found.values()))), tuple(found))


def _added(one: Previewed) -> set[str]:
    if one.unwritable:
        return set()
    return {key for texts in added_metadata(one.workload.sent, one.patched).values() for key in texts}


def _keys(pod: Fields) -> set[str]:
    metadata = mapping(pod, "metadata")
    return {key for field in ("annotations", "labels") for key in mapping(metadata, field)}
