"""The scheduler counts what it allocated before a change of the number, though nobody has prepared it yet."""

import os
import shutil
import signal
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from threading import Event

import msgspec
import pytest

from plugin.dra.devices import Device, devices_of
from plugin.dra.grids import STAY_SECONDS, Grid, Grids
from plugin.simulated.api_server import Object
from policies.nodes import NodeRule
from tests.plugin.dra.gpus import divided, shared
from tests.plugin.dra.node import DraNode, attributes, share
from tests.plugin.waiting import wait_until

TEN, THREE = (Grid(gpu="GPU-00000000", strategy="mps", device="", parts=parts) for parts in (10, 3))


def gpu_of(claim: Object) -> str:
    name: str = claim["status"]["allocation"]["devices"]["results"][0]["device"]
    return name[: name.rindex("-", 0, name.rindex("-"))]


@pytest.mark.parametrize("restarts", [False, True])
def test_a_claim_of_an_earlier_number_that_is_not_prepared_yet_keeps_its_place(
    node: DraNode, *, restarts: bool
) -> None:
    node.policies = "vgpusPerGpu: 10\n"
    plugin = node.start()
    earlier = node.schedule("earlier", share(500))
    node.policies = "vgpusPerGpu: 3\n"
    if restarts:
        assert plugin.ends(by=signal.SIGTERM)[0] == 0
        node.start(devices=10)
    else:
        (node.directory / "policies" / "_cluster.yaml").write_text(node.policies)
    wait_until(lambda: "333m" in {attributes(one)["size"] for one in node.devices().values()})
    later = node.schedule("later", share(666))
    assert gpu_of(later) != gpu_of(earlier)
    assert node.scheduler.schedule("none", {"c": share(100)}) is None  # what nobody prepares is not allocated anew
    assert node.run(earlier).environment["GPU_SHARE_FRACTION"] == "0.5"
    assert node.run(later).environment["GPU_SHARE_FRACTION"] == "0.6666"
    for _ in range(2):
        node.run(node.schedule("third", share(333)))  # one on each GPU
    assert node.scheduler.schedule("fifth", {"c": share(333)}) is None


def of_gpu(directory: Path, now: list[float]) -> Grids:
    return Grids(directory, clock=lambda: now[0])


def kept(directory: Path, now: list[float], grid: Grid) -> tuple[Grid, ...]:
    """Follow and keep one, as a plugin that starts does."""
    grids = of_gpu(directory, now)
    earlier = grids.follow({grid})
    grids.keep()
    return earlier


@pytest.mark.parametrize("renewed", [TEN.gpu, ""])  # nobody knows of which GPU a claim is that cannot be read
def test_an_earlier_grid_stays_for_minutes_and_longer_while_somebody_asks_for_it(tmp_path: Path, renewed: str) -> None:
    now = [0.0]
    grids = of_gpu(tmp_path, now)
    assert grids.follow({TEN}) == ()
    assert grids.follow({THREE}) == (TEN,)
    now[0] = STAY_SECONDS - 1
    assert grids.follow({THREE}) == (TEN,)
    grids.renew(renewed)
    now[0] += STAY_SECONDS - 1
    assert grids.follow({THREE}) == (TEN,)
    now[0] += 1
    assert grids.follow({THREE}) == ()
    grids.keep()
    assert of_gpu(tmp_path, now).follow({THREE}) == ()


def test_a_grid_that_is_the_one_of_now_again_is_no_earlier_one(tmp_path: Path) -> None:
    grids = of_gpu(tmp_path, [0.0])
    for one, other in ((TEN, ()), (THREE, (TEN,)), (TEN, (THREE,))):
        assert grids.follow({one}) == other


def test_a_plugin_that_starts_knows_the_grids_of_the_last_one(tmp_path: Path) -> None:
    now = [0.0]
    kept(tmp_path, now, TEN)
    now[0] = 5  # of another boot
    grids = of_gpu(tmp_path, now)
    grids.renew()  # a claim that cannot be read
    now[0] += 2 * STAY_SECONDS  # for which the plugin waits for a GPU
    assert grids.follow({THREE}) == (TEN,)
    now[0] += STAY_SECONDS
    assert grids.follow({THREE}) == ()


def test_nobody_who_tells_how_gpus_are_waits_for_a_disk_that_hangs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    grids, is_writing, may_end = of_gpu(tmp_path, [0.0]), Event(), Event()

    def hang(_descriptor: int) -> None:
        is_writing.set()
        may_end.wait(10)

    monkeypatch.setattr(os, "fsync", hang)
    grids.follow({TEN})
    with ThreadPoolExecutor() as threads:
        kept = threads.submit(grids.keep)
        assert is_writing.wait(10)
        assert threads.submit(grids.follow, {THREE}).result(5) == (TEN,)
        threads.submit(grids.renew, TEN.gpu).result(5)
        assert not kept.done()
        may_end.set()


@pytest.mark.parametrize("content", [b"", b"[1]", b"{}", b"\xff"])
def test_a_file_that_cannot_be_read_is_none(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "grids.json").write_bytes(content)
    assert kept(tmp_path, [0.0], THREE) == ()
    assert kept(tmp_path, [0.0], TEN) == (THREE,)


def test_a_file_that_could_not_be_written_or_is_gone_is_written_the_next_time(tmp_path: Path) -> None:
    directory = tmp_path / "later"
    grids = of_gpu(directory, [0.0])
    grids.follow({TEN})
    grids.keep()
    for _ in range(2):
        directory.mkdir()
        grids.keep()
        assert of_gpu(directory, [0.0]).follow({THREE}) == (TEN,)
        shutil.rmtree(directory)


def test_a_directory_that_cannot_be_written_to_keeps_nobody_from_what_is_published(tmp_path: Path) -> None:
    grids = of_gpu(tmp_path / "gone", [0.0])
    grids.follow({TEN})
    grids.keep()
    assert grids.follow({THREE}) == (TEN,)


def test_devices_of_an_earlier_grid_follow_those_of_now_and_have_names_of_their_own() -> None:
    def names(devices: tuple[Device, ...]) -> list[str]:
        return [one.name for one in devices]

    made = devices_of(shared(2), division=divided(3), kept={})
    both = devices_of(shared(2), division=divided(3), kept={}, earlier=[TEN])
    before = [one for one in devices_of(shared(1), division=divided(10), kept={}) if one.name not in names(made)]
    assert names(both) == names(made) + names(tuple(before))
    assert [one.part for one in both[len(made) :]] == [one.part for one in before]
    assert {one.name for one in both if one.is_earlier} == {one.name for one in before}


@pytest.mark.parametrize("changes", [{"strategy": "time-slicing"}, {"device": "model-t4"}])
def test_what_was_allocated_of_a_gpu_that_is_shared_in_another_way_by_now_counts_and_is_void(
    changes: dict[str, str],
) -> None:
    other = msgspec.structs.replace(TEN, **changes)
    made = devices_of(shared(1), division=divided(3), kept={})
    both = devices_of(shared(1), division=divided(3), kept={}, earlier=[other])
    assert both[: len(made)] == made
    later = both[len(made) :]
    assert {(one.size.strategy, one.size.device) for one in later} == {(other.strategy, other.device)}
    assert all(one.is_earlier and one.is_void for one in later)
    assert {one.part for one in later} >= {Fraction(units, 10) for units in range(1, 10)}


def test_several_gpus_of_which_one_has_a_name_by_now_stay_together_for_who_was_allocated_them() -> None:
    rule = NodeRule(indexes=(0,), device="big")
    before, _ = sliced = [Grid(gpu=f"GPU-{n:08d}", strategy="time-slicing", device="", parts=4) for n in (0, 1)]
    (pair,) = (one for one in devices_of(shared(2, "time-slicing"), division=divided(4), kept={}) if len(one.gpus) == 2)
    for earlier in ([before], sliced):
        now = devices_of(shared(2, "time-slicing"), division=divided(4, rule), kept={}, earlier=earlier)
        assert [one for one in now if len(one.gpus) == 2] == [replace(pair, is_earlier=True, is_void=True)]


def test_a_gpu_that_is_gone_has_no_earlier_devices() -> None:
    made = devices_of(shared(1), division=divided(3), kept={})
    assert (
        devices_of(shared(1), division=divided(3), kept={}, earlier=[msgspec.structs.replace(TEN, gpu="GPU-9")]) == made
    )
