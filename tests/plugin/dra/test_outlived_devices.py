"""Devices that the scheduler must not allocate now, since processes of a pod deleted by force use what they would."""

import signal
from collections import defaultdict
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plugin.dra.devices import Device, devices_of
from plugin.dra.outliving import outlived
from plugin.dra.slices import OUTLIVED_TAINT, slice_specs
from plugin.shares.offer import Outlived
from plugin.simulated.api_server import SLICES
from policies.contract import SharingStrategy
from tests.plugin.dra.gpus import divided, shared
from tests.plugin.dra.node import DraNode, attributes, gpu_of, share
from tests.plugin.dra.prepared import device, made, prepare
from tests.plugin.usage.test_pod_cgroups import OWN, Tree
from tests.plugin.waiting import wait_until

TENTH = Fraction(1, 10)
DeleteByForce = Callable[[str, int], Callable[[], object]]


def some(count: int, strategy: SharingStrategy = "mps", parts: int = 10) -> tuple[Device, ...]:
    return devices_of(shared(count, strategy), division=divided(parts), kept={})


@given(
    st.integers(1, 4),
    st.sampled_from(["mps", "time-slicing", "whole"]),
    st.integers(1, 12),
    st.dictionaries(st.integers(0, 3), st.fractions(-1, 1)),
    st.randoms(use_true_random=False),
)
def test_what_is_unmarked_and_unheld_fits_and_so_do_all_of_one_size(
    count: int, strategy: SharingStrategy, parts: int, lefts: dict[int, Fraction], random: object
) -> None:
    devices = some(count, strategy, parts)
    left = {f"GPU-{index:08d}": part for index, part in lefts.items() if index < count}
    held = {one.name for one in devices if random.random() < 0.2}  # type: ignore[attr-defined]
    marked = outlived(devices, {gpu: Outlived(1 - part, part) for gpu, part in left.items()}, held)
    assert [one.name for one in marked] == [one.name for one in devices]
    taken: dict[tuple[str, Fraction], Fraction] = defaultdict(Fraction)
    for one in marked:
        gpus = [gpu.uuid for gpu in one.gpus if gpu.uuid in left]
        if one.name in held or not gpus:
            assert not one.is_outlived
        elif one.is_outlived:
            assert any(taken.get((gpu, one.part), 0) + one.part > left[gpu] for gpu in gpus)
        else:
            for gpu in gpus:
                taken[gpu, one.part] += one.part
    assert all(part <= left[gpu] for (gpu, _), part in taken.items())


def test_where_nothing_is_used_any_more_the_slices_are_what_they_were() -> None:
    devices, gpus = some(3, "time-slicing"), shared(3, "time-slicing")
    assert outlived(devices, {}, ()) == devices
    before = slice_specs(devices, gpus, node="n", driver_version="1")
    used = {"GPU-00000001": Outlived(9 * TENTH, TENTH)}
    there = slice_specs(outlived(devices, used, ()), gpus, node="n", driver_version="1")
    assert there != before
    assert [one.get("sharedCounters") for one in there] == [one.get("sharedCounters") for one in before]
    for old, new in zip(before, there, strict=True):
        for one, other in zip(old.get("devices", ()), new.get("devices", ()), strict=True):
            taints = other.pop("taints", [])
            assert taints in ([], [{"key": OUTLIVED_TAINT, "effect": "NoSchedule"}])
            assert one == other


@pytest.mark.parametrize(
    ("seconds", "has_processes", "found"),
    [
        (2.9, True, {}),  # the kubelet kills most within 2 seconds
        (3, True, {"GPU-0": (7 * TENTH, TENTH)}),
        (3600, True, {"GPU-0": (7 * TENTH, TENTH)}),
        (3600, False, {}),
        (3, None, {}),  # it ends by its time, within a call that waits
    ],
)
def test_a_gpu_has_less_once_processes_have_outlived_their_pod_for_some_seconds(
    tmp_path: Path, *, seconds: float, has_processes: bool | None, found: object
) -> None:
    now_seconds = 100.0
    on = made(tmp_path, clock=lambda: now_seconds, has_processes=lambda _: has_processes)
    prepare(on, "old", device(700, "GPU-0"))
    prepare(on, "other", device(200, "GPU-0"))
    prepare(on, "elsewhere", device(200, "GPU-1"))
    on.unprepare("old", hold_seconds=10)
    now_seconds += seconds
    for one in (on, made(tmp_path, clock=lambda: now_seconds, has_processes=lambda _: has_processes)):
        assert one.outlived_gpus() == found


def test_what_began_to_be_held_back_a_moment_ago_counts_too(tmp_path: Path) -> None:
    now_seconds = 100.0
    on = made(tmp_path, clock=lambda: now_seconds, has_processes=lambda _: True)
    for uid, milli in (("old", 300), ("later", 600)):
        prepare(on, uid, device(milli, "GPU-0"))
        on.unprepare(uid, hold_seconds=10)
        now_seconds += 2
    assert on.outlived_gpus() == {"GPU-0": (9 * TENTH, TENTH)}


def test_a_claim_that_is_prepared_again_has_what_it_has_once(tmp_path: Path) -> None:
    now_seconds = 100.0
    on = made(tmp_path, clock=lambda: now_seconds, has_processes=lambda _: True)
    for uid in ("old", "again"):
        prepare(on, uid, device(400, "GPU-0"))
        on.unprepare(uid, hold_seconds=10)
    prepare(on, "again", device(400, "GPU-0"))
    now_seconds += 5
    assert on.outlived_gpus() == {"GPU-0": (4 * TENTH, 2 * TENTH)}


def outlived_sizes(node: DraNode) -> dict[str, int]:
    """Count the devices of each size that are marked."""
    found: dict[str, int] = defaultdict(int)
    for one in node.devices().values():
        if any(taint["key"] == OUTLIVED_TAINT for taint in one.get("taints", ())):
            found[attributes(one)["size"]] += 1
    return dict(found)


def versions(node: DraNode) -> list[str]:
    return [one["metadata"]["resourceVersion"] for one in node.store.below(SLICES)]


@pytest.fixture
def delete_by_force(node: DraNode) -> DeleteByForce:
    """Make the function that starts a pod and deletes it by force; what comes back ends its processes."""
    cgroups = Tree(node.directory / "cgroups", "systemd")
    cgroups.has(OWN, processes=True)

    def deleted(name: str, milli: int) -> Callable[[], object]:
        claim = node.schedule(name, share(milli))
        node.run(claim)
        uid = str(claim["metadata"]["ownerReferences"][0]["uid"])
        cgroups.has(uid, processes=True)
        node.scheduler.release(claim)
        node.kubelet.unprepare(claim)
        return partial(cgroups.has, uid, processes=False)

    return deleted


@pytest.mark.exhaustive
def test_the_next_pods_are_sent_where_there_is_room_until_the_processes_have_ended(
    node: DraNode, delete_by_force: DeleteByForce
) -> None:
    node.start("2xH200", GPU_SHARE_POD_UID=OWN)
    first = gpu_of(node.run(node.schedule("beside", share(100))))
    before = versions(node)
    end = delete_by_force("old", 800)
    assert versions(node) == before
    every = {"100m": 8, "200m": 5, "300m": 3, "400m": 2, "500m": 2}
    every |= {f"{milli}m": 1 for milli in range(600, 1001, 100)}
    wait_until(lambda: outlived_sizes(node) == every, timeout_seconds=20)
    given = [gpu_of(node.run(node.schedule(f"new-{milli}", share(milli)))) for milli in (800, 100, 200)]
    assert [one == first for one in given] == [False, True, False]
    assert node.scheduler.schedule("Pending", {"c": share(100)}) is None
    end()
    wait_until(lambda: not outlived_sizes(node), timeout_seconds=20)
    assert gpu_of(node.run(node.schedule("after", share(800)))) == first


@pytest.mark.exhaustive
def test_the_plugin_that_comes_next_says_it_too(node: DraNode, delete_by_force: DeleteByForce) -> None:
    plugin = node.start("1xH200", devices=27, GPU_SHARE_POD_UID=OWN)
    end = delete_by_force("old", 1000)
    wait_until(lambda: sum(outlived_sizes(node).values()) == 27, timeout_seconds=20)
    assert plugin.ends(by=signal.SIGTERM)[0] == 0
    node.start("1xH200", devices=27, GPU_SHARE_POD_UID=OWN)
    wait_until(lambda: sum(outlived_sizes(node).values()) == 27, timeout_seconds=20)
    end()
    wait_until(lambda: not outlived_sizes(node), timeout_seconds=20)
