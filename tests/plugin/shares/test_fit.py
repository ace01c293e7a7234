"""What is shown of free vGPUs, against every sequence of requests that a scheduler could send which sees their sum."""

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import combinations_with_replacement

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plugin.shares.fit import Fit
from plugin.shares.preference import AllocationPolicy

Free = tuple[int, ...]
SMALL = [(2, 5), (3, 4), (4, 4), (5, 4), (6, 3), (7, 3), (10, 2)]  # vGPUs of a GPU, GPUs


def packing(vgpus_per_gpu: int, *, policy: AllocationPolicy = "pack", several: bool = False) -> Fit:
    return Fit(vgpus_per_gpu=vgpus_per_gpu, policy=policy, several=several)


def nodes(vgpus_per_gpu: int, gpus: int) -> Iterator[Free]:
    """Give every node of so many GPUs, by what is free of each."""
    return combinations_with_replacement(range(vgpus_per_gpu + 1), gpus)


def places(free: Free, shown: Sequence[int], size: int, fit: Fit) -> list[int]:
    """Say where a request could go: packed, an empty GPU is taken where no other one has room; otherwise, anywhere."""
    room = [position for position, one in enumerate(shown) if one >= size]
    begun = [position for position in room if free[position] < fit.vgpus_per_gpu]
    return begun if begun and fit.policy == "pack" else room


def without(free: Free, position: int, size: int) -> Free:
    return tuple(sorted((*free[:position], free[position] - size, *free[position + 1 :])))


class Adversary:
    """Sends what fails, if anything does, where the plugin shows what *fit* says."""

    def __init__(self, fit: Fit) -> None:
        self._fit = fit
        self.fails = cache(self._fails)

    def _fails(self, free: Free, total: int) -> bool:
        """Whether a sequence of requests can fail on a node of which *total* is shown, and no more until it ends."""
        shown = self._fit.shown(free, total)
        assert sum(shown) == total
        assert all(0 <= one <= left for one, left in zip(shown, free, strict=True))
        for size in range(1, min(self._fit.vgpus_per_gpu, total) + 1):
            room = places(free, shown, size, self._fit)
            if not room or any(self.fails(without(free, position, size), total - size) for position in room):
                return True
        return False


class Guard:
    """Shows whatever can be shown, so that no sequence fails, if there is a way at all."""

    def __init__(self, fit: Fit) -> None:
        self._fit = fit
        self.can = cache(self._can)

    def _can(self, free: Free, total: int) -> bool:
        return total == 0 or any(self._survives(free, shown) for shown in self._ways(free, total))

    def _survives(self, free: Free, shown: Free) -> bool:
        total = sum(shown)
        for size in range(1, min(self._fit.vgpus_per_gpu, total) + 1):
            room = places(free, shown, size, self._fit)
            if not room or not all(self.can(without(free, position, size), total - size) for position in room):
                return False
        return True

    def _ways(self, free: Free, total: int) -> Iterator[Free]:
        if len(free) == 1:
            yield from [(total,)] if total <= free[0] else []
            return
        for one in range(min(free[0], total) + 1):
            yield from ((one, *rest) for rest in self._ways(free[1:], total - one))


@pytest.mark.parametrize("policy", ["pack", "spread"])
@pytest.mark.parametrize(("vgpus_per_gpu", "gpus"), SMALL)
def test_no_sequence_of_requests_finds_a_gpu_without_room(
    vgpus_per_gpu: int, gpus: int, policy: AllocationPolicy
) -> None:
    fit = packing(vgpus_per_gpu, policy=policy)
    adversary = Adversary(fit)
    for free in nodes(vgpus_per_gpu, gpus):
        assert not adversary.fails(free, fit.most_shown(free)), free


def test_an_adversary_finds_the_sequence_that_fails_where_all_is_shown() -> None:
    adversary = Adversary(packing(4))
    assert adversary.fails((1, 2), 3)
    assert adversary.fails((4, 4), 8)


# By search: where two empty GPUs or more are left beside several GPUs in use, of which one has all but one free, there
# is sometimes a way to show one or two more.
@pytest.mark.parametrize(("vgpus_per_gpu", "gpus"), [(2, 5), (3, 4), (4, 3), (5, 3), (6, 3), (7, 3), (10, 2)])
def test_with_one_more_shown_a_sequence_fails_whatever_is_shown(vgpus_per_gpu: int, gpus: int) -> None:
    fit = packing(vgpus_per_gpu)
    guard = Guard(fit)
    for free in nodes(vgpus_per_gpu, gpus):
        most = fit.most_shown(free)
        assert guard.can(free, most), free
        assert most == sum(free) or not guard.can(free, most + 1), free


@pytest.mark.parametrize(("vgpus_per_gpu", "gpus"), [(4, 4), (5, 4), (4, 5)])
def test_where_more_could_be_shown_a_gpu_has_all_but_one_free(vgpus_per_gpu: int, gpus: int) -> None:
    fit = packing(vgpus_per_gpu)
    guard = Guard(fit)
    for free in nodes(vgpus_per_gpu, gpus):
        most = fit.most_shown(free)
        if most < sum(free) and guard.can(free, most + 1):
            assert free.count(vgpus_per_gpu) > 1
            assert vgpus_per_gpu - 1 in free
            assert not guard.can(free, most + 3)


@pytest.mark.parametrize(("vgpus_per_gpu", "gpus"), SMALL)
def test_where_a_container_may_hold_several_gpus_each_request_by_itself_finds_room(
    vgpus_per_gpu: int, gpus: int
) -> None:
    fit = packing(vgpus_per_gpu, several=True)
    for free in nodes(vgpus_per_gpu, gpus):
        most = fit.most_shown(free)
        shown = fit.shown(free, most)
        assert max(shown) >= min(most, vgpus_per_gpu)
        assert shown.count(vgpus_per_gpu) == free.count(vgpus_per_gpu) == most // vgpus_per_gpu


@pytest.mark.parametrize(
    ("free", "most"),
    [
        ([3, 1], 3),  # 7 and 9 of 10 taken: of 4 that are free, 3 on one
        ([4, 3], 4),
        ([0, 0], 0),
        ([10], 10),
        ([10, 0], 10),
        ([10, 10], 12),  # 2 and then 10; or 12 times 1
        ([10, 7], 10),
        ([10, 9], 11),
        ([10] * 8, 51),  # 5 and six times 6 leave one GPU
        ([9, 9, 9, 9], 9),
        ([4] * 6 + [10, 10], 15),
    ],
)
def test_what_is_shown_of_tenths(free: list[int], most: int) -> None:
    fit = packing(10)
    assert fit.most_shown(free) == most
    assert sum(fit.hidden(free)) == sum(free) - most


def test_spread_shows_little_more_than_one_gpu_since_each_request_takes_an_empty_one() -> None:
    assert packing(10, policy="spread").most_shown([10] * 8) == 17


def test_vgpus_that_are_whole_gpus_are_all_shown() -> None:
    assert packing(1).hidden([1, 0, 1, 1]) == (0, 0, 0, 0)


@st.composite
def large(draw: st.DrawFn) -> tuple[Fit, Free]:
    vgpus_per_gpu = draw(st.integers(1, 100))
    fit = packing(vgpus_per_gpu, policy=draw(st.sampled_from(["pack", "spread"])), several=draw(st.booleans()))
    sizes = st.one_of(st.integers(0, vgpus_per_gpu), st.sampled_from([0, max(vgpus_per_gpu - 1, 0), vgpus_per_gpu]))
    return fit, tuple(draw(st.lists(sizes, min_size=1, max_size=32)))


@given(large())
def test_what_fits_on_a_gpu_now_is_always_shown(drawn: tuple[Fit, Free]) -> None:
    fit, free = drawn
    shown = fit.shown(free, fit.most_shown(free))
    assert max(shown) >= max(free)


@given(large(), st.data())
@settings(max_examples=300, deadline=None)
def test_on_large_nodes_no_sequence_of_requests_finds_a_gpu_without_room(
    drawn: tuple[Fit, Free], data: st.DataObject
) -> None:
    fit, free = drawn
    if fit.several:
        fit = packing(fit.vgpus_per_gpu, policy=fit.policy)
    total = fit.most_shown(free)
    while total:
        shown = fit.shown(free, total)
        largest = max((one for one in free if one < fit.vgpus_per_gpu), default=0)
        # Sizes that take an empty GPU, or as little as can be, are those that hurt.
        hurting = [largest + 1, 1, 2, fit.vgpus_per_gpu // 2 + 1, (fit.vgpus_per_gpu + 1) // 2, total]
        size = data.draw(st.one_of(st.sampled_from(hurting), st.integers(1, total)))
        size = min(size, fit.vgpus_per_gpu, total)
        room = places(free, shown, size, fit)
        assert room, (free, shown, size)
        free, total = without(free, data.draw(st.sampled_from(room)), size), total - size
        assert total <= fit.most_shown(free), (free, total)
