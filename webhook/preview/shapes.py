"""
How a pod stands in an object: as a pod template, or as something else that its controller makes a pod of.

A shape builds the pod that the controller would make, as far as the object says, and puts a changed pod back.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from policies.pod import Part
from webhook.preview.object_fields import AnyObject, InlineFields, TemplateFields

Fields = dict[str, Any]
Values = Callable[[Fields], dict[str, str]]  # of what stands for a pod, by the words' names


class Shape(Protocol):
    """The form in which one pod stands in an object."""

    note: str  # what the pod is built of; empty for a pod template

    @property
    def reads(self) -> tuple[type[AnyObject], type[Part]]:
        """What is read of the object and of what stands in it for the pod; the others find these types there."""
        ...

    def annotations(self, document: Fields, holder: Fields) -> list[Fields]:
        """Return the mappings whose `annotations` become the pod's, the strongest last."""
        ...

    def lists(self, document: Fields, holder: Fields) -> list[Any]:
        """Return the lists of containers of which the pod is made."""
        ...

    def build(self, document: Fields, holder: Fields) -> Fields | None:
        """Return the pod; None if there is none at this place."""
        ...

    def values(self, document: Fields) -> Values | None:
        """Return what says which words `{{...}}` its controller replaces by what; None if it replaces none."""
        ...

    def unwritable(self, document: Fields, holder: Fields, before: Fields, after: Fields) -> list[str]:
        """Say why nothing of a changed pod can be written into the object; empty if it can."""
        ...

    def put_back(self, document: Fields, holder: Fields, before: Fields, after: Fields) -> list[str]:
        """Write a changed pod into the object; return sentences about what its controller may not take there."""
        ...

    def remade(self, document: Fields, holder: Fields, spec: Fields) -> Fields:
        """Return the spec of a changed pod with what the controller adds of itself, though the webhook removed it."""
        ...


class Writable:
    """Takes any changed pod."""

    def unwritable(self, document: Fields, holder: Fields, before: Fields, after: Fields) -> list[str]:
        """Nothing is."""
        del document, holder, before, after
        return []

    def values(self, _: Fields) -> Values | None:
        """It replaces none."""
        return None

    def remade(self, document: Fields, holder: Fields, spec: Fields) -> Fields:
        """As it is."""
        del document, holder
        return spec


class Template(Writable):
    """A pod template."""

    note = ""
    reads = (AnyObject, TemplateFields)

    def annotations(self, document: Fields, holder: Fields) -> list[Fields]:
        """Its own."""
        del document
        return [mapping(holder, "metadata")]

    def lists(self, document: Fields, holder: Fields) -> list[Any]:
        """Its own."""
        del document
        return [mapping(holder, "spec").get("containers")]

    def build(self, document: Fields, holder: Fields) -> Fields | None:
        """The template is the pod."""
        del document
        return holder

    def put_back(self, document: Fields, holder: Fields, before: Fields, after: Fields) -> list[str]:
        """Write the whole template."""
        del document, before
        holder.clear()
        holder.update(after)
        return []


class TemplateOfObject(Writable):
    """A pod template whose metadata is the object's."""

    reads = (AnyObject, TemplateFields)

    def __init__(self, note: str, *, not_copied: tuple[str, ...] = ()) -> None:
        """Leave out annotations with one of *not_copied* in their key."""
        self.note = note
        self._not_copied = not_copied

    def annotations(self, document: Fields, holder: Fields) -> list[Fields]:
        """The object's."""
        del holder
        return [mapping(document, "metadata")]

    def lists(self, document: Fields, holder: Fields) -> list[Any]:
        """The template's."""
        del document
        return [mapping(holder, "spec").get("containers")]

    def build(self, document: Fields, holder: Fields) -> Fields | None:
        """Put the object's metadata on the template."""
        metadata = merged(self.annotations(document, holder), leave_out=self._not_copied)
        return {"metadata": metadata, "spec": holder.get("spec")}

    def put_back(self, document: Fields, holder: Fields, before: Fields, after: Fields) -> list[str]:
        """Write the spec, and what was added to the metadata."""
        put_metadata(document.setdefault("metadata", {}), before, after)
        holder["spec"] = after["spec"]
        return []


class Inline(Writable):
    """The fields of a pod's spec among others, with annotations beside them; the object's are copied too."""

    reads = (AnyObject, InlineFields)

    def __init__(
        self,
        note: str,
        *,
        container_at: tuple[str, ...] = (),
        container: str = "main",
        fields: frozenset[str] | None = None,
    ) -> None:
        """
        Take the first of the fields *container_at* for the pod's first container, and call it *container*.

        Only *fields* can be added; None if all that a pod's spec has can.
        """
        self.note = note
        self._container_at = container_at
        self._container = container
        self._fields = _SPEC if fields is None else fields

    def annotations(self, document: Fields, holder: Fields) -> list[Fields]:
        """The object's, and those beside the fields."""
        return [mapping(document, "metadata"), holder]

    def lists(self, document: Fields, holder: Fields) -> list[Any]:
        """The one among the fields."""
        del document
        return [holder.get("containers")]

    def build(self, document: Fields, holder: Fields) -> Fields | None:
        """Take the fields for a spec."""
        at = self._field(holder)
        containers = holder.get("containers")
        if at is None and containers is None:
            return None
        spec = {key: value for key, value in holder.items() if key in _SPEC}
        if at is not None:
            spec["containers"] = [{**holder[at], "name": self._container}, *(containers or ())]
        return {"metadata": merged(self.annotations(document, holder)), "spec": spec}

    def put_back(self, document: Fields, holder: Fields, before: Fields, after: Fields) -> list[str]:
        """Write the fields that have a place, and metadata to the strongest of `annotations`."""
        spec = {key: value for key, value in after["spec"].items() if key in holder or key in self._fields}
        at = self._field(holder)
        if at is not None:
            first, *others = spec.pop("containers")
            holder[at] = first if "name" in holder[at] else {key: first[key] for key in first if key != "name"}
            if others:
                spec["containers"] = others
        put_metadata(self.annotations(document, holder)[-1], before, after)
        holder.update(spec)
        return []

    def _field(self, holder: Fields) -> str | None:
        return next((name for name in self._container_at if isinstance(holder.get(name), dict)), None)


KUBERNETES_SCHEDULER = "default-scheduler"  # which a pod without a name of one gets
_BESIDE = ("annotations", "labels")  # of a pod, among the fields of its spec
# https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/#PodSpec
_SPEC = frozenset({
    "activeDeadlineSeconds", "affinity", "automountServiceAccountToken", "containers", "dnsConfig", "dnsPolicy",
    "enableServiceLinks", "hostAliases", "hostIPC", "hostNetwork", "hostPID", "hostUsers", "hostname",
    "hostnameOverride", "imagePullSecrets", "initContainers", "nodeName", "nodeSelector", "os", "overhead",
    "preemptionPolicy", "priority", "priorityClassName", "readinessGates", "resourceClaims", "resources",
    "restartPolicy", "runtimeClassName", "schedulerName", "schedulingGates", "securityContext", "serviceAccount",
    "serviceAccountName", "setHostnameAsFQDN", "shareProcessNamespace", "subdomain",
    "terminationGracePeriodSeconds", "tolerations", "topologySpreadConstraints", "volumes",
})  # fmt: skip


def mapping(holder: Mapping[str, Any], name: str) -> Fields:
    """Return the mapping in a field; an empty one if there is none."""
    value = holder.get(name)
    return value if isinstance(value, dict) else {}


def merged(sources: Iterable[Fields], *, leave_out: tuple[str, ...] = ()) -> Fields:
    """Merge annotations and labels, the strongest last, without those that have one of *leave_out* in their key."""
    made: Fields = {"annotations": {}, "labels": {}}
    for source in sources:
        for field, texts in made.items():
            own = mapping(source, field)
            texts |= {key: text for key, text in own.items() if not any(part in str(key) for part in leave_out)}
    return made


def put_metadata(holder: Fields, before: Fields, after: Fields) -> None:
    """Write what was added to the pod's metadata into *holder*."""
    for field, added in added_metadata(before, after).items():
        holder[field] = {**mapping(holder, field), **added}


def added_metadata(before: Fields, after: Fields) -> dict[str, Fields]:
    """Return the annotations and labels of a pod that were added to it or changed, by their field."""
    fields = {field: [mapping(mapping(one, "metadata"), field) for one in (before, after)] for field in _BESIDE}
    added = {field: {k: text for k, text in new.items() if was.get(k) != text} for field, (was, new) in fields.items()}
    return {field: texts for field, texts in added.items() if texts}


def without(items: Iterable[Fields], others: Iterable[Fields]) -> list[Fields]:
    """Leave out those items that are among *others*."""
    left_out = [*others]
    return [one for one in items if one not in left_out]


def trimmed(holder: Fields, field: str, added: list[Fields]) -> Fields:
    """Take *added* out of a list; an empty one is left out."""
    if not added:
        return holder
    rest = {key: value for key, value in holder.items() if key != field}
    left = without(holder.get(field) or (), added)
    return {**rest, field: left} if left else rest
