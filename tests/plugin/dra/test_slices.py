"""What the API server is told of a node: within its limits, and compared whatever words it uses."""

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plugin.dra.devices import devices_of
from plugin.dra.slices import Spec, is_same, slice_name, slice_specs
from plugin.simulated.api_server import Store
from plugin.simulated.gpus import simulated_node
from policies.contract import SharingStrategy
from policies.sizes import Size, size_of
from tests.plugin.dra.gpus import Shared, divided, gpu, shared
from tests.plugin.dra.prepared import device as prepared_device


def specs(count: int, strategy: SharingStrategy = "mps", vgpus: int = 10, **unhealthy: str) -> tuple[Spec, ...]:
    gpus = shared(count, strategy, **unhealthy)
    devices = devices_of(gpus, division=divided(vgpus), kept={})
    return slice_specs(devices, gpus, node="n", driver_version="580.1")


@settings(deadline=None)
@given(st.integers(0, 16), st.sampled_from(["mps", "time-slicing", "whole"]), st.integers(1, 34))
def test_every_slice_is_within_the_limits_of_the_api(count: int, strategy: SharingStrategy, vgpus: int) -> None:
    made = specs(count, strategy, vgpus)
    assert {one["pool"]["resourceSliceCount"] for one in made} == {len(made)}
    for one in made:
        assert ("devices" in one) != ("sharedCounters" in one)
        assert len(one.get("devices", ())) <= 64
        for device in one.get("devices", ()):
            assert len(device["attributes"]) + len(device["capacity"]) <= 32
            (consumed,) = device["consumesCounters"]
            assert len(consumed["counters"]) <= 32


def test_eight_gpus_in_tenths_are_five_slices_and_64_gpus_two_counter_sets() -> None:
    assert [len(one.get("devices", ())) for one in specs(8)] == [0, 64, 64, 64, 24]
    assert [len(one["counters"]) for one in specs(64)[0]["sharedCounters"]] == [32, 32]


def test_a_node_without_gpus_publishes_a_slice_without_devices() -> None:
    (only,) = specs(0)
    assert only["devices"] == []


def test_no_two_devices_that_are_allocated_together_take_more_than_a_gpu_has() -> None:
    counters, *parts = specs(4, "time-slicing")
    (kept,) = counters["sharedCounters"]
    for one in (device for part in parts for device in part["devices"]):
        assert one["consumesCounters"][0]["counterSet"] == kept["name"]
        amounts = {name: int(value["value"]) for name, value in one["consumesCounters"][0]["counters"].items()}
        gpus = one["attributes"]["gpus"]["int"]
        assert len(amounts) == gpus
        assert gpus == 1 or set(amounts.values()) == {int(one["value"]) for one in kept["counters"].values()}


@pytest.mark.parametrize("number", range(1, 35))
def test_the_counters_let_in_what_fits_beside_what_is_held_of_any_other_number(number: int) -> None:
    for earlier in range(1, 35):
        held = [
            prepared_device(size_of(units, earlier, "mps").milli, "GPU-00000000", of=earlier)
            for units in range(1, earlier)
        ]
        gpus = shared(1)
        kept = {f"held-{one.milli}": (Size("mps", one.milli), one.part, one.gpus) for one in held}
        devices = devices_of(gpus, division=divided(number), kept=kept)
        counters, *parts = slice_specs(devices, gpus, node="n", driver_version="580.1")
        consumed = {one["name"]: parts_of(one["consumesCounters"]) for part in parts for one in part["devices"]}
        (there_are,) = parts_of(counters["sharedCounters"])
        for one in held:
            (left,) = (there_are - taken for taken in consumed[f"held-{one.milli}"])
            for share in (Fraction(units, number) for units in range(1, number + 1)):
                (takes,) = consumed[f"gpu-00000000-{size_of(int(share * number), number, 'mps').label}-0"]
                assert left // takes == (1 - one.part) // share, (earlier, one.milli, share)


def parts_of(counter_sets: list[Any]) -> list[int]:
    return [int(value["value"]) for one in counter_sets for value in one["counters"].values()]


def test_an_unhealthy_gpu_is_a_taint_on_all_its_devices_and_no_other() -> None:
    devices = [one for part in specs(2, "time-slicing", gpu1="lost") for one in part.get("devices", ())]
    for one in devices:
        has_it = "gpu-00000001" in one["consumesCounters"][0]["counters"]
        assert bool(one.get("taints")) is has_it


def test_what_is_stored_in_other_words_says_the_same() -> None:
    for one in specs(3, gpu0="ill"):
        stored = Store().put("/slices/a", {"metadata": {"name": "a"}, "spec": one})["spec"]
        assert is_same(stored, one)
        assert is_same(one, {**stored, "pool": {**stored["pool"], "generation": 7}})


def test_every_difference_is_seen() -> None:
    for one in specs(2, gpu0="ill"):
        stored: dict[str, Any] = Store().put("/slices/a", {"metadata": {"name": "a"}, "spec": one})["spec"]
        for place in _places(stored):
            changed = Store().put("/slices/a", {"metadata": {"name": "a"}, "spec": one})["spec"]
            holder = changed
            for step in place[:-1]:
                holder = holder[step]
            if place[-1] in ("timeAdded", "generation"):
                continue
            holder[place[-1]] = "other"
            assert not is_same(changed, one), place


def test_the_name_of_a_slice_is_one_for_the_longest_node_too() -> None:
    names = [slice_name("n" * 253, number) for number in range(300)]
    assert len(set(names)) == 300
    assert sorted(names) == names
    assert max(map(len, names)) <= 253


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    if isinstance(value, dict):
        return [place for key, one in value.items() for place in _places(one, (*path, key))]
    if isinstance(value, list):  # the first and the last stand for all
        return [place for key in {0, len(value) - 1} for place in _places(value[key], (*path, key))]
    return [path]


def test_several_gpus_are_offered_together_however_many_mig_instances_their_node_has() -> None:
    instances = [Shared(one) for one in simulated_node("12xH100:7x1g.10gb").instances]
    whole = [Shared(gpu(index), "whole") for index in (0, 90)]
    devices = devices_of([*whole, *instances], division=divided(1), kept={})
    (pair,) = (one.name for one in devices if len(one.gpus) > 1)
    specs = slice_specs(devices, [*whole, *instances], node="n", driver_version="1")
    assert pair in {one["name"] for spec in specs for one in spec.get("devices", ())}
