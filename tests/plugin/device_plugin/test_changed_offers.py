"""What `nodes` offers of GPUs changes while containers hold parts of them, and whole ones."""

from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from plugin.device_plugin.devices import Devices
from plugin.device_plugin.held import HeldVgpus
from plugin.errors import AllocationError, NoRoomError
from plugin.gpus.gpu import Gpu, Pool
from plugin.shares.binding import bind
from plugin.simulated.device_manager import UnexpectedAdmissionError
from plugin.simulated.gpus import simulated_gpus
from tests.plugin.device_plugin.changing_node import OFFERS, ChangingNode

GPUS = simulated_gpus("3xL4")
MPS, TIMESLICED, WHOLE = "gpu-share.dev/vgpu", "gpu-share.dev/vgpu-timesliced", "gpu-share.dev/gpu"


@pytest.fixture
def node(tmp_path: Path) -> Callable[[int], ChangingNode]:
    return lambda seed: ChangingNode(GPUS, tmp_path, Random(seed))  # noqa: S311 - the same each time


@pytest.mark.parametrize(("offer", "resource"), [("mps", MPS), ("time-slicing", TIMESLICED)])
@pytest.mark.parametrize("seed", range(8))
def test_a_gpu_that_a_container_holds_is_not_given_away_whole(
    node: Callable[[int], ChangingNode], offer: str, resource: str, seed: int
) -> None:
    here = node(seed)
    here.start(*[offer] * 3)
    held = here.send(resource, 10)
    here.start(*["whole"] * 3)
    given = [here.send(WHOLE, 1), here.send(WHOLE, 1)]
    assert {gpu for one in (held, *given) for gpu in one.given[0]} == {gpu.uuid for gpu in GPUS}
    with pytest.raises(UnexpectedAdmissionError, match="Available: 0"):
        here.send(WHOLE, 1)


def random_step(here: ChangingNode, random: Random) -> None:
    """Start the plugin by another file, or have a pod come or go; what has room is not rejected."""
    kind = random.choices(["start", "send", "end"], [2, 24, 15])[0]
    if kind == "start":
        offers = random.choices(list(OFFERS), k=len(here.gpus))
        here.start(*offers, vgpus_per_gpu=random.choice([3, 10, 10, 20]), gone=random.choice([0, 0, 0, 1, 2]))
    elif kind == "end" and here.pods:
        here.end(random.choice(list(here.pods)))
    elif kind == "send":
        send(here, random)


def send(here: ChangingNode, random: Random) -> None:
    name = random.choice(list(here.resources))
    pool, free = here.resources[name].devices.pool, here.free(name)
    several = [] if "vgpu" in name and "timesliced" not in name else [2 * pool.vgpus_per_gpu]
    count = random.choice([1, *range(1, pool.vgpus_per_gpu + 1), *several])
    init = random.choice([0, 0, 0, *range(1, pool.vgpus_per_gpu + 1)])
    if max(count, init) > here.allocatable(name) - here.requested(name):
        here.steps["pending"] += 1
        return
    room = {gpu.uuid: one for gpu, one in zip(pool.gpus, free, strict=True)}
    try:
        here.send(name, count, init=init)
        here.steps[f"{name} allocated"] += 1
    except UnexpectedAdmissionError:
        here.steps["rejected"] += 1
        assert init or not bind(count, room=room, pool=pool, policy="pack")


def check(here: ChangingNode) -> None:
    """See that no GPU is given beyond its whole, and that the scheduler knows what is free: no more, and no less."""
    for name, resource in here.resources.items():
        for gpu in resource.devices.pool.gpus:
            assert here.part(gpu.uuid) <= 1
        if WHOLE in name:
            held = here.manager.holders(name)
            free = [one.gpu_uuid for one in resource.devices._devices if one.healthy and one.id not in held]
            assert sorted(free) == sorted(gpu.uuid for gpu in resource.devices.pool.gpus if not here.part(gpu.uuid))
        assert here.allocatable(name) - here.requested(name) == sum(here.free(name))


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", range(12))
def test_whatever_is_offered_next_no_gpu_is_given_beyond_its_whole_and_none_that_is_free_is_hidden(
    node: Callable[[int], ChangingNode], seed: int
) -> None:
    here, random = node(seed), Random(seed)  # noqa: S311 - the same each time
    here.start("mps", "mps", "mps")
    for _ in range(250):
        random_step(here, random)
        here.look()
        check(here)
    assert here.steps["start"] > 3
    assert sum(times for step, times in here.steps.items() if step.startswith(WHOLE)) > 1


@pytest.fixture
def whole() -> tuple[HeldVgpus, Devices]:
    """Give whole GPUs, of the second of which somebody has a part by an ID that names the first."""
    held = HeldVgpus()
    held._holdings.allocated({f"{GPUS[0].uuid}::0": GPUS[1].uuid}, resource=MPS, of=10)
    devices = Devices(Pool(gpus=GPUS, vgpus_per_gpu=1), resource=WHOLE, binds_late=False)
    held.follow(devices, are_divided=False)
    return held, devices


def test_a_whole_gpu_has_an_id_of_its_own_where_the_usual_one_is_held_for_another(
    whole: tuple[HeldVgpus, Devices],
) -> None:
    held, devices = whole
    assert devices.seen == {f"{GPUS[0].uuid}::1", f"{GPUS[2].uuid}::0"}
    assert held.allocate([*devices.seen], devices, "pack").gpus == (GPUS[0], GPUS[2])


def test_a_whole_gpu_is_not_allocated_where_somebody_has_a_part_of_it(whole: tuple[HeldVgpus, Devices]) -> None:
    held, devices = whole
    with pytest.raises(NoRoomError, match="must have 1 of 1 vGPUs free, it has 0"):
        held.allocate([f"{GPUS[1].uuid}::0"], devices, "pack")
    assert held.allocate([f"{GPUS[2].uuid}::0"], devices, "pack").gpus == (GPUS[2],)


def test_an_id_that_is_held_as_another_resource_is_not_allocated(whole: tuple[HeldVgpus, Devices]) -> None:
    held, devices = whole
    with pytest.raises(AllocationError, match=f"must be held as {WHOLE} or by nobody, it is held as {MPS}"):
        held.allocate([f"{GPUS[0].uuid}::0"], devices, "pack")


@pytest.fixture
def by_others() -> tuple[HeldVgpus, Devices]:
    """Give two GPUs, the first of them full, by IDs of one that has another resource by now."""
    held = HeldVgpus()
    devices = Devices(Pool(gpus=GPUS[1:], vgpus_per_gpu=10), resource=MPS)
    held.follow(devices, are_divided=True)
    held._holdings.allocated(dict.fromkeys(ids_of(GPUS[0]), GPUS[1].uuid), resource=MPS, of=10)
    held._tell()
    return held, devices


def ids_of(gpu: Gpu) -> list[str]:
    return [f"{gpu.uuid}::{index}" for index in range(10)]


def test_what_is_held_is_healthy_whichever_gpu_its_id_names(by_others: tuple[HeldVgpus, Devices]) -> None:
    _, devices = by_others
    assert devices.seen == {*ids_of(GPUS[0]), *ids_of(GPUS[2])}
    devices.set_faults({GPUS[1].uuid: "XID 79"})
    assert devices.seen == {*ids_of(GPUS[2])}
    assert {one.id for one in devices._devices} >= {*ids_of(GPUS[0])}


def test_ids_of_a_gpu_of_another_resource_are_allocated_once_more_where_the_kubelet_has_not_heard(
    by_others: tuple[HeldVgpus, Devices],
) -> None:
    held, devices = by_others
    devices.alignment.is_seen = True  # the kubelet aligns, and these have no NUMA node
    again = ids_of(GPUS[0])
    held.preferred(devices, "pack", available=again, must_include=[], size=10)
    assert not devices.seen & {*again}
    assert held.allocate(again, devices, "pack").gpus == (GPUS[1],)
    assert devices.seen == {*again, *ids_of(GPUS[2])}


def test_a_whole_gpu_that_has_another_resource_by_now_is_held_and_not_allocated() -> None:
    held = HeldVgpus()
    devices = Devices(Pool(gpus=GPUS[1:], vgpus_per_gpu=1), resource=WHOLE, binds_late=False)
    gone = f"{GPUS[0].uuid}::0"
    held._holdings.allocated({gone: GPUS[0].uuid}, resource=WHOLE, of=1)
    held.follow(devices, are_divided=False)
    assert devices.seen == {gone, *(f"{gpu.uuid}::0" for gpu in GPUS[1:])}
    with pytest.raises(AllocationError, match=f"{gone} names one that no longer is"):
        held.allocate([gone], devices, "pack")


def test_where_nobody_knows_on_which_gpu_a_share_is_nothing_of_its_resource_is_free() -> None:
    held = HeldVgpus()
    devices = Devices(Pool(gpus=GPUS[1:], vgpus_per_gpu=10), resource=MPS)
    held._holdings.allocated({f"{GPUS[0].uuid}::0": ""}, resource=MPS)
    held.follow(devices, are_divided=True)
    assert devices.is_lost
    assert devices.seen == {f"{GPUS[0].uuid}::0"}
