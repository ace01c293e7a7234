"""
A granted pod as its owner wrote it, without what the webhook added: a decision on it is one on its owner's words.

What nobody can know is taken for the webhook's, as it is in pods of controllers: hostIPC, and where the pod runs. What
the webhook has lowered, replaced or removed stays so.
"""

from collections.abc import Mapping
from typing import Any

from policies.carried_grant import CarriedGrant, asking, carried_grant
from policies.contract import (
    DEFAULT_CONTAINER_ANNOTATION,
    GRANT_ANNOTATION,
    HIDES,
    MPS_VOLUME,
    SHARED_LABEL,
)
from policies.frameworks.detection import Catalogue
from policies.frameworks.granted_settings import Fields, without_settings
from policies.memory_settings import wish_for
from policies.paths import normal
from policies.placement import Placement
from policies.pod import Pod, slots
from policies.policy_set import PolicySet

_CONTAINERS = ("initContainers", "containers")


def as_written(fields: Fields, pod: Pod, namespace: str, policies: PolicySet) -> Fields:
    """Give the *fields* of *pod* without what its grant added; they are the same where it carries none that is true."""
    containers = slots(pod)
    grant = carried_grant(pod, containers)
    if grant is None:
        return fields
    by_annotation, bare = asking(pod, containers, grant)
    policy = policies.of(namespace).policy
    detects = policy.frameworks.detect
    taken = _Taken(grant, by_annotation, pod.metadata.annotations or {}, policies.catalogue, detects=detects)
    spec = fields["spec"]
    for group in _CONTAINERS:
        spec = _changed(spec, group, [taken.off_container(one) for one in spec.get(group) or ()])
    spec = taken.off_attachment(spec) if grant.attach == "pod" else spec
    first = next((slot.name for slot in containers if slot.group == "containers"), "")
    metadata = _metadata(fields["metadata"], bare=bare, first=first)
    return {**fields, "metadata": metadata, "spec": _unplaced(spec, policy.placement)}


class _Taken:
    """Takes off what one grant added."""

    def __init__(
        self,
        grant: CarriedGrant,
        asking: frozenset[str],
        annotations: Mapping[str, str],
        catalogue: Catalogue,
        *,
        detects: bool,
    ) -> None:
        self._grant = grant
        self._asking = asking
        self._annotations = annotations
        self._catalogue = catalogue
        self._detects = detects

    def off_container(self, one: Fields) -> Fields:
        """Take off what stands in a container."""
        name = one["name"]
        granted = self._grant.containers.get(name)
        if granted is None:
            return _changed(one, "env", [env for env in one.get("env") or () if not _hides(env)])
        if name in self._asking:
            one = {**one, "resources": _without(one["resources"], self._grant.limit(granted)[0])}
        wish = wish_for(name, self._annotations, detects=self._detects)
        made = (without_settings(one, wish, budget, self._catalogue) for budget in self._grant.budgets(granted))
        left = next((other for other in made if other is not one), one)
        return _changed(_changed(one, "args", left.get("args") or []), "env", left.get("env") or [])

    def off_attachment(self, spec: Fields) -> Fields:
        """Take off hostIPC, and the directory of the MPS pipes where nobody else mounts it."""
        spec = {key: value for key, value in spec.items() if key != "hostIPC"}
        volumes = spec.get("volumes") or ()
        pipes = next((path for one in volumes if (path := _pipes(one))), "")
        for group in _CONTAINERS:
            spec = _changed(spec, group, [self._unmounted(one, pipes) for one in spec.get(group) or ()])
        mounted = {mount["name"] for group in _CONTAINERS for one in spec.get(group) or () for mount in _mounts(one)}
        return spec if MPS_VOLUME in mounted else _changed(spec, "volumes", [one for one in volumes if not _pipes(one)])

    def _unmounted(self, one: Fields, pipes: str) -> Fields:
        ours = {"name": MPS_VOLUME, "mountPath": pipes, "readOnly": True}
        if one["name"] not in self._grant.containers:
            return one
        # Grants of an earlier version mounted it writable.
        return _changed(one, "volumeMounts", [mount for mount in _mounts(one) if {**mount, "readOnly": True} != ours])


def _hides(variable: Fields) -> bool:
    return HIDES.get(variable["name"], ...) == variable.get("value")


def _without(resources: Fields, resource: str) -> Fields:
    for field in ("limits", "requests"):
        left = {name: amount for name, amount in (resources.get(field) or {}).items() if name != resource}
        resources = _changed(resources, field, left)
    return resources


def _pipes(volume: Fields) -> str:
    """Return the directory of the node that a volume is, if it is the one that comes with a share."""
    path = (volume.get("hostPath") or {}).get("path", "")
    return normal(path) if volume["name"] == MPS_VOLUME and path else ""


def _mounts(one: Fields) -> list[Fields]:
    return [*(one.get("volumeMounts") or ())]


def _unplaced(spec: Fields, placement: Placement) -> Fields:
    """Take off where the pod runs, as far as its policy says that: then it said so as well, perhaps otherwise."""
    own = {key: value for key, value in (spec.get("nodeSelector") or {}).items() if key not in placement.node_selector}
    spec = _changed(spec, "nodeSelector", own)
    ours = {"runtimeClassName": placement.runtime_class_name, "schedulerName": placement.scheduler_name}
    return {key: value for key, value in spec.items() if ours.get(key) is None}


def _metadata(metadata: Fields, *, bare: str, first: str) -> Fields:
    """Take off the grant; a *bare* share stays with the container that got it, whichever is the *first* by now."""
    annotations = {key: value for key, value in metadata["annotations"].items() if key != GRANT_ANNOTATION}
    if bare and bare != annotations.get(DEFAULT_CONTAINER_ANNOTATION, first):
        annotations[DEFAULT_CONTAINER_ANNOTATION] = bare
    labels = {key: value for key, value in (metadata.get("labels") or {}).items() if key != SHARED_LABEL}
    return _changed({**metadata, "annotations": annotations}, "labels", labels)


def _changed(fields: Fields, key: str, value: Mapping[str, Any] | list[Any]) -> Fields:
    """Put *value* in its place; what has become empty is left out, and what is as it was stays as it is written."""
    if value == (fields.get(key) or type(value)()):
        return fields
    return {one: (value if one == key else held) for one, held in fields.items() if value or one != key}
