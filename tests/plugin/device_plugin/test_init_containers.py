"""Pods with init containers and sidecars on several GPUs: granted where there is room, no GPU is given away twice."""

from collections import Counter
from pathlib import Path
from random import Random

import pytest

from plugin.shares.fit import Fit
from plugin.simulated.device_manager import ContainerKind, Received, Request, UnexpectedAdmissionError
from tests.plugin.device_plugin.guarded_node import GuardedNode
from tests.plugin.device_plugin.kubelet_file import entries, write_checkpoint
from tests.plugin.device_plugin.walk import NAME

GPUS, PARTS = 4, 10
Container = tuple[ContainerKind, int]  # what it is, and how many vGPUs it asks for


class Node:
    """GPUs by time-slicing, and what containers were answered."""

    def __init__(self, directory: Path, seed: int) -> None:
        self.random = Random(seed)  # noqa: S311 - the same each time
        fit = Fit(vgpus_per_gpu=PARTS, policy="pack", several=True)
        self.here = GuardedNode(gpus=GPUS, fit=fit, random=self.random, directory=directory)
        self.pods: dict[str, list[tuple[ContainerKind, Received]]] = {}

    def send(self, pod: str, *containers: Container) -> bool:
        """Admit a pod, init containers first; False where the kubelet rejects it."""
        received: list[tuple[ContainerKind, Received]] = []
        try:
            for number, (kind, count) in enumerate(containers):
                request = Request(pod=f"default/{pod}", container=f"c{number}", resource=NAME, count=count, kind=kind)
                received.append((kind, self.here.manager.allocate(request, self.here.plugin)))
                self.here.tell()
        except UnexpectedAdmissionError:
            self.here.manager.free(f"default/{pod}")
            return False
        self.pods[pod] = received
        return True

    def end(self, pod: str) -> None:
        self.here.manager.free(f"default/{pod}")
        del self.pods[pod]

    def check(self) -> None:
        """See that no GPU has more free than any moment of its pods leaves."""
        taken: Counter[str] = Counter()
        for received in self.pods.values():
            taken.update(_most(received))
        free = self.here.devices.room()
        assert {uuid: free[uuid] + taken[uuid] for uuid in free if free[uuid] + taken[uuid] > PARTS} == {}


def _most(received: list[tuple[ContainerKind, Received]]) -> Counter[str]:
    """Count the most vGPUs that a pod has of each GPU at one time."""
    staying: Counter[str] = Counter()
    most: Counter[str] = Counter()
    for kind, one in received:
        gpus = one.environment["NVIDIA_VISIBLE_DEVICES"].split(",")
        own = Counter(dict.fromkeys(gpus, len(one.device_ids) // len(gpus)))
        most |= staying + own
        if kind != "init":
            staying += own
    return most


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(
    "containers",
    [
        [("init", 10), ("app", 20)],
        [("init", 20), ("app", 10)],
        [("init", 30), ("app", 20)],
        [("init", 20), ("app", 2)],
        [("init", 4), ("app", 20)],
        [("init", 20), ("app", 10), ("app", 10)],
        [("init", 20), ("init", 3), ("app", 20)],
        [("init", 20), ("sidecar", 2), ("app", 10)],
        [("init", 10), ("init", 30), ("app", 5), ("app", 5)],
    ],
)
def test_a_pod_that_has_room_on_an_empty_node_is_granted(
    tmp_path: Path, containers: list[Container], seed: int
) -> None:
    node = Node(tmp_path, seed)
    assert node.send("pod", *containers)
    node.check()


def test_an_init_container_beside_others_does_not_keep_whole_gpus_from_its_pod(tmp_path: Path) -> None:
    node = Node(tmp_path, seed=1)
    assert node.send("other", ("app", 3))
    assert node.send("pod", ("init", 4), ("app", 20))
    node.check()
    assert sorted(node.here.devices.room().values()) == [0, 0, 3, 10]


@pytest.mark.parametrize("seed", range(20))
def test_whatever_pods_come_no_gpu_is_given_away_beyond_its_whole_and_all_is_free_in_the_end(
    tmp_path: Path, seed: int
) -> None:
    node = Node(tmp_path, seed)
    random, here = node.random, node.here
    sizes = [1, 2, 3, 5, 10, 20, 30]
    for number in range(60):
        match random.choice(["come", "come", "go", "plugin", "machine"]):
            case "come":
                inits: list[ContainerKind] = random.choices(["init", "init", "sidecar"], k=random.randint(0, 3))
                apps: list[ContainerKind] = ["app"] * random.randint(1, 2)
                node.send(f"pod-{number}", *((kind, random.choice(sizes)) for kind in (*inits, *apps)))
            case "go" if node.pods:
                node.end(random.choice(list(node.pods)))
            case "plugin":
                here.start_plugin()
            case "machine":
                write_checkpoint(here.directory, entries(here.manager))
                here.boot_id += "'"
                here.start_plugin()
        node.check()
        here.look()
        node.check()
    for pod in list(node.pods):
        node.end(pod)
    here.look()
    free = [device.id for device in here.manager.devices(NAME) if device.healthy]
    here.plugin.preferred(
        available=free, must_include=[], size=1
    )  # what a rejected pod left is free once it is offered
    assert set(here.devices.room().values()) == {PARTS}
