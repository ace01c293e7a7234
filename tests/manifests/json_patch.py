"""JSON patches as kustomize applies them, but for one thing: no `add` replaces what is there."""

from copy import deepcopy
from typing import Any

import jsonpatch

Object = dict[str, Any]


class PatchError(Exception):
    """A patch that adds what is there already."""


def patched(one: Object, patch: list[Object]) -> Object:
    """
    Return *one* with a patch applied.

    Raises:
        PatchError: If it adds a field that has another value: all of that would be gone, without a word.
    """
    made = deepcopy(one)
    for operation in patch:
        parent, name = jsonpatch.JsonPointer(operation["path"]).to_last(made)
        value = operation.get("value")
        if operation["op"] == "add" and isinstance(parent, dict) and parent.get(name, value) != value:
            raise PatchError(f"{operation['path']} is there already: say replace, or add to what it has")
        made = jsonpatch.apply_patch(made, [deepcopy(operation)])
    return made
