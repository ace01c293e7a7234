"""A kubelet that aligns gets GPUs of the NUMA nodes that it has chosen; for one that does not, any GPU will do."""

from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from plugin.device_plugin.alignment import Alignment
from plugin.errors import NoRoomError
from plugin.gpus.gpu import Gpu, Pool
from plugin.shares.fit import Fit
from plugin.simulated.device_manager import KnownDevice, Received, Request, UnexpectedAdmissionError
from plugin.simulated.gpus import simulated_gpus
from tests.plugin.device_plugin.guarded_node import GuardedNode
from tests.plugin.device_plugin.walk import NAME


class TwoNodes(GuardedNode):
    """Four GPUs on two NUMA nodes, which the kubelet knows."""

    def __post_init__(self) -> None:
        super().__post_init__()
        gpus = tuple(replace(gpu, numa_node=gpu.index // 2) for gpu in simulated_gpus("4xL4"))
        self.pool = Pool(gpus=gpus, vgpus_per_gpu=self.fit.vgpus_per_gpu)
        self.start_plugin()

    def tell(self) -> None:
        known = [
            KnownDevice(id=one.id, healthy=one.healthy, numa_nodes=frozenset({one.numa_node or 0}))
            for one in self.devices._devices
        ]
        self.manager.update(NAME, known)

    def allocate(self, pod: str, count: int, numa_node: int | None = None) -> Received:
        nodes = None if numa_node is None else frozenset({numa_node})
        request = Request(pod=pod, container="main", resource=NAME, count=count, numa_nodes=nodes)
        try:
            return self.manager.allocate(request, self.plugin)
        finally:
            self.tell()

    def available(self, numa_node: int) -> int:
        held = self.manager.holders(NAME)
        devices = [one for one in self.manager.devices(NAME) if one.healthy and one.id not in held]
        return sum(numa_node in one.numa_nodes for one in devices)

    def gpu_of(self, received: Received) -> Gpu:
        uuid = received.environment["NVIDIA_VISIBLE_DEVICES"]
        return next(gpu for gpu in self.pool.gpus if gpu.uuid == uuid)


@pytest.fixture
def here(tmp_path: Path) -> TwoNodes:
    fit = Fit(vgpus_per_gpu=10, policy="pack", several=False)
    return TwoNodes(gpus=4, fit=fit, random=Random(1), directory=tmp_path)  # noqa: S311 - the same each time


def test_where_the_kubelet_aligns_each_container_is_on_its_numa_node(here: TwoNodes) -> None:
    random = Random(2)  # noqa: S311 - no secret
    aligned = 0
    for number in range(300):
        pod, wanted, size = f"default/{number}", random.randrange(2), random.randint(1, 6)
        if here.available(wanted) >= size:  # else the topology manager has no such hint
            try:
                received = here.allocate(pod, size, wanted)
            except UnexpectedAdmissionError:
                here.manager.free(pod)
            else:
                assert here.gpu_of(received).numa_node == wanted
                aligned += 1
        here.manager.free(f"default/{number - 6}")
        here.look()
    assert aligned > 100
    assert here.devices.alignment.is_seen


def test_where_the_kubelet_does_not_align_a_share_goes_to_the_best_gpu_whatever_is_shown(here: TwoNodes) -> None:
    first = here.allocate("default/first", 2)
    for number, size in enumerate((5, 10, 10, 3, 10)):
        here.look()
        received = here.allocate(f"default/{number}", size)
        assert (here.gpu_of(received) == here.gpu_of(first)) == (size < 10)
    assert set(here.devices.room().values()) == {0}


def test_where_nothing_was_seen_yet_a_share_is_not_for_the_unhealthy_gpus_that_its_vgpus_name(here: TwoNodes) -> None:
    named, _, *others = (gpu.uuid for gpu in here.pool.gpus)
    here.devices.set_faults(dict.fromkeys({gpu.uuid for gpu in here.pool.gpus} - {*others}, "XID 79"))
    received = here.plugin.allocate([f"{named}::0"])
    assert here.gpu_of(received).uuid in others


def test_where_the_kubelet_has_chosen_unhealthy_gpus_there_is_no_room(here: TwoNodes) -> None:
    named = here.pool.gpus[0].uuid
    here.devices.set_faults({gpu.uuid: "XID 79" for gpu in here.pool.gpus[:2]})
    here.devices.alignment.is_seen = True
    with pytest.raises(NoRoomError, match=f"{named} is unhealthy: XID 79: see"):
        here.held.allocate([f"{named}::0"], here.devices, "pack")


POOL = Pool(
    gpus=tuple(replace(gpu, uuid=f"GPU-{gpu.index}", numa_node=gpu.index) for gpu in simulated_gpus("2xL4")),
    vgpus_per_gpu=10,
)


def vgpus(*counts: int) -> list[str]:
    return [f"GPU-{gpu}::{index}" for gpu, count in enumerate(counts) for index in range(count)]


def told(ids: list[str]) -> Alignment:
    """Give one of a kubelet that has known for long that *ids* are healthy."""
    moments = iter((0.0,))
    alignment = Alignment(clock=lambda: next(moments, 60.0))
    alignment.listed(ids)
    return alignment


@pytest.mark.parametrize(
    ("offered", "shown", "size", "is_seen"),
    [
        ((4, 4), (4, 4), 4, False),  # those of one node would do
        ((4, 4), (4, 4), 5, None),
        ((4, 0), (4, 4), 2, True),  # there are others
        ((4, 0), (4, 0), 2, None),
    ],
)
def test_what_the_kubelet_offers_tells_whether_it_aligns(
    offered: tuple[int, int], shown: tuple[int, int], size: int, *, is_seen: bool | None
) -> None:
    alignment = told(vgpus(*shown))
    alignment.offered(vgpus(*offered), held=(), size=size, pool=POOL)
    assert alignment.is_seen is is_seen


def test_the_gpus_of_an_offer_are_for_the_vgpus_that_were_preferred_of_it_alone() -> None:
    alignment = told(vgpus(4, 4))
    alignment.offered(vgpus(0, 4), held=(), size=2, pool=POOL)
    alignment.offered(vgpus(1, 1), held=(), size=2, pool=POOL)  # a container with CPUs on both
    alignment.answered(vgpus(2))
    assert alignment.candidates(vgpus(2), POOL) == [POOL.gpus, POOL.gpus]
    assert alignment.candidates(vgpus(1), POOL) == [POOL.gpus[:1]]


def test_a_list_that_the_kubelet_may_not_have_taken_up_says_nothing_of_what_it_leaves_out() -> None:
    now_seconds = 0.0
    alignment = Alignment(clock=lambda: now_seconds)
    alignment.listed(vgpus(4, 4))
    now_seconds = 60.0
    alignment.listed(vgpus(4, 0))  # it goes by this one still
    alignment.listed(vgpus(4, 4))
    alignment.offered(vgpus(4, 0), held=(), size=2, pool=POOL)
    assert alignment.is_seen is None
    now_seconds = 66.0
    alignment.offered(vgpus(4, 0), held=vgpus(0, 4), size=2, pool=POOL)
    assert alignment.is_seen is None
    alignment.offered(vgpus(4, 0), held=(), size=2, pool=POOL)
    assert alignment.is_seen


def test_where_the_kubelet_had_no_other_numa_nodes_to_offer_a_share_may_go_to_any() -> None:
    alignment = told(vgpus(4, 4))
    alignment.offered(vgpus(4, 0), held=(), size=2, pool=POOL)
    alignment.answered(vgpus(2))
    assert alignment.candidates(vgpus(2), POOL) == [POOL.gpus[:1]]
    alignment.offered(vgpus(4, 0), held=vgpus(0, 4), size=2, pool=POOL)
    alignment.answered(vgpus(2))
    assert alignment.candidates(vgpus(2), POOL) == [POOL.gpus[:1], POOL.gpus]
