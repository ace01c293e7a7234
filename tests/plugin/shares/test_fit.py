"""What is shown of free vGPUs, against every sequence of requests that a scheduler could send which sees their sum."""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import combinations_with_replacement
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plugin.shares.fit import Fit
from plugin.shares.preference import AllocationPolicy

Free = tuple[int, ...]
SMALL = [(2, 5), (3, 4), (4, 4), (5, 4), (6, 3), (7, 3), (10, 2)]  # vGPUs of a GPU, GPUs


def packing(
    vgpus_per_gpu: int, *, policy: AllocationPolicy = "pack", several: bool = False, aligned: bool = False
) -> Fit:
    return Fit(vgpus_per_gpu=vgpus_per_gpu, policy=policy, several=several, aligned=aligned)


def nodes(vgpus_per_gpu: int, gpus: int) -> Iterator[Free]:
    """Give every node of so many GPUs, by what is free of each."""
    return combinations_with_replacement(range(vgpus_per_gpu + 1), gpus)


def places(free: Free, size: int, fit: Fit) -> list[int]:
    """Say where a request can go: to the GPU with least room for it, or most; by a kubelet that aligns, anywhere."""
    room = sorted((one, position) for position, one in enumerate(free) if one >= size)
    if fit.aligned or not room:
        return [position for _, position in room]
    return [room[0][1] if fit.policy == "pack" else room[-1][1]]


def without(free: Free, position: int, size: int) -> Free:
    return tuple(sorted((*free[:position], free[position] - size, *free[position + 1 :])))


class Adversary:
    """Sends what fails, if anything does, with the smallest sum."""

    def __init__(self, fit: Fit) -> None:
        self._fit = fit
        self.least_that_fails = cache(self._least_that_fails)

    def _least_that_fails(self, free: Free) -> int:
        """Add up the requests that end with one that finds no room; more than there is if there are none."""
        per_gpu = self._fit.vgpus_per_gpu
        sums = [max(free) + 1] if max(free) < per_gpu else [sum(free) + 1]
        for size in range(1, max(free) + 1):
            sums += [size + self.least_that_fails(without(free, at, size)) for at in places(free, size, self._fit)]
        return min(*sums, sum(free) + 1)


FITS = [{"policy": "pack"}, {"policy": "spread"}, {"policy": "pack", "aligned": True}]


@pytest.mark.parametrize("kind", FITS, ids=str)
@pytest.mark.parametrize(("vgpus_per_gpu", "gpus"), SMALL)
def test_no_sequence_of_requests_finds_a_gpu_without_room(vgpus_per_gpu: int, gpus: int, kind: dict[str, Any]) -> None:
    fit = packing(vgpus_per_gpu, **kind)
    adversary = Adversary(fit)
    for free in nodes(vgpus_per_gpu, gpus):
        assert max(free) <= fit.most_shown(free) < adversary.least_that_fails(free), free


def test_an_adversary_finds_the_sequence_that_fails_where_all_is_shown() -> None:
    adversary = Adversary(packing(4))
    assert adversary.least_that_fails((1, 2)) == 3
    assert adversary.least_that_fails((4, 4)) == 8  # 1, 3, and 4 where 3 and 1 are left


@pytest.mark.parametrize("vgpus_per_gpu", range(1, 17))
def test_of_two_gpus_with_one_more_shown_a_sequence_fails(vgpus_per_gpu: int) -> None:
    fit = packing(vgpus_per_gpu)
    adversary = Adversary(fit)
    for free in nodes(vgpus_per_gpu, 2):
        assert fit.most_shown(free) == adversary.least_that_fails(free) - 1, free


@pytest.mark.parametrize(("vgpus_per_gpu", "gpus"), [(3, 4), (4, 4), (5, 4), (4, 5), (6, 3), (7, 3)])
def test_of_more_gpus_one_or_two_more_could_be_shown_and_only_beside_several_in_use(
    vgpus_per_gpu: int, gpus: int
) -> None:
    fit = packing(vgpus_per_gpu)
    adversary = Adversary(fit)
    for free in nodes(vgpus_per_gpu, gpus):
        more = adversary.least_that_fails(free) - 1 - fit.most_shown(free)
        in_use = len([one for one in free if 0 < one < vgpus_per_gpu])
        assert more <= (2 if in_use > 1 and vgpus_per_gpu in free else 0), free


@pytest.mark.parametrize(("vgpus_per_gpu", "gpus"), SMALL)
def test_where_a_container_may_hold_several_gpus_each_request_by_itself_finds_room(
    vgpus_per_gpu: int, gpus: int
) -> None:
    fit = packing(vgpus_per_gpu, several=True)
    for free in nodes(vgpus_per_gpu, gpus):
        most = fit.most_shown(free)
        shown = fit.shown(free, most)
        assert sum(shown) == most
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
        ([10, 10], 16),  # 5 and 6 leave 5 and 4
        ([10, 8], 14),  # 4 and 5 leave 4 and 5
        ([10, 7], 13),
        ([10, 9], 15),
        ([10] * 8, 52),  # 5 and seven times 6 leave 5 and seven times 4
        ([9, 9, 9, 9], 9),
        ([4] * 6 + [10, 10], 16),
    ],
)
def test_what_is_shown_of_tenths(free: list[int], most: int) -> None:
    fit = packing(10)
    assert fit.most_shown(free) == most
    assert sum(fit.shown(free, most)) == most


def test_spread_shows_little_more_than_one_gpu_since_each_request_takes_an_empty_one() -> None:
    assert packing(10, policy="spread").most_shown([10] * 8) == 17


def test_vgpus_that_are_whole_gpus_are_all_shown() -> None:
    assert packing(1).most_shown([1, 0, 1, 1]) == 3


@st.composite
def large(draw: st.DrawFn) -> tuple[Fit, Free]:
    vgpus_per_gpu = draw(st.integers(1, 100))
    fit = packing(
        vgpus_per_gpu,
        policy=draw(st.sampled_from(["pack", "spread"])),
        several=draw(st.booleans()),
        aligned=draw(st.booleans()),
    )
    sizes = st.one_of(st.integers(0, vgpus_per_gpu), st.sampled_from([0, max(vgpus_per_gpu - 1, 0), vgpus_per_gpu]))
    return fit, tuple(draw(st.lists(sizes, min_size=1, max_size=32)))


@given(large())
def test_what_fits_on_a_gpu_now_is_always_shown(drawn: tuple[Fit, Free]) -> None:
    fit, free = drawn
    most = fit.most_shown(free)
    shown = fit.shown(free, most)
    assert max(shown) >= max(free)
    assert sum(shown) == most
    assert all(0 <= one <= left for one, left in zip(shown, free, strict=True))


@given(large(), st.data())
@settings(max_examples=300, deadline=None)
def test_on_large_nodes_no_sequence_of_requests_finds_a_gpu_without_room(
    drawn: tuple[Fit, Free], data: st.DataObject
) -> None:
    fit, free = drawn
    if fit.several:
        fit = replace(fit, several=False)
    total = fit.most_shown(free)
    while total:
        largest = max((one for one in free if one < fit.vgpus_per_gpu), default=0)
        # Sizes that take an empty GPU, or as little as can be, are those that hurt.
        hurting = [largest + 1, 1, 2, fit.vgpus_per_gpu // 2 + 1, (fit.vgpus_per_gpu + 1) // 2, total]
        size = data.draw(st.one_of(st.sampled_from(hurting), st.integers(1, total)))
        size = min(size, fit.vgpus_per_gpu, total)
        room = places(free, size, fit)
        assert room, (free, size)
        free, total = without(free, data.draw(st.sampled_from(room)), size), total - size
        assert total <= fit.most_shown(free), (free, total)
