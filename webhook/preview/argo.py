"""The pods of Argo Workflows, as its controller makes them of templates."""

from typing import Any

from policies.contract import DEFAULT_CONTAINER_ANNOTATION
from webhook.preview.argo_defaults import ROOT_TYPES, with_defaults, workflow_of
from webhook.preview.object_fields import ArgoTemplateFields, Workflow
from webhook.preview.parameters import parameters_of
from webhook.preview.shapes import (
    KUBERNETES_SCHEDULER,
    Fields,
    Values,
    Writable,
    mapping,
    merged,
    put_metadata,
    without,
)

NESTED = ("steps.*.*.inline", "dag.tasks.*.inline")  # templates in a template


class ArgoTemplate(Writable):
    """A template of an Argo workflow: the container `main`, beside which the controller puts two of its own."""

    note = "as Argo makes it of this template, without its containers init and wait"
    reads = (Workflow, ArgoTemplateFields)
    # Of these a template has its own, or else the workflow's.
    _EITHER = ("nodeSelector", "tolerations", "schedulerName", "securityContext", "resourceClaims")

    def annotations(self, document: Fields, holder: Fields) -> list[Fields]:
        """The workflow's `podMetadata`, those of its `templateDefaults`, and the template's."""
        workflow = workflow_of(document)
        defaults = mapping(workflow, "templateDefaults")
        return [mapping(workflow, "podMetadata"), mapping(defaults, "metadata"), mapping(holder, "metadata")]

    def lists(self, document: Fields, holder: Fields) -> list[Any]:
        """Those of its set, and of the one in the workflow's `templateDefaults`."""
        defaults = mapping(workflow_of(document), "templateDefaults")
        return [mapping(one, "containerSet").get("containers") for one in (holder, defaults)]

    def build(self, document: Fields, holder: Fields) -> Fields | None:
        """Put the template's containers and the workflow's settings into a pod."""
        metadata = merged(self.annotations(document, holder))
        workflow = workflow_of(document)
        holder = with_defaults(workflow, holder)
        containers = _containers(holder)
        if not containers:
            return None
        metadata["annotations"].setdefault(DEFAULT_CONTAINER_ANNOTATION, _default(containers))
        spec = {name: held for name in self._EITHER if (held := holder.get(name) or workflow.get(name))}
        spec |= {"initContainers": holder["initContainers"]} if holder.get("initContainers") else {}
        containers += holder.get("sidecars") or ()
        volumes = _mounted(holder, workflow, _mounts(spec, containers))
        spec |= {"volumes": volumes} if volumes else {}
        return {"metadata": metadata, "spec": {**spec, "containers": containers}}

    def values(self, document: Fields) -> Values:
        """Those of parameters, as far as the workflow says them."""
        return parameters_of(document).values

    def put_back(self, document: Fields, holder: Fields, before: Fields, after: Fields) -> list[str]:
        """Write containers, volumes and placement; a template has no other fields of a pod."""
        workflow = workflow_of(document)
        whole = with_defaults(workflow, holder)
        _put_containers(holder, whole, before["spec"]["containers"], after["spec"]["containers"])
        was, spec = before["spec"], after["spec"]
        for name in (*self._EITHER, "initContainers"):
            if name in spec and was.get(name) != spec[name]:
                holder[name] = spec[name]
        if spec.get("volumes") != was.get("volumes"):
            volumes = spec.get("volumes") or []
            names = {one.get("name") for one in volumes}
            unmounted = [one for one in holder.get("volumes") or () if one.get("name") not in names]
            holder["volumes"] = [*unmounted, *without(volumes, workflow.get("volumes") or [])]
        if "schedulerName" not in spec and (whole.get("schedulerName") or workflow.get("schedulerName")):
            holder["schedulerName"] = KUBERNETES_SCHEDULER  # without one it would get the workflow's
        metadata = mapping(holder, "metadata")
        put_metadata(metadata, before, after)
        holder |= {"metadata": metadata} if metadata else {}
        return []


def _put_containers(holder: Fields, whole: Fields, before: list[Fields], after: list[Fields]) -> None:
    """Write what has changed of the containers; behind those of the template's type are the sidecars."""
    count = len(_containers(whole))
    if after[:count] != before[:count]:
        for name in ROOT_TYPES:
            if isinstance(holder.get(name), dict):
                own = {key: value for key, value in holder[name].items() if key == "name"}
                holder[name] = own | {key: value for key, value in after[0].items() if key != "name"}
        if isinstance(holder.get("containerSet"), dict):
            of_set, pairs = mapping(whole, "containerSet"), zip(after, _own(whole), strict=False)
            of_all = of_set.get("volumeMounts") or []
            holder["containerSet"]["containers"] = [_without_mounts(one, of_all, own) for one, own in pairs]
    if after[count:] != before[count:]:
        holder["sidecars"] = after[count:]


def _without_mounts(container: Fields, of_all: list[Fields], own: Fields) -> Fields:
    """Leave out the mounts of a whole set, which its containers do not name themselves."""
    if not of_all:
        return container
    named = own.get("volumeMounts") or []
    mounts = [one for one in container["volumeMounts"] if one not in of_all or one in named]
    rest = {key: value for key, value in container.items() if key != "volumeMounts"}
    return {**rest, "volumeMounts": mounts} if mounts else rest


def _own(holder: Fields) -> list[Fields]:
    return mapping(holder, "containerSet").get("containers") or []


def _containers(holder: Fields) -> list[Fields]:
    """Those of the template's type: the one container, whatever it is called, or those of a set with its mounts."""
    for name in ROOT_TYPES:
        if isinstance(holder.get(name), dict):
            return [{**holder[name], "name": _MAIN}]
    of_all = mapping(holder, "containerSet").get("volumeMounts") or []
    if not of_all:
        return [*_own(holder)]
    # Each has mounts of its own: YAML writes what is the same object as an alias.
    copies = ((one, [dict(mount) for mount in of_all]) for one in _own(holder))
    return [{**one, "volumeMounts": [*(one.get("volumeMounts") or ()), *mounts]} for one, mounts in copies]


def _mounts(spec: Fields, containers: list[Fields]) -> set[str]:
    """Return the names of the volumes that a pod mounts."""
    both = (*containers, *(spec.get("initContainers") or ()))
    mounts = (one.get("volumeMounts") for one in both if isinstance(one, dict))
    every = (mount for held in mounts if isinstance(held, list) for mount in held)
    return {str(mount.get("name")) for mount in every if isinstance(mount, dict)}


def _mounted(holder: Fields, workflow: Fields, mounts: set[str]) -> list[Fields]:
    """Return the volumes of a template and of its workflow that a pod mounts; Argo leaves out the others."""
    any_name = any("{{" in name for name in mounts)  # what a parameter says is not known
    named: dict[Any, Fields] = {}
    for one in (*(holder.get("volumes") or ()), *(workflow.get("volumes") or ())):
        named.setdefault(one.get("name"), one)
    return [one for name, one in named.items() if any_name or name in mounts]


_MAIN = "main"


def _default(containers: list[Fields]) -> str:
    """Name the container that Argo says is the default one: `main`, or the last of a set."""
    names = [one["name"] for one in containers]
    return _MAIN if _MAIN in names else names[-1]
