"""What an Argo workflow says for all its templates, merged into one of them as a strategic merge patch does."""

from collections.abc import Mapping
from typing import Any

from webhook.preview.shapes import Fields, mapping

ROOT_TYPES = ("container", "script")
_TYPES = (*ROOT_TYPES, "containerSet")
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


def workflow_of(document: Fields) -> Fields:
    """Return the spec of a workflow: the object's, or the one in it."""
    spec = mapping(document, "spec")
    return mapping(spec, "workflowSpec") or spec


def with_defaults(workflow: Fields, holder: Fields) -> Fields:
    """Give a template what the workflow has for all of its type."""
    others = {name for name in _TYPES if not isinstance(holder.get(name), dict)}
    defaults = mapping(workflow, "templateDefaults")
    return _patched({name: value for name, value in defaults.items() if name not in others}, holder)


def _patched(defaults: Fields, own: Fields, keys: Mapping[str, str] = _KEYS) -> Fields:
    """Merge *own* into *defaults*, as a strategic merge patch does; no list of a set of containers is merged."""
    made = dict(defaults)
    for name, value in own.items():
        before = made.get(name)
        if isinstance(value, dict) and isinstance(before, dict):
            made[name] = _patched(before, value, {} if name == "containerSet" else keys)
        elif isinstance(value, list) and isinstance(before, list) and name in keys:
            made[name] = _joined(before, value, keys[name])
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
