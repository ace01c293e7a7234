import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plugin.gpus.gpu import Gpu, Pool
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


def test_what_must_be_included_comes_first_and_pulls_the_rest_to_its_gpu() -> None:
    assert preferred(free(1, 4, 3), 3, "GPU-b::2") == ["GPU-b::2", "GPU-b::0", "GPU-b::1"]
    assert gpus_of(preferred(free(4, 4, 4), 8, "GPU-c::0")) == "ac"


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
