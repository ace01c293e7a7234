"""As many IDs are free as there is room, whichever GPU they name."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from plugin.device_plugin.labels import free_labels
from plugin.simulated.gpus import simulated_gpus

NODES = (0, 0, 1, 1)
GPUS = tuple(
    replace(gpu, uuid=name, numa_node=node)
    for gpu, name, node in zip(simulated_gpus("4xL4"), "abcd", NODES, strict=True)
)


def labels(
    wanted: dict[str, int], held: dict[str, set[int]], *seen: str, vgpus_per_gpu: int = 4
) -> dict[str, set[int]]:
    return free_labels(wanted, held, gpus=GPUS, vgpus_per_gpu=vgpus_per_gpu, seen=seen)


def test_the_lowest_ids_that_nobody_holds_name_the_gpu_that_has_room() -> None:
    assert labels({"a": 2, "c": 1}, {"a": {0, 2}}) == {"a": {1, 3}, "b": set(), "c": {0}, "d": set()}


def test_what_the_kubelet_takes_for_healthy_stays_so() -> None:
    assert labels({"a": 2}, {}, "a::3", "a::1")["a"] == {1, 3}


def test_where_a_gpus_ids_are_held_those_of_its_neighbours_stand_for_them_first_of_its_numa_node() -> None:
    assert labels({"a": 3, "b": 3, "c": 4, "d": 4}, {"a": {0, 1, 2}})["b"] == {0, 1, 2, 3}
    assert labels({"a": 1, "c": 2}, {"c": {0, 1, 2, 3}})["d"] == {0, 1}
    far = labels({"a": 4, "c": 1}, {"a": {0, 1, 2, 3}, "b": {0, 1}})
    assert far == {"a": set(), "b": {2, 3}, "c": {0, 1, 2}, "d": set()}


def test_an_id_beyond_the_number_is_the_last_resort() -> None:
    held = {name: {0, 1, 2, 3} for name in "abcd"}
    assert labels({"b": 2}, {**held, "b": {0, 1, 2, 3, 4}}) == {"a": set(), "b": {5, 6}, "c": set(), "d": set()}


@given(
    wanted=st.dictionaries(st.sampled_from("abcd"), st.integers(0, 6)),
    held=st.dictionaries(st.sampled_from("abcd"), st.sets(st.integers(0, 8))),
    vgpus_per_gpu=st.integers(1, 6),
)
def test_there_are_always_as_many_as_wanted_and_none_that_is_held(
    wanted: dict[str, int], held: dict[str, set[int]], vgpus_per_gpu: int
) -> None:
    found = labels(wanted, held, vgpus_per_gpu=vgpus_per_gpu)
    assert sum(map(len, found.values())) == sum(wanted.values())
    assert not any(found[name] & held.get(name, set()) for name in found)
