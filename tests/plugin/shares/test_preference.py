from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plugin.gpus.gpu import Gpu, Link, Pool
from plugin.shares.allocation import allocate
from plugin.shares.preference import AllocationPolicy, preferred_ids

GPUS = tuple(
    Gpu(uuid=f"GPU-{name}", index=0, minor=None, model="H200", memory_bytes=1 << 37, numa_node=None) for name in "abc"
)
POOL = Pool(gpus=GPUS, vgpus_per_gpu=4)
EVERY_ID = [str(vgpu) for vgpu, _ in POOL.vgpus()]
STRANGE_ID = ["GPU-x::0", "GPU-a::9", "", "GPU-b::01"]

AnyIds = st.lists(st.sampled_from([*EVERY_ID, *STRANGE_ID]), max_size=20)
Policies: st.SearchStrategy[AllocationPolicy] = st.sampled_from(["pack", "spread"])


def free(*per_gpu: int) -> list[str]:
    """List that many free vGPUs of each GPU, the last ones of it."""
    return [f"{gpu.uuid}::{index}" for gpu, count in zip(GPUS, per_gpu, strict=True) for index in range(4 - count, 4)]


def preferred(available: list[str], size: int, *must: str, policy: AllocationPolicy = "pack") -> list[str]:
    return preferred_ids(available=available, must_include=must, size=size, pool=POOL, policy=policy)


def gpus_of(device_ids: list[str]) -> str:
    return "".join(sorted({device_id.split("::")[0].removeprefix("GPU-") for device_id in device_ids}))


@pytest.mark.parametrize(
    ("policy", "available", "size", "gpu"),
    [
        ("pack", (4, 3, 1), 1, "c"),  # the fullest
        ("pack", (4, 3, 1), 2, "b"),  # the fullest that fits
        ("pack", (4, 3, 3), 3, "b"),  # the first of two alike
        ("pack", (4, 3, 1), 4, "a"),
        ("pack", (4, 4, 0), 1, "a"),
        ("spread", (1, 3, 2), 1, "b"),  # the emptiest
        ("spread", (3, 1, 3), 2, "a"),
        ("spread", (4, 4, 4), 4, "a"),
        ("pack", (0, 4, 4), 8, "bc"),  # whole GPUs
        ("pack", (3, 4, 4), 8, "bc"),
        ("spread", (4, 3, 4), 8, "ac"),
    ],
)
def test_a_share_goes_to_one_gpu(
    policy: AllocationPolicy, available: tuple[int, int, int], size: int, gpu: str
) -> None:
    chosen = preferred(free(*available), size, policy=policy)
    assert gpus_of(chosen) == gpu
    assert len(chosen) == size


@pytest.mark.parametrize(("policy", "gpu"), [("pack", "b"), ("spread", "a")])
def test_what_is_free_and_hidden_counts_for_which_gpu_is_the_fullest(policy: AllocationPolicy, gpu: str) -> None:
    room = {"GPU-a": 4, "GPU-b": 3, "GPU-c": 0}  # of the first one, two are hidden
    chosen = preferred_ids(available=free(2, 3, 0), must_include=(), size=2, pool=POOL, policy=policy, room=room)
    assert gpus_of(chosen) == gpu


def test_what_must_be_included_comes_first_and_pulls_the_rest_to_its_gpu() -> None:
    assert preferred(free(1, 4, 3), 3, "GPU-b::2") == ["GPU-b::2", "GPU-b::0", "GPU-b::1"]
    assert gpus_of(preferred(free(4, 4, 4), 8, "GPU-c::0")) == "ac"


NODES = (0, 0, 0, 0, 1, 1, 1, 1)
EIGHT = tuple(
    Gpu(uuid=f"GPU-{index}", index=index, minor=None, model="H200", memory_bytes=1 << 37, numa_node=node)
    for index, node in enumerate(NODES)
)
PAIRS = tuple(replace(gpu, links=(Link(gpu_uuid=f"GPU-{gpu.index ^ 4}", nvlinks=2),)) for gpu in EIGHT)


def whole(free: str, size: int, *must: str, gpus: tuple[Gpu, ...] = EIGHT, vgpus_per_gpu: int = 1) -> str:
    """Say which GPUs are preferred for *size* whole ones, where *free* lists those that are."""
    pool = Pool(gpus=gpus, vgpus_per_gpu=vgpus_per_gpu)
    available = [f"GPU-{name}::{index}" for name in free for index in range(vgpus_per_gpu)]
    chosen = preferred_ids(available=available, must_include=must, size=size * vgpus_per_gpu, pool=pool, policy="pack")
    assert len(chosen) == size * vgpus_per_gpu
    assert len(allocate(chosen, pool).gpus) == size
    return gpus_of(chosen)


@pytest.mark.parametrize("vgpus_per_gpu", [1, 4])
@pytest.mark.parametrize(
    ("free", "size", "chosen"),
    [
        ("145", 2, "45"),  # not 1 and 4, on two NUMA nodes
        ("145", 1, "1"),  # and 4 and 5 stay together
        ("01234567", 4, "0123"),
        ("1234567", 4, "4567"),
        ("01234567", 2, "01"),
        ("0124567", 3, "012"),
        ("0124567", 2, "01"),  # and the four of the other node stay together
        ("0156", 3, "015"),
    ],
)
def test_whole_gpus_are_of_one_numa_node_and_leave_others_together(
    free: str, size: int, chosen: str, vgpus_per_gpu: int
) -> None:
    assert whole(free, size, vgpus_per_gpu=vgpus_per_gpu) == chosen


@pytest.mark.parametrize(
    ("free", "size", "chosen"), [("01234567", 2, "04"), ("01235", 2, "15"), ("1256", 2, "15"), ("01456", 4, "0145")]
)
def test_an_nvlink_is_worth_more_than_a_numa_node(free: str, size: int, chosen: str) -> None:
    assert whole(free, size, gpus=PAIRS) == chosen


def test_what_must_be_included_decides_which_whole_gpus_go_with_it() -> None:
    assert whole("0124567", 2, "GPU-6::0") == "46"
    assert whole("0124567", 2, "GPU-6::0", gpus=PAIRS) == "26"
    assert whole("0124567", 3, "GPU-0::0", "GPU-7::0") == "017"


def test_the_lowest_vgpus_of_a_gpu_are_taken_in_numeric_order() -> None:
    pool = Pool(gpus=GPUS[:1], vgpus_per_gpu=12)
    available = [str(vgpu) for vgpu, _ in pool.vgpus()][::-1]
    chosen = preferred_ids(available=available, must_include=[], size=11, pool=pool, policy="pack")
    assert chosen == [f"GPU-a::{index}" for index in range(11)]


def test_where_no_gpu_has_room_the_answer_is_full_and_always_the_same() -> None:
    assert preferred(free(1, 2, 1), 3) == ["GPU-b::2", "GPU-b::3", "GPU-a::3"]
    assert preferred(free(1, 2, 1)[::-1], 3) == preferred(free(1, 2, 1), 3)


@pytest.mark.parametrize(("size", "expected"), [(0, 0), (-3, 0), (99, 12), (2**31 - 1, 12)])
def test_any_size_gets_as_many_as_there_are(size: int, expected: int) -> None:
    assert len(preferred(EVERY_ID, size)) == expected


def test_unknown_ids_are_the_last_resort() -> None:
    assert preferred(["GPU-x::0", "GPU-a::9", "GPU-c::3"], 1) == ["GPU-c::3"]
    assert preferred(["GPU-x::0", "GPU-a::9", "GPU-c::3"], 3) == ["GPU-c::3", "GPU-x::0", "GPU-a::9"]


@given(available=AnyIds, must=AnyIds, size=st.integers(-2, 25), policy=Policies)
def test_it_never_fails_and_gives_the_right_number_of_offered_ids(
    available: list[str], must: list[str], size: int, policy: AllocationPolicy
) -> None:
    chosen = preferred_ids(available=available, must_include=must, size=size, pool=POOL, policy=policy)
    offered = {*available, *must}
    assert len(chosen) == len(set(chosen)) == min(max(size, 0), len(offered))
    assert set(chosen) <= offered
    assert set(must) <= set(chosen) or set(chosen) <= set(must)


@settings(max_examples=300)
@given(available=st.sets(st.sampled_from(EVERY_ID)), size=st.integers(1, 12), policy=Policies, data=st.data())
def test_where_a_share_can_be_held_the_choice_can_be_allocated(
    available: set[str], size: int, policy: AllocationPolicy, data: st.DataObject
) -> None:
    free_of = {gpu.uuid: [i for i in available if i.startswith(gpu.uuid)] for gpu in GPUS}
    room = 4 if size % 4 == 0 else size
    usable = [uuid for uuid, free_ids in free_of.items() if len(free_ids) >= room]
    if len(usable) * room < size:
        return
    home = data.draw(st.sampled_from(usable))
    must = data.draw(st.lists(st.sampled_from(free_of[home]), unique=True, max_size=min(size, 4)))
    chosen = preferred_ids(available=sorted(available), must_include=must, size=size, pool=POOL, policy=policy)
    assert len(allocate(chosen, POOL).gpus) == max(1, size // 4)
