"""How the scheduler of Kubernetes 1.36 allocates extended resources by DRA: the first device of a class that fits."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import uuid4

from plugin.simulated.api_server import SLICES, Object, Store
from policies.contract import DRIVER
from policies.quantity import whole
from policies.sizes import read_size


class SimulatedScheduler:
    """Allocates from the slices in *store*, and writes the claims that it makes there."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def schedule(self, pod: str, requests: Mapping[str, str], *, namespace: str = "default") -> Object | None:
        """Make a pod's claim for a resource of each container; None if the pod stays Pending."""
        results, specs = [], []
        taken: list[str] = []
        for number, resource in enumerate(requests.values()):
            size = read_size(resource)
            device = self._first(size.name, taken) if size is not None else None
            if size is None or device is None:
                return None
            taken.append(device["name"])
            request = f"container-{number}-request-0"
            exactly = {"deviceClassName": size.device_class, "allocationMode": "ExactCount", "count": 1}
            specs.append({"name": request, "exactly": exactly})
            results.append(
                {"request": request, "driver": DRIVER, "pool": device["pool"], "device": device["name"]},
            )
        return self._claim(pod, namespace, specs, results)

    def release(self, claim: Object) -> None:
        """Free a claim, whether its containers have ended or not."""
        self._store.remove(_path(claim))

    def _claim(self, pod: str, namespace: str, requests: Sequence[Object], results: Sequence[Object]) -> Object:
        uid = str(uuid4())
        metadata = {
            "name": f"{pod}-extended-resources-{uid[:5]}",
            "namespace": namespace,
            "uid": str(uuid4()),
            "annotations": {"resource.kubernetes.io/extended-resource-claim": "true"},
            "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": pod, "uid": uid, "controller": True}],
        }
        status = {"allocation": {"devices": {"results": list(results)}}, "reservedFor": [{"name": pod, "uid": uid}]}
        claim = {"metadata": metadata, "spec": {"devices": {"requests": list(requests)}}, "status": status}
        return self._store.put(_path(claim), claim)

    def _first(self, size: str, taken: Sequence[str]) -> Object | None:
        """Find the first device of a size whose counters have enough left and that nothing keeps pods off."""
        slices = self._store.below(SLICES)
        devices = {one["name"]: one for part in slices for one in _devices(part)}
        left = {
            (kept["name"], name): _number(counter)
            for part in slices
            for kept in part["spec"].get("sharedCounters", ())
            for name, counter in kept["counters"].items()
        }
        held = [*self._allocated(), *taken]
        for name in held:
            for counter, number in _consumed(devices.get(name, {})):
                left[counter] -= number
        if min(left.values(), default=0) < 0:  # of any device of the pool
            return None
        for name, device in devices.items():
            fits = all(left[counter] >= number for counter, number in _consumed(device))
            is_size = device["attributes"]["size"]["string"] == size
            if is_size and fits and name not in held and not device.get("taints"):
                return device
        return None

    def _allocated(self) -> list[str]:
        with self._store.changed:
            claims = [one for path, one in self._store.objects.items() if "/resourceclaims/" in path]
        return [result["device"] for one in claims for result in one["status"]["allocation"]["devices"]["results"]]


def _devices(part: Object) -> list[Object]:
    return [{**one, "pool": part["spec"]["pool"]["name"]} for one in part["spec"].get("devices", ())]


def _consumed(device: Object) -> list[tuple[tuple[str, str], int]]:
    return [
        ((one["counterSet"], name), _number(counter))
        for one in device.get("consumesCounters", ())
        for name, counter in one["counters"].items()
    ]


def _number(counter: Mapping[str, Any]) -> int:
    return whole(counter["value"]) or 0


def _path(claim: Object) -> str:
    metadata = claim["metadata"]
    return f"/apis/resource.k8s.io/v1/namespaces/{metadata['namespace']}/resourceclaims/{metadata['name']}"
