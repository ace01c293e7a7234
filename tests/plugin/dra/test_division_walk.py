"""Whatever the scheduler, the kubelet and whoever changes `_cluster.yaml` do in whatever order: all shares fit."""

import re
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from plugin.dra.calls import Calls
from plugin.dra.driver import DraDriver, DraSettings
from plugin.dra.slices import slice_name
from plugin.errors import ClaimError
from plugin.shares.handover import HandoverSettings
from plugin.shares.nvidia_devices import NvidiaDevices
from plugin.simulated.api_server import SLICES, Object, Store
from plugin.simulated.scheduler import SimulatedScheduler
from policies.cluster import Cluster
from policies.nodes import NodeRule
from policies.quantity import whole
from policies.sizes import Size, size_of
from tests.plugin.dra.gpus import divided, gpu, shared
from tests.plugin.dra.node import NODE
from tests.plugin.dra.prepared import unseen

EXPECTED = re.compile(r"containers still run|in _cluster\.yaml by now: delete the pod|gone from this node")
NUMBERS = (3, 7, 10, 24)
LOST = f"{gpu(1).label}-"
RULE = NodeRule(indexes=(0,), device="big", vgpus_per_gpu=4)
OF_PODS = ["allocate", "allocate", "prepare", "end", "delete", "delete by force"]
OF_NODES = ["divide", "restart", "reboot", "name", "share otherwise", "lose a gpu"]
STEPS = st.lists(st.tuples(st.sampled_from([*OF_PODS, *OF_NODES]), st.integers(0, 30)), max_size=40)


def device_of(claim: Object) -> str:
    (result,) = claim["status"]["allocation"]["devices"]["results"]
    name: str = result["device"]
    return name


class Api:
    """The claims in a store, without a server."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def get(self, path: str, **_query: str) -> Any:
        return self._store.objects[path]


class Walk:
    """A node with two GPUs of which the scheduler sees what is published."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.store = Store()
        self.number = 10
        self.gpus = 2
        self.boot = 0
        self.rules: tuple[NodeRule, ...] = ()
        self.strategy: Literal["mps", "time-slicing"] = "mps"
        self.allocated: list[Object] = []
        self.prepared: list[Object] = []
        self.start()

    @property
    def scheduler(self) -> SimulatedScheduler:
        return SimulatedScheduler(self.store)

    def start(self) -> None:
        handover = HandoverSettings(ways=frozenset(), cdi_dir=self.directory / "cdi", nvidia=NvidiaDevices(()))
        places = DraSettings(
            node=NODE,
            plugins_dir=self.directory,
            registrar_dir=self.directory,
            handover=handover,
            has_processes=unseen,
        )
        self.division = divided(self.number, *self.rules)
        cluster = Cluster(vgpus_per_gpu=self.number, nodes=self.rules)
        api: Any = Api(self.store)
        self.driver = DraDriver(places, cluster, self.division, api, boot_id=f"boot {self.boot}")

    def publish(self) -> None:
        self.division.set_vgpus_per_gpu(self.number)
        self.driver.publish(shared(self.gpus, self.strategy), driver_version="1")
        self.driver.publisher._before()
        for one in self.store.below(SLICES):
            self.store.remove(f"{SLICES}/{one['metadata']['name']}")
        for number, spec in enumerate(self.driver.publisher._specs or ()):
            name = slice_name(NODE, number)
            self.store.put(f"{SLICES}/{name}", {"metadata": {"name": name}, "spec": spec})

    def step(self, what: str, number: int) -> None:
        match what:
            case "allocate":
                sizes = self.sizes()
                if claim := self.scheduler.schedule("p", {"c": sizes[number % len(sizes)].resource}):
                    self.allocated.append(claim)
            case "prepare" if self.allocated:
                self.prepare(self.allocated.pop(number % len(self.allocated)))
            case "end" if self.prepared:
                claim = self.prepared.pop(number % len(self.prepared))
                self.unprepare(claim)
                self.scheduler.release(claim)
            case "delete" if self.allocated:
                self.scheduler.release(self.allocated.pop(number % len(self.allocated)))
            case "delete by force" if self.prepared:
                self.scheduler.release(self.prepared.pop(number % len(self.prepared)))
            case "divide":
                self.number = NUMBERS[number % len(NUMBERS)]
            case "restart" | "reboot" | "name" | "share otherwise" | "lose a gpu":
                self.start_otherwise(what)
        self.publish()

    def start_otherwise(self, what: str) -> None:
        if what == "name":
            self.rules = () if self.rules else (RULE,)
        if what == "share otherwise":
            self.strategy = "mps" if self.strategy == "time-slicing" else "time-slicing"
        if what == "reboot":  # the kubelet has all claims prepared again
            self.boot += 1
            self.allocated += self.prepared
            self.prepared.clear()
        if what == "lose a gpu":  # or find it again
            for claim in [one for one in self.allocated if device_of(one).startswith("gpus-")]:
                self.allocated.remove(claim)
                self.scheduler.release(claim)
            self.gpus = 3 - self.gpus
        self.start()

    def sizes(self) -> list[Size]:
        """List what pods may ask for now."""
        of_each = [size_of(units, self.number, self.strategy) for units in range(1, self.number + 1)]
        of_big = [size_of(units, 4, self.strategy, RULE.of_device) for units in range(1, 5)]
        return [*of_each, *(of_big if self.rules else ()), Size(self.strategy, 2000)]

    def prepare(self, claim: Object) -> None:
        metadata = claim["metadata"]
        place = {"uid": metadata["uid"], "namespace": metadata["namespace"], "name": metadata["name"]}
        with Calls().begin(lambda: True) as call:
            try:
                (given,) = self.driver.prepare(call, **place, wait_seconds=0).devices
            except ClaimError as error:
                assert EXPECTED.search(str(error))  # noqa: PT017
                self.allocated.append(claim)
            else:
                assert len(given.gpus) == (2 if device_of(claim).startswith("gpus-") else 1)
                self.prepared.append(claim)

    def unprepare(self, claim: Object) -> None:
        metadata = claim["metadata"]
        self.driver.unprepare(uid=metadata["uid"], namespace=metadata["namespace"], name=metadata["name"])

    def left(self) -> dict[str, int]:
        """Say what the scheduler sees of each GPU's counter when all that is allocated is taken off."""
        parts = [one["spec"] for one in self.store.below(SLICES)]
        left = {
            name: whole(value["value"]) or 0
            for part in parts
            for one in part.get("sharedCounters", ())
            for name, value in one["counters"].items()
        }
        devices = {one["name"]: one for part in parts for one in part.get("devices", ())}
        for device in map(device_of, (*self.allocated, *self.prepared)):
            if device not in devices and device.startswith(LOST) and self.gpus == 1:
                continue
            for name, value in devices[device]["consumesCounters"][0]["counters"].items():
                left[name] -= whole(value["value"]) or 0
        return left


@settings(deadline=None, max_examples=40)
@given(STEPS)
@example(
    [("share otherwise", 0), ("allocate", 10), ("prepare", 0), ("lose a gpu", 0), ("allocate", 9), ("lose a gpu", 0)]
)
def test_what_is_allocated_is_published_and_fits_whatever_happens(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int]]
) -> None:
    walk = Walk(tmp_path_factory.mktemp("w"))
    walk.publish()
    for what, number in steps:
        walk.step(what, number)
        assert min(walk.left().values()) >= 0
        held = walk.driver._preparations.kept().values()
        for one in shared(2):
            assert sum((part for _, part, uuids in held if one.gpu.uuid in uuids), Fraction(0)) <= 1
