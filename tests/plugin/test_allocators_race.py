"""A GPU is given away by one of the two, while both are asked for it in threads and it goes from one to the other."""

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from threading import Event
from time import sleep
from typing import TYPE_CHECKING

import pytest

from plugin.allocators import Allocators
from plugin.device_plugin.devices import Devices
from plugin.device_plugin.held import HeldVgpus
from plugin.dra.preparations import Preparations
from plugin.errors import AllocationError, ClaimError
from plugin.gpus.gpu import Pool
from plugin.settings import Settings
from policies.cluster import Cluster
from tests.plugin.dra.gpus import shared
from tests.plugin.dra.prepared import device, prepare, unseen
from tests.plugin.health.watched_node import SETTINGS, resources_of

if TYPE_CHECKING:
    from plugin.device_plugin.service import Resource

GPUS = shared(2)
TO_DRA, TO_PLUGIN = (one.gpu for one in GPUS)
ROUNDS = 25
SECONDS = 0.06


class Node:
    """A node that starts: `nodes` says of both GPUs that they are the other's than who holds something of them."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir()
        self.preparations = Preparations(directory, directory / "cdi", boot_id="boot", has_processes=unseen)
        self.preparations.follow({TO_PLUGIN.uuid: ""})
        prepare(self.preparations, "first", device(500, TO_PLUGIN.uuid))
        self.held = HeldVgpus()
        name = Cluster().resource("mps", "")
        earlier = Devices(Pool(gpus=(TO_DRA,), vgpus_per_gpu=10), resource=name)
        self.vgpu = str(next(iter(earlier.pool.vgpus()))[0])
        self.held.allocate([self.vgpu], earlier, "pack")
        served = list["Resource"]()
        settings = Settings(**SETTINGS | {"strategy": "mps"})
        resources = resources_of(settings, Cluster(vgpus_per_gpu=10), serve=served.append, held=self.held)
        self.allocators = Allocators(
            lambda gpu: "dra" if gpu == TO_DRA else "device-plugin",
            held=lambda: {"device-plugin": self.held.gpus(), "dra": self.preparations.gpus()},
            withdraw={"device-plugin": resources.withdraw, "dra": self.preparations.withdraw},
            to_device_plugin=resources.publish,
            to_dra=lambda gpus: self.preparations.follow({one.gpu.uuid: one.why for one in gpus}),
        )
        self.allocators.publish(GPUS)
        self.devices = served[0].devices
        self.given: set[str] = set()

    def kubelet(self) -> None:
        """Allocate a vGPU to a container, which ends."""
        ids = [self.vgpu] if self.vgpu in self.devices.seen else sorted(self.devices.seen)[:1]
        try:
            given = self.held.allocate(ids, self.devices, "pack")
        except AllocationError:
            return
        (gpu,) = given.gpus
        assert gpu.uuid not in self.preparations.gpus()
        self.given.add(f"kubelet {gpu.uuid}")
        self.end(ids)

    def end(self, ids: list[str]) -> None:
        self.held.preferred(self.devices, "pack", available=ids, must_include=(), size=1)

    def claim(self, gpu: str) -> None:
        """Prepare a claim that waits for a GPU, and unprepare it."""
        uid = f"claim on {gpu}"
        try:
            prepare(self.preparations, uid, device(900, gpu), wait_seconds=SECONDS)
        except ClaimError:
            return
        assert gpu not in self.held.gpus()
        self.given.add(f"claim {gpu}")
        self.preparations.unprepare(uid)

    def publish(self) -> None:
        self.allocators.publish(GPUS)
        assert not {gpu.uuid for gpu in self.devices.pool.gpus} & self.preparations.gpus()


def repeated(step: Callable[[], None], over: Event) -> None:
    while not over.is_set():
        step()
        sleep(0)


@pytest.fixture
def many_switches() -> Iterator[None]:
    """Let threads interrupt each other in the midst of everything."""
    before_seconds = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before_seconds)


@pytest.mark.usefixtures("many_switches")
def test_no_gpu_is_ever_given_away_by_both(tmp_path: Path) -> None:
    given: set[str] = set()
    for number in range(ROUNDS):
        node, over = Node(tmp_path / str(number)), Event()
        steps = (node.kubelet, partial(node.claim, TO_DRA.uuid), partial(node.claim, TO_PLUGIN.uuid), node.publish)
        with ThreadPoolExecutor(len(steps)) as threads:
            running = [threads.submit(repeated, step, over) for step in steps]
            sleep(number % 5 * 0.001)
            node.preparations.unprepare("first")
            sleep(SECONDS)
            over.set()
        for one in running:
            one.result()
        given |= node.given
        node.publish()
        node.publish()
        assert [gpu.uuid for gpu in node.devices.pool.gpus] == [TO_PLUGIN.uuid]
    assert {f"kubelet {TO_PLUGIN.uuid}", f"claim {TO_DRA.uuid}"} <= given
