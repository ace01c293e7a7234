"""
Publishes the node's ResourceSlices, and again whenever they are gone.

The kubelet removes them when it restarts, and 30 seconds after it has lost the driver.
"""

import logging
from collections.abc import Callable, Sequence
from threading import Event
from typing import Any, Protocol

from plugin.dra.api_server import SLICES, ApiError, ApiServer, Watch, path_of_node
from plugin.dra.slices import Spec, canonical, is_same, slice_name
from plugin.errors import DraError
from policies.contract import DRIVER

_log = logging.getLogger(__name__)

_SETTLE_SECONDS = 0.1  # events come in groups: one for each slice
_LOOK_SECONDS = 300.0  # should an event be missed
_FIRST_RETRY_SECONDS, _LONGEST_RETRY_SECONDS = 1.0, 60.0


class FieldsMissingError(DraError):
    """An API server that does not keep what a slice must say."""


class Objects(Protocol):
    """The part of the API server's client that is used."""

    def get(self, path: str, **query: str) -> Any: ...  # noqa: D102 - as ApiServer has them
    def create(self, path: str, body: Any) -> Any: ...  # noqa: D102
    def replace(self, path: str, body: Any) -> Any: ...  # noqa: D102
    def delete(self, path: str, body: Any) -> None: ...  # noqa: D102


def reconcile(api: Objects, node: str, specs: Sequence[Spec]) -> bool:
    """
    Have the API server keep *specs* as this node's slices, and no others; False if it did already.

    The generation of the pool says which slices belong together: where more than one is written it is a new one, and
    the scheduler waits until all of them are there.

    Raises:
        ApiError: If a request fails.
        FieldsMissingError: If the API server leaves out what the scheduler must know; nothing is published then.
    """
    selector = f"spec.driver={DRIVER},spec.nodeName={node}"
    found = {one["metadata"]["name"]: one for one in api.get(SLICES, fieldSelector=selector)["items"]}
    wanted = {slice_name(node, number): spec for number, spec in enumerate(specs)}
    surplus = [name for name in found if name not in wanted]
    different = [name for name, spec in wanted.items() if name not in found or not is_same(found[name]["spec"], spec)]
    generations = {one["spec"]["pool"]["generation"] for one in found.values()}
    if not surplus and not different and len(generations) <= 1:
        return False
    is_one_update = not surplus and len(different) == 1 and different[0] in found and len(generations) == 1
    generation = max(generations, default=0) + (0 if is_one_update else 1)
    owner = _owner(api.get(path_of_node(node)))
    for name in surplus:
        _delete(api, found[name])
    for name in different if is_one_update else wanted:
        _write(api, name, wanted[name], generation=generation, before=found.get(name), owner=owner)
    return True


def withdraw(api: Objects, node: str) -> None:
    """
    Take all slices of this node back.

    Raises:
        ApiError: If a request fails.
    """
    selector = f"spec.driver={DRIVER},spec.nodeName={node}"
    for one in api.get(SLICES, fieldSelector=selector)["items"]:
        _delete(api, one)


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
        stored = api.create(SLICES, body)
    else:
        metadata["resourceVersion"] = before["metadata"]["resourceVersion"]
        stored = api.replace(f"{SLICES}/{name}", body)
    if not is_same(stored["spec"], spec):
        raise FieldsMissingError(
            f"the API server does not keep {', '.join(_missing(spec, stored['spec']))} of slices: switch on the "
            "feature gates DRAPartitionableDevices and DRADeviceTaints, or use allocation: device-plugin on this node"
        )


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


class Publisher:
    """
    Keeps the slices of *node* as they should be. Run it in a thread, and a `SliceWatch` in another.

    They are there while a kubelet knows the driver: of a pod that is bound to the node without it, the kubelet would
    prepare the claim in vain, and try again only 75 to 90 seconds later.
    """

    def __init__(self, api: Objects, *, node: str) -> None:
        self._api = api
        self._node = node
        self._specs: tuple[Spec, ...] | None = None
        self._wake = Event()
        self._is_registered = False
        self._is_published = False
        self._stopping = False
        self._retry_seconds = _FIRST_RETRY_SECONDS
        self.problem = ""  # why the slices are not as they should be, in one sentence

    @property
    def told(self) -> str:
        """Say how the slices are, for people."""
        if self.problem:
            return f"slices not published: {self.problem}"
        return "slices published" if self._is_published else "slices not published yet: waiting for the kubelet"

    def publish(self, specs: Sequence[Spec]) -> None:
        """Take over what the slices should say."""
        if tuple(specs) != self._specs:
            self._specs = tuple(specs)
            self._wake.set()

    def registered(self) -> None:
        """Begin: a kubelet knows the driver now. After its restart the slices are gone, and this is called again."""
        self._is_registered = True
        self._wake.set()

    def look(self) -> None:
        """Let it be seen whether the slices are still there, from any thread."""
        self._wake.set()

    def run(self) -> None:
        """Go on until `stop`."""
        wait_seconds = _LOOK_SECONDS
        while not self._stopping:
            if self._wake.wait(wait_seconds):
                self._wake.clear()
            wait_seconds = self._reconcile()
        if self._is_registered:
            self._withdraw()

    def stop(self) -> None:
        """Take the slices back and let `run` return, from any thread."""
        self._stopping = True
        self._wake.set()

    def _reconcile(self) -> float:
        """Reconcile once; the seconds until the next look are returned."""
        if self._specs is None or self._stopping or not self._is_registered:
            return _LOOK_SECONDS
        specs = self._specs
        try:
            if reconcile(self._api, self._node, specs):
                devices = sum(len(spec.get("devices", ())) for spec in specs)
                _log.info("slices published", extra={"slices": len(specs), "devices": devices})
        except FieldsMissingError as error:
            self._say(error)
            self._withdraw()
            self._retry_seconds = _LONGEST_RETRY_SECONDS
        except DraError as error:
            if not (isinstance(error, ApiError) and error.is_conflict):
                self._say(error)
        else:
            self.problem, self._retry_seconds, self._is_published = "", _FIRST_RETRY_SECONDS, True
            return _LOOK_SECONDS
        seconds, self._retry_seconds = self._retry_seconds, min(2 * self._retry_seconds, _LONGEST_RETRY_SECONDS)
        return seconds

    def _withdraw(self) -> None:
        try:
            withdraw(self._api, self._node)
        except DraError as error:
            self._say(error)

    def _say(self, error: DraError) -> None:
        if str(error) != self.problem:
            self.problem = str(error)
            _log.error("slices not published, trying again", extra={"reason": self.problem})


class SliceWatch:
    """Calls *on_event* whenever a slice of *node* changes."""

    def __init__(self, api: ApiServer, *, node: str, on_event: Callable[[], None]) -> None:
        self._api = api
        self._selector = f"spec.driver={DRIVER},spec.nodeName={node}"
        self._on_event = on_event
        self._stopping = Event()
        self._watch: Watch | None = None

    def run(self) -> None:
        """Go on until `stop`."""
        while not self._stopping.is_set():
            try:
                with self._api.watch(SLICES, fieldSelector=self._selector) as watch:
                    self._watch = watch
                    for _ in watch.events():
                        if self._stopping.wait(_SETTLE_SECONDS):
                            return
                        self._on_event()
            except DraError as error:
                _log.debug("the watch has ended: %s", error)  # the publisher says what is wrong
            self._on_event()
            self._stopping.wait(_FIRST_RETRY_SECONDS)

    def stop(self) -> None:
        """Let `run` return, from any thread."""
        self._stopping.set()
        if self._watch is not None:
            self._watch.close()
