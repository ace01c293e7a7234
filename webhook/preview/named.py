"""
The pods at a path that the user named, in objects of a kind that no table names.

Where such a kind takes annotations is known only if some stand there, or if it says that it is a template.
"""

from webhook.preview.object_fields import AnyObject, FieldsWithMetadata
from webhook.preview.places import Found
from webhook.preview.shapes import Fields, Inline, Shape, Template, Writable, added_metadata, mapping

_TEMPLATE = "template"  # in the name of a field: `template`, `podTemplate`, `workerTemplates`
_BESIDE = frozenset({"annotations", "labels"})
_NOTE = "as a pod of these fields, with the object's annotations in case its controller copies them"

_UNKNOWN = "nothing is written there, since it is not known where this kind takes the annotations of its pods ({}): {}"


class _Bare(Writable):
    """A pod for whose annotations no place is known."""

    advice = "write metadata: {} or annotations: {} at this path, whichever of them the kind has"

    def unwritable(self, document: Fields, holder: Fields, before: Fields, after: Fields) -> list[str]:
        """Say which have none."""
        del document, holder
        added = [key for texts in added_metadata(before, after).values() for key in texts]
        return [_UNKNOWN.format(", ".join(added), self.advice)] if added else []


class _BareTemplate(_Bare, Template):
    """What has the spec of a pod, and no metadata."""


class _BareFields(_Bare, Inline):
    """The fields of a pod's spec alone."""


class _FieldsAndMetadata(Inline):
    """The fields of a pod's spec, with its metadata beside them."""

    reads = (AnyObject, FieldsWithMetadata)

    def annotations(self, document: Fields, holder: Fields) -> list[Fields]:
        """The object's, and those of the metadata, with labels that may stand beside it."""
        return [mapping(document, "metadata"), holder, mapping(holder, "metadata")]

    def put_back(self, document: Fields, holder: Fields, before: Fields, after: Fields) -> list[str]:
        """Write the fields and the metadata."""
        holder.setdefault("metadata", {})  # `metadata:` with nothing behind it was dropped
        return super().put_back(document, holder, before, after)


class _FieldsBesideMetadata(Inline):
    """The same, with annotations beside that metadata, which has none."""

    reads = (AnyObject, FieldsWithMetadata)

    def annotations(self, document: Fields, holder: Fields) -> list[Fields]:
        """The object's, and those beside the fields, with labels that the metadata may have."""
        return [mapping(document, "metadata"), mapping(holder, "metadata"), holder]


class _FieldsInDoubt(_Bare, _FieldsBesideMetadata):
    """The same, with annotations in both places, or with labels beside the metadata and annotations in neither."""

    advice = "have annotations in just one of the two at this path, in metadata or beside it, whichever the kind reads"


def named_shape(found: Found) -> Shape | None:
    """Say what stands at a path that the user named: a pod template, or the fields of a pod."""
    value = found.value
    if isinstance(mapping(value, "spec").get("containers"), list):
        names = [step for step in found.steps if isinstance(step, str)]
        return Template() if "metadata" in value or _TEMPLATE in names[-1].lower() else _BareTemplate()
    if not isinstance(value.get("containers"), list):
        return None
    if "metadata" in value:
        return _with_metadata(value)
    return Inline(_NOTE) if value.keys() & _BESIDE else _BareFields(_NOTE)


def _with_metadata(value: Fields) -> Shape:
    """Tell by annotations which place is the kind's where both are there."""
    if not value.keys() & _BESIDE:
        return _FieldsAndMetadata(_NOTE)
    match "annotations" in mapping(value, "metadata"), "annotations" in value:
        case (True, False):
            return _FieldsAndMetadata(_NOTE)
        case (False, True):
            return _FieldsBesideMetadata(_NOTE)
    return _FieldsInDoubt(_NOTE)
