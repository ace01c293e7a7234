"""The pods of Argo Workflows, as its controller makes them of templates."""

from typing import Any

from policies.contract import DEFAULT_CONTAINER_ANNOTATION
from webhook.preview.object_fields import ArgoTemplateFields, Workflow
from webhook.preview.shapes import Fields, mapping, merged, put_metadata


class ArgoTemplate:
    """A template of an Argo workflow: the container `main`, beside which the controller puts two of its own."""

    note = "as Argo makes it of this template, without its containers init and wait"
    reads = (Workflow, ArgoTemplateFields)
    _CONTAINERS = ("container", "script")
    _TYPES = (*_CONTAINERS, "containerSet")
    _SPEC = ("volumes", "nodeSelector", "tolerations", "schedulerName", "initContainers")

    def annotations(self, document: Fields, holder: Fields) -> list[Fields]:
        """The workflow's `podMetadata`, those of its `templateDefaults`, and the template's."""
        workflow = self._workflow(document)
        defaults = mapping(workflow, "templateDefaults")
        return [mapping(workflow, "podMetadata"), mapping(defaults, "metadata"), mapping(holder, "metadata")]

    def build(self, document: Fields, holder: Fields) -> Fields | None:
        """Put the template's containers and the workflow's settings into a pod."""
        metadata = merged(self.annotations(document, holder))
        workflow = self._workflow(document)
        holder = self._with_defaults(workflow, holder)
        containers = self._containers(holder)
        if not containers:
            return None
        metadata["annotations"].setdefault(DEFAULT_CONTAINER_ANNOTATION, _default(containers))
        spec = {name: workflow[name] for name in self._SPEC if workflow.get(name) is not None}
        spec |= {name: holder[name] for name in self._SPEC if holder.get(name) is not None}
        volumes = [*(workflow.get("volumes") or ()), *(holder.get("volumes") or ())]
        spec |= {"volumes": volumes} if volumes else {}
        return {"metadata": metadata, "spec": {**spec, "containers": [*containers, *(holder.get("sidecars") or ())]}}

    def put_back(self, document: Fields, holder: Fields, before: Fields, after: Fields) -> list[str]:
        """Write containers, volumes and placement; a template has no other fields of a pod."""
        workflow = self._workflow(document)
        count = len(self._containers(self._with_defaults(workflow, holder)))
        self._put_containers(holder, before["spec"]["containers"], after["spec"]["containers"], count)
        unplaced = []
        for name, value in after["spec"].items():
            if name == "containers" or before["spec"].get(name) == value:
                continue
            if name in self._SPEC:
                own = [one for one in value if one not in (workflow.get(name) or ())]
                holder[name] = own if isinstance(value, list) else value
            else:
                unplaced.append(name)
        put_metadata(holder.setdefault("metadata", {}), before, after)
        return unplaced

    def _put_containers(self, holder: Fields, before: list[Fields], after: list[Fields], count: int) -> None:
        """Write what has changed of the containers; behind the first *count* are the sidecars."""
        if after[:count] != before[:count]:
            for name in self._CONTAINERS:
                if isinstance(holder.get(name), dict):
                    own = {key: value for key, value in holder[name].items() if key == "name"}
                    holder[name] = own | {key: value for key, value in after[0].items() if key != "name"}
            if isinstance(holder.get("containerSet"), dict):
                holder["containerSet"]["containers"] = after[:count]
        if after[count:] != before[count:]:
            holder["sidecars"] = after[count:]

    def _with_defaults(self, workflow: Fields, holder: Fields) -> Fields:
        """Give a template what the workflow has for all of its type."""
        others = {name for name in self._TYPES if not isinstance(holder.get(name), dict)}
        defaults = mapping(workflow, "templateDefaults")
        return _patched({name: value for name, value in defaults.items() if name not in others}, holder)

    def _containers(self, holder: Fields) -> list[Fields]:
        for name in self._CONTAINERS:
            if isinstance(holder.get(name), dict):
                return [{**holder[name], "name": _MAIN}]  # whatever it is called
        return mapping(holder, "containerSet").get("containers") or []

    def _workflow(self, document: Fields) -> Fields:
        spec = mapping(document, "spec")
        return mapping(spec, "workflowSpec") or spec


_MAIN = "main"
# Lists of a template that are merged, and what is the same in two items: by patchMergeKey in the types of their fields.
_KEYS = {
    "env": "name",
    "hostAliases": "ip",
    "initContainers": "name",
    "ports": "containerPort",
    "sidecars": "name",
    "tolerations": "key",
    "volumeDevices": "devicePath",
    "volumeMounts": "mountPath",
    "volumes": "name",
}


def _default(containers: list[Fields]) -> str:
    """Name the container that Argo says is the default one: `main`, or the last of a set."""
    names = [one["name"] for one in containers]
    return _MAIN if _MAIN in names else names[-1]


def _patched(defaults: Fields, own: Fields) -> Fields:
    """Merge *own* into *defaults*, as a strategic merge patch does."""
    made = dict(defaults)
    for name, value in own.items():
        before = made.get(name)
        if isinstance(value, dict) and isinstance(before, dict):
            made[name] = _patched(before, value)
        elif isinstance(value, list) and isinstance(before, list) and name in _KEYS:
            made[name] = _joined(before, value, _KEYS[name])
        elif not before or value not in (None, "", []):  # Argo's types leave out what is empty
            made[name] = value
    return made


def _joined(defaults: list[Any], own: list[Any], key: str) -> list[Any]:
    """Merge lists: an item of *own* goes into the one with the same *key*, else to the end."""
    made = list(defaults)
    for item in own:
        same = (at for at, other in enumerate(made) if _named(other, key) == _named(item, key) is not None)
        at = next(same, None)
        if at is None:
            made.append(item)
        else:
            made[at] = _patched(made[at], item)
    return made


def _named(item: Any, key: str) -> Any:
    return item.get(key) if isinstance(item, dict) else None
