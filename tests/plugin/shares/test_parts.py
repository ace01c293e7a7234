from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from plugin.shares.parts import advertised, free_vgpus, part, part_of_size

NUMBERS = st.integers(1, 100)


@st.composite
def held_vgpus(draw: st.DrawFn) -> dict[int, int]:
    """Draw vGPUs of several numbers that are held on one GPU, never more of it than there is."""
    held: dict[int, int] = {}
    for index, of in draw(st.dictionaries(st.integers(0, 250), NUMBERS, max_size=8)).items():
        if part(held.values()) + Fraction(1, of) <= 1:
            held[index] = of
    return held


def test_what_is_held_by_an_earlier_number_leaves_the_rest_to_the_number_of_now() -> None:
    assert free_vgpus([10] * 4, vgpus_per_gpu=20) == 12
    assert free_vgpus([20] * 7, vgpus_per_gpu=5) == 3  # 0.65 of the GPU: a quarter of a vGPU is nobody's
    assert free_vgpus([10, 3], vgpus_per_gpu=30) == 17
    assert free_vgpus([], vgpus_per_gpu=7) == 7


@given(NUMBERS, st.data())
def test_a_size_by_dra_is_the_part_that_its_vgpus_are_and_never_less_under_another_number(
    of: int, data: st.DataObject
) -> None:
    units = data.draw(st.integers(1, of))
    milli = 1000 * units // of
    assert part_of_size(milli, of) == Fraction(units, of)
    exact = Fraction(units, of)
    assert all(exact <= part_of_size(milli, other) <= exact + Fraction(1, 500) for other in (1, 7, 10))


def test_what_nobody_knows_may_be_the_whole_gpu() -> None:
    assert free_vgpus([1, 1, 10], vgpus_per_gpu=10) == 0


def test_held_vgpus_stay_advertised_and_new_ones_have_other_indexes() -> None:
    assert advertised({0: 10, 3: 10}, vgpus_per_gpu=5) == (0, 1, 2, 3, 4, 5)  # 0.8 is free, that is 4 of 5
    assert advertised({7: 20, 8: 20, 9: 20, 10: 20, 11: 20}, vgpus_per_gpu=4) == (0, 1, 2, 7, 8, 9, 10, 11)


def test_vgpus_of_a_resource_of_before_are_not_advertised_and_their_part_is_not_free() -> None:
    assert advertised({5: 10}, vgpus_per_gpu=10, others={0: 2}) == (1, 2, 3, 4, 5)


@given(held_vgpus(), NUMBERS)
def test_held_and_free_never_add_up_to_more_than_the_gpu_and_leave_less_than_one_vgpu(
    held: dict[int, int], vgpus_per_gpu: int
) -> None:
    free = free_vgpus(held.values(), vgpus_per_gpu=vgpus_per_gpu)
    taken = part(held.values()) + Fraction(free, vgpus_per_gpu)
    assert taken <= 1 < taken + Fraction(1, vgpus_per_gpu)


@given(held_vgpus(), NUMBERS)
def test_the_scheduler_counts_what_is_free(held: dict[int, int], vgpus_per_gpu: int) -> None:
    has = advertised(held, vgpus_per_gpu=vgpus_per_gpu)
    assert held.keys() <= set(has)
    assert len(has) == len(set(has)) == len(held) + free_vgpus(held.values(), vgpus_per_gpu=vgpus_per_gpu)


@given(NUMBERS.flatmap(lambda of: st.tuples(st.just(of), st.sets(st.integers(0, of - 1)))))
def test_without_a_change_the_vgpus_are_the_same_whoever_holds_some(case: tuple[int, set[int]]) -> None:
    of, held = case
    assert advertised(dict.fromkeys(held, of), vgpus_per_gpu=of) == tuple(range(of))


@given(held_vgpus(), NUMBERS, st.data())
def test_an_allocation_takes_exactly_what_it_gets_from_what_is_free(
    held: dict[int, int], vgpus_per_gpu: int, data: st.DataObject
) -> None:
    has = advertised(held, vgpus_per_gpu=vgpus_per_gpu)
    fresh = [index for index in has if index not in held]
    taken = data.draw(st.sets(st.sampled_from(fresh))) if fresh else set()
    after = {**held, **dict.fromkeys(taken, vgpus_per_gpu)}
    assert advertised(after, vgpus_per_gpu=vgpus_per_gpu) == has
