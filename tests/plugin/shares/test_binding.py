"""On which GPU a container goes, by what is free of each."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plugin.gpus.gpu import Gpu, Pool
from plugin.shares.binding import bind
from plugin.shares.preference import AllocationPolicy

POOL = Pool(
    gpus=tuple(
        Gpu(uuid=name, index=0, minor=None, model="H200", memory_bytes=1 << 37, numa_node=node)
        for name, node in zip("abcd", (0, 0, 1, 1), strict=True)
    ),
    vgpus_per_gpu=4,
)


def bound(size: int, *free: int, policy: AllocationPolicy = "pack", included: Sequence[str] = ()) -> str:
    room = {gpu.uuid: count for gpu, count in zip(POOL.gpus, free, strict=False)}
    return "".join(gpu.uuid for gpu in bind(size, room=room, pool=POOL, policy=policy, included=included))


@pytest.mark.parametrize(
    ("policy", "free", "size", "gpus"),
    [
        ("pack", (4, 3, 1, 0), 1, "c"),  # the GPU with least room
        ("pack", (4, 3, 1, 0), 2, "b"),  # the one with least that is enough
        ("pack", (4, 3, 3, 0), 3, "b"),  # of two alike the first
        ("spread", (1, 3, 2, 3), 1, "b"),
        ("pack", (3, 3, 3, 3), 4, ""),
        ("pack", (4, 0, 4, 4), 4, "a"),  # two of one NUMA node stay together
        ("pack", (4, 0, 4, 4), 8, "cd"),
        ("pack", (4, 3, 4, 0), 8, "ac"),
        ("pack", (4, 4, 4, 4), 6, ""),  # neither one GPU nor whole ones
        ("pack", (4, 3, 3, 3), 8, ""),
        ("pack", (), 1, ""),
        ("pack", (4,), 0, ""),
    ],
)
def test_a_share_goes_on_one_gpu_and_whole_gpus_together(
    policy: AllocationPolicy, free: tuple[int, ...], size: int, gpus: str
) -> None:
    assert bound(size, *free, policy=policy) == gpus


def test_what_is_taken_over_decides_the_gpu() -> None:
    assert bound(2, 4, 3, 2, 2, included="a") == "a"
    assert bound(3, 4, 3, 2, 2, included="c") == ""
    assert bound(2, 4, 3, 2, 2, included="ab") == ""
    assert bound(8, 4, 4, 4, 4, included="b") == "ab"
    assert bound(8, 4, 3, 4, 4, included="b") == ""
    assert bound(4, 4, 4, 4, 4, included="ab") == ""


@given(
    free=st.lists(st.integers(0, 4), min_size=4, max_size=4),
    size=st.integers(1, 16),
    policy=st.sampled_from(["pack", "spread"]),
)
def test_what_fits_is_bound_and_no_gpu_beyond_its_room(free: list[int], size: int, policy: AllocationPolicy) -> None:
    gpus = bound(size, *free, policy=policy)
    room = dict(zip("abcd", free, strict=True))
    fits = any(count >= size for count in free) or (size % 4 == 0 and free.count(4) >= size // 4)
    assert bool(gpus) == fits
    assert all(room[gpu] >= size // len(gpus) for gpu in gpus)
