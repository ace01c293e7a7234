"""Which resources a node has, and what of a GPU is followed while it runs."""

from dataclasses import replace
from gc import collect
from pathlib import Path
from weakref import WeakSet

import pytest

from plugin.device_plugin.held import HeldVgpus
from plugin.device_plugin.placement import place
from plugin.device_plugin.service import Resource
from plugin.errors import AllocationError, HandoverError, NoRoomError, SocketError
from plugin.settings import Settings
from plugin.shares.strategy import Mps, TimeSlicing, Whole
from policies.cluster import Cluster
from policies.contract import SharingStrategy
from tests.plugin.device_plugin.advertised import GPUS, Seen, advertising, healthy, seen
from tests.plugin.health.watched_node import SETTINGS, resources_of
from tests.plugin.shares.cdi_runtime import read_directory


def test_each_kind_is_a_resource_of_its_own_shared_in_its_own_way() -> None:
    served: list[Resource] = []
    known = advertising(served)
    kinds: tuple[SharingStrategy, ...] = ("mps", "whole", "time-slicing", "mps")
    known.publish([Seen(gpu, kind) for gpu, kind in zip(GPUS, kinds, strict=True)])
    assert [(type(resource.sharing), len(healthy(resource))) for resource in served] == [
        (Mps, 8),
        (Whole, 1),
        (TimeSlicing, 4),
    ]
    assert served[0].sharing == Mps("/tmp/nvidia-mps")


def test_all_gpus_of_the_start_are_in_a_resource_before_it_is_served() -> None:
    states: list[list[bool]] = []
    settings = Settings(**SETTINGS)
    known = resources_of(settings, Cluster(vgpus_per_gpu=2), serve=lambda resource: states.append(healthy(resource)))
    known.publish([*seen(GPUS[0]), *seen(GPUS[1], why="XID 79")])
    assert states == [[True, True, False, False]]


def test_faults_are_followed_and_a_resource_is_served_once() -> None:
    served: list[Resource] = []
    known = advertising(served)
    known.publish(seen(*GPUS[:2]))
    known.publish([*seen(GPUS[0], why="XID 79"), *seen(GPUS[1])])
    (resource,) = served
    assert resource.devices.fault(GPUS[0].uuid) == "XID 79"
    assert healthy(resource) == [False] * 4 + [True] * 4
    known.publish(seen(*GPUS[:2]))
    assert all(healthy(resource))


def test_a_gpu_that_appears_ill_is_never_seen_healthy() -> None:
    served: list[Resource] = []
    known = advertising(served)
    known.publish(seen(GPUS[0]))
    states = iter(served[0].devices.watch())
    next(states)
    known.publish([*seen(GPUS[0]), *seen(GPUS[1], why="XID 79")])
    assert [device.healthy for device in next(states)] == [True] * 4 + [False] * 4


def test_what_changes_of_a_gpu_is_what_containers_get_from_then_on() -> None:
    served: list[Resource] = []
    known = advertising(served)
    known.publish(seen(*GPUS[:2]))
    renumbered = (replace(GPUS[0], minor=1), replace(GPUS[1], minor=0))
    known.publish(seen(*renumbered))
    assert served[0].devices.pool.gpus == renumbered


def test_a_gpu_that_cannot_be_handed_over_is_not_shared_but_its_neighbours_faults_are(tmp_path: Path) -> None:
    served: list[Resource] = []
    known = advertising(served, "cdi", cdi_dir=tmp_path)
    known.publish(seen(GPUS[0]))
    for file in tmp_path.iterdir():
        file.unlink()
    tmp_path.rmdir()
    tmp_path.touch()
    with pytest.raises(HandoverError):
        known.publish([*seen(GPUS[0], why="XID 79"), *seen(GPUS[1])])
    assert healthy(served[0]) == [False] * 4
    tmp_path.unlink()
    known.publish([*seen(GPUS[0], why="XID 79"), *seen(GPUS[1])])
    assert healthy(served[0]) == [False] * 4 + [True] * 4


def test_a_resource_that_cannot_be_served_keeps_no_other_from_it_and_its_gpus_say_why() -> None:
    served: list[str] = []
    fails = ["gpu-share.dev/vgpu", "gpu-share.dev/gpu"]

    def serve(resource: Resource) -> None:
        if resource.name in fails:
            raise SocketError(f"no socket for {resource.name}")
        served.append(resource.name)

    known = resources_of(Settings(**SETTINGS), Cluster(), serve=serve)
    by_mps, whole, by_time = gpus = [Seen(GPUS[0], "mps"), Seen(GPUS[1], "whole"), Seen(GPUS[2], "time-slicing")]
    with pytest.raises(SocketError, match=r"no socket for gpu-share\.dev/vgpu$"):
        known.publish(gpus)
    assert served == ["gpu-share.dev/vgpu-timesliced"]
    assert [known.unadvertised(one) for one in gpus] == [
        "it cannot be advertised: no socket for gpu-share.dev/vgpu",
        "it cannot be advertised: no socket for gpu-share.dev/gpu",
        "",
    ]
    fails.clear()
    known.publish(gpus)
    assert [known.unadvertised(one) for one in (by_mps, whole, by_time)] == [""] * 3


def test_a_hand_over_that_fails_leaves_the_one_before_and_is_taken_later(tmp_path: Path) -> None:
    served: list[Resource] = []
    in_the_way = tmp_path / "run"
    in_the_way.touch()
    known = advertising(served, cdi_dir=in_the_way / "cdi")
    known.publish(seen(*GPUS[:2]))
    (resource,) = served
    with pytest.raises(HandoverError):
        known.hand_over_by(["cdi"])
    assert not resource.delivery().cdi_kind
    known.restore()  # and nothing is expected of the directory
    in_the_way.unlink()
    known.hand_over_by(["cdi"])
    assert resource.delivery().cdi_kind == resource.name
    assert len(read_directory(in_the_way / "cdi")) == 1 + 2 * 4
    known.hand_over_by(["envvar"])
    assert not resource.delivery().cdi_kind


def test_a_gpu_that_appears_after_another_hand_over_is_handed_over_by_it(tmp_path: Path) -> None:
    served: list[Resource] = []
    known = advertising(served, cdi_dir=tmp_path)
    known.publish(seen(GPUS[0]))
    known.hand_over_by(["cdi"])
    known.publish([*seen(GPUS[0]), *seen(GPUS[1], strategy="time-slicing")])
    assert [one.delivery().ways for one in served] == [{"cdi"}, {"cdi"}]
    assert {path.name for path in tmp_path.iterdir()} == {
        "gpu-share_gpu-share.dev_vgpu.json",
        "gpu-share_gpu-share.dev_vgpu-timesliced.json",
    }


@pytest.mark.parametrize(
    ("newest", "unsafe"),
    [
        (Cluster(handover=("cdi",)), True),
        (Cluster(handover=("cdi", "envvar")), False),  # pods can set what they want, and webhooks know it
        (Cluster(handover=("envvar",)), False),
    ],
)
def test_pods_could_lift_limits_where_webhooks_alone_go_by_cdi(newest: Cluster, *, unsafe: bool) -> None:
    known = advertising([])
    known.go_on_beside(newest)
    assert bool(known.unsafe) is unsafe


@pytest.mark.parametrize(
    ("strategy", "newest", "gpus"),
    [
        ("time-slicing", Cluster(vgpus_per_gpu=4), 2),
        ("time-slicing", Cluster(vgpus_per_gpu=8), 0),
        ("time-slicing", Cluster(vgpus_per_gpu=8, resource_names={"mps": "a.b/c", "time-slicing": "a.b/d"}), 2),
        ("whole", Cluster(vgpus_per_gpu=8), 2),
        ("whole", Cluster(resource_names={"time-slicing": "gpu-share.dev/gpu", "whole": "a.b/c"}), 0),
    ],
)
def test_two_gpus_are_given_only_where_webhooks_count_them_as_two(
    strategy: SharingStrategy, newest: Cluster, gpus: int
) -> None:
    served: list[Resource] = []
    known = advertising(served)
    known.publish(seen(*GPUS[:2], strategy=strategy))
    (resource,) = served
    known.go_on_beside(newest)
    ids = [one.id for one in next(iter(resource.devices.watch()))]
    assert len(ids) == 2 * resource.devices.pool.vgpus_per_gpu
    try:
        given = place(ids, resource.devices, "pack", held={}, left={})
    except NoRoomError:
        assert gpus == 0
    else:
        assert len(given.gpus) == gpus


def test_a_resource_that_cannot_be_served_leaves_nobody_behind_who_is_told_what_is_held() -> None:
    made = WeakSet[object]()

    def serve(resource: Resource) -> None:
        made.add(resource.devices)
        raise SocketError("too long")

    held = HeldVgpus()
    known = resources_of(Settings(**SETTINGS), Cluster(vgpus_per_gpu=4), serve=serve, held=held)
    for _ in range(3):
        with pytest.raises(SocketError):
            known.publish(seen(GPUS[0]))
    collect()
    assert not made


def test_what_is_held_of_other_gpus_is_unhealthy_as_they_are() -> None:
    served: list[Resource] = []
    known = advertising(served)
    known.publish(seen(*GPUS[:2]))
    ids = [f"{GPUS[1].uuid}::{number}" for number in range(2)]
    allocation = served[0].held.allocate(ids, served[0].devices, "pack")
    (gpu,) = allocation.gpus
    others = [one for one in GPUS[:2] if one != gpu]
    known.publish(seen(*others), {gpu.uuid: "NVML does not list it"})
    assert sum(healthy(served[0])) == 4
    known.publish(seen(*others))
    assert sum(healthy(served[0])) == 6


def test_a_resource_whose_gpus_have_gone_to_another_allocator_has_none(tmp_path: Path) -> None:
    served: list[Resource] = []
    known = advertising(served, "cdi", cdi_dir=tmp_path)
    known.publish([*seen(GPUS[0]), *seen(GPUS[1], strategy="whole")])
    known.publish(seen(GPUS[1], strategy="whole"))
    known.divide_by(8)
    assert [(healthy(one), one.devices.room()) for one in served] == [([False] * 4, {}), ([True], {GPUS[1].uuid: 1})]
    assert [one.gpu for one in known.offers()] == [GPUS[1]]
    known.publish([*seen(GPUS[0]), *seen(GPUS[1], strategy="whole")])
    assert [sum(healthy(one)) for one in served] == [8, 1]


def test_a_pod_that_comes_too_late_for_the_last_gpu_of_a_resource_is_told_so() -> None:
    served: list[Resource] = []
    known = advertising(served)
    known.publish(seen(GPUS[0]))
    known.publish([])
    with pytest.raises(AllocationError, match=r"gpu-share\.dev/vgpu must have a GPU on this node"):
        served[0].held.allocate([f"{GPUS[0].uuid}::0"], served[0].devices, "pack")
