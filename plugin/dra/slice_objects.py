"""The ResourceSlices of one node as the API server has them: brought to what they should say, or taken back."""

import logging
from collections.abc import Sequence
from typing import Any, Protocol

from plugin.dra.api_server import SLICES, ApiError, path_of_node
from plugin.dra.slices import Spec, another_name, canonical, first_name, is_same, slice_name
from plugin.errors import DraError
from policies.contract import DRIVER

_log = logging.getLogger(__name__)


class FieldsMissingError(DraError):
    """An API server that does not keep what a slice must say."""


class Objects(Protocol):
    """The part of the API server's client that is used."""

    def get(self, path: str, **query: str) -> Any: ...  # noqa: D102 - as ApiServer has them
    def create(self, path: str, body: Any) -> Any: ...  # noqa: D102 - likewise
    def replace(self, path: str, body: Any) -> Any: ...  # noqa: D102 - likewise
    def delete(self, path: str, body: Any) -> None: ...  # noqa: D102 - likewise


def reconcile(api: Objects, node: str, specs: Sequence[Spec]) -> bool:
    """
    Have the API server keep *specs* as this node's slices, and no others; False if it did already.

    The generation of the pool says which slices belong together: where more than one is written it is a new one, and
    the scheduler waits until all of them are there. One that was begun, with what is wanted now, is gone on with.

    Raises:
        ApiError: If a request fails.
        FieldsMissingError: If the API server leaves out what the scheduler must know; nothing is published then.
    """
    wanted = {slice_name(node, number): spec for number, spec in enumerate(specs)}
    slices = _slices(api, node)
    in_pool = [one for one in slices if one["spec"]["pool"]["name"] == node]
    found: dict[str, Any] = {}  # the first of each name
    for one in in_pool:
        if (name := first_name(one["metadata"]["name"])) in wanted:
            found.setdefault(name, one)
    surplus = [one for one in slices if found.get(first_name(one["metadata"]["name"])) is not one]
    generations = {one["spec"]["pool"]["generation"] for one in in_pool}
    different = [name for name, spec in wanted.items() if name not in found or not is_same(found[name]["spec"], spec)]
    if not surplus and not different and len(generations) <= 1:
        return False
    latest = max(generations, default=0)
    begun = [name for name, one in found.items() if one["spec"]["pool"]["generation"] == latest]
    is_one_update = not surplus and len(different) == 1 and different[0] in found and len(generations) == 1
    goes_on = len(generations) > 1 and not set(begun).intersection(different)
    generation = latest if is_one_update or goes_on else latest + 1
    owner = _owner(api.get(path_of_node(node)))
    for one in surplus:
        _delete(api, one)
    rest = [name for name in wanted if name not in begun] if goes_on else list(wanted)
    for name in different if is_one_update else rest:
        _write(api, name, wanted[name], generation=generation, before=found.get(name), owner=owner)
    return True


def withdraw(api: Objects, node: str) -> None:
    """
    Take all slices of this node back.

    Raises:
        ApiError: If a request fails.
    """
    for one in _slices(api, node):
        _delete(api, one)


def _slices(api: Objects, node: str) -> list[Any]:
    found: list[Any] = api.get(SLICES, fieldSelector=selector(node))["items"]
    return found


def selector(node: str) -> str:
    """Select the slices of this driver on a node."""
    return f"spec.driver={DRIVER},spec.nodeName={node}"


def _owner(node: Any) -> dict[str, Any]:
    """Name the node as the owner: with it the slices go."""
    metadata = node["metadata"]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "name": metadata["name"],
        "uid": metadata["uid"],
        "controller": True,
    }


def _write(  # noqa: PLR0913 - all of an object
    api: Objects, name: str, spec: Spec, *, generation: int, before: Any, owner: dict[str, Any]
) -> None:
    metadata: dict[str, Any] = {"name": name, "ownerReferences": [owner]}
    body = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": metadata,
        "spec": {**spec, "pool": {**spec["pool"], "generation": generation}},
    }
    if before is None:
        stored = _create(api, body)
    else:
        metadata["name"] = before["metadata"]["name"]
        metadata["resourceVersion"] = before["metadata"]["resourceVersion"]
        stored = api.replace(f"{SLICES}/{metadata['name']}", body)
    if not is_same(stored["spec"], spec):
        raise FieldsMissingError(
            f"the API server does not keep {', '.join(_missing(spec, stored['spec']))} of slices: switch on the "
            "feature gates DRAPartitionableDevices and DRADeviceTaints, or use allocation: device-plugin on this node"
        )


def _create(api: Objects, body: dict[str, Any]) -> Any:
    try:
        return api.create(SLICES, body)
    except ApiError as error:
        if not error.is_conflict:
            raise
    metadata = body["metadata"]
    taken, metadata["name"] = metadata["name"], another_name(metadata["name"])
    extra = {"taken": taken, "slice": metadata["name"]}
    _log.warning("the name of a slice is taken by one that is not of this node: see who made it", extra=extra)
    return api.create(SLICES, body)


def _missing(spec: Spec, stored: Any) -> list[str]:
    """Name the fields in which two specifications differ."""
    before, after = canonical(spec), canonical(stored)
    fields = {field for field in before if before[field] != after.get(field) and field != "devices"}
    for device, kept in zip(before.get("devices", ()), after.get("devices", ()), strict=False):
        fields |= {f"devices[].{field}" for field in device if device[field] != kept.get(field)}
    return sorted(fields) or ["devices"]


def _delete(api: Objects, one: Any) -> None:
    metadata = one["metadata"]
    only = {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]}
    body = {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": only}
    api.delete(f"{SLICES}/{metadata['name']}", body)
