"""The pods of Knative: of pod templates of which it takes some fields only where its administrator says so."""

from collections.abc import Collection, Iterator
from itertools import count
from typing import Any

from webhook.preview.shapes import Fields, Template, mapping

_CALLED = {"containers": "user-container", "initContainers": "init-container"}
_FEATURES = {
    "hostIPC": "kubernetes.podspec-hostipc",
    "nodeSelector": "kubernetes.podspec-nodeselector",
    "runtimeClassName": "kubernetes.podspec-runtimeclassname",
    "schedulerName": "kubernetes.podspec-schedulername",
    "tolerations": "kubernetes.podspec-tolerations",
}
_HOST_PATHS = "kubernetes.podspec-volumes-hostpath"


class KnativeTemplate(Template):
    """The template of a Service or a Configuration."""

    def build(self, document: Fields, holder: Fields) -> Fields | None:
        """Name containers that have no name as Knative does."""
        spec = mapping(holder, "spec")
        every = {name: held for name in _CALLED if isinstance(held := spec.get(name), list)}
        taken = {str(one.get("name")) for held in every.values() for one in held if isinstance(one, dict)}
        for name, held in every.items():
            _name(held, _CALLED[name], taken)
        return super().build(document, holder)

    def put_back(self, document: Fields, holder: Fields, before: Fields, after: Fields) -> list[str]:
        """Write the whole template, and say of which fields Knative denies it by default."""
        said = [
            f"Knative denies {field} unless {feature} is enabled in its ConfigMap config-features: without it, leave "
            "this to the webhook and apply the object as it was"
            for field, feature in _by_default_denied(before["spec"], after["spec"])
        ]
        return [*super().put_back(document, holder, before, after), *said]


def _name(containers: list[Any], called: str, taken: Collection[str]) -> None:
    """Name those without a name, of several by the next number whose name is not *taken*."""
    free = (name for number in count() if (name := f"{called}-{number}") not in taken)
    for one in containers:
        if isinstance(one, dict) and not one.get("name"):
            one["name"] = next(free) if len(containers) > 1 else called


def _by_default_denied(before: Fields, after: Fields) -> Iterator[tuple[str, str]]:
    """Yield what was written into a pod's spec that needs a feature, and the feature's name."""
    yield from ((field, one) for field, one in _FEATURES.items() if after.get(field) != before.get(field))
    if _host_paths(after) != _host_paths(before):
        yield "a hostPath volume", _HOST_PATHS


def _host_paths(spec: Fields) -> list[Any]:
    return [one for one in spec.get("volumes") or () if one.get("hostPath") is not None]
