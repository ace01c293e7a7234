"""Slices in an API server, without a server between."""

from typing import Any

from plugin.dra.api_server import ApiError
from plugin.dra.devices import devices_of
from plugin.dra.slices import Spec, slice_specs
from plugin.simulated.api_server import SLICES, Store
from tests.plugin.dra.gpus import divided, shared

NODE = "n"


class Api:
    """The API server's client, without a server between."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.writes: list[str] = []
        store.put(f"/api/v1/nodes/{NODE}", {"metadata": {"name": NODE}})

    def get(self, path: str, **_query: str) -> Any:
        own = [one for one in self.store.below(path) if one["spec"]["nodeName"] == NODE]
        return {"items": own} if path == SLICES else self.store.objects[path]

    def create(self, path: str, body: Any) -> Any:
        place = f"{path}/{body['metadata']['name']}"
        if place in self.store.objects:
            raise ApiError("already exists", status=409)
        self.writes.append(f"create {body['metadata']['name']}")
        return self.store.put(place, body)

    def replace(self, path: str, body: Any) -> Any:
        if body["metadata"]["resourceVersion"] != self.store.objects[path]["metadata"]["resourceVersion"]:
            raise ApiError("conflict", status=409)
        self.writes.append(f"replace {body['metadata']['name']}")
        return self.store.put(path, body)

    def delete(self, path: str, body: Any) -> None:
        assert body["preconditions"]["uid"] == self.store.objects[path]["metadata"]["uid"]
        self.writes.append(f"delete {path.rpartition('/')[2]}")
        self.store.remove(path)

    @property
    def generations(self) -> set[int]:
        return {one["spec"]["pool"]["generation"] for one in self.store.below(SLICES)}


def specs(count: int, **unhealthy: str) -> tuple[Spec, ...]:
    gpus = shared(count, "mps", **unhealthy)
    return slice_specs(devices_of(gpus, division=divided(10), kept={}), gpus, node=NODE, driver_version="1")
