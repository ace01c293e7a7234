import pytest
from hypothesis import given
from hypothesis import strategies as st

from plugin.errors import AllocationError
from plugin.gpus.gpu import Gpu, Pool
from plugin.shares.allocation import Allocation, allocate

A, B, C = (
    Gpu(uuid=f"GPU-{name}", index=0, minor=None, model="H200", memory_bytes=1 << 37, numa_node=None) for name in "abc"
)
POOL = Pool(gpus=(A, B, C), vgpus_per_gpu=4)
EVERY_ID = [str(vgpu) for vgpu, _ in POOL.vgpus()]


def ids(gpu: Gpu, *indices: int) -> list[str]:
    return [f"{gpu.uuid}::{index}" for index in indices]


def test_vgpus_of_one_gpu_are_a_part_of_it() -> None:
    assert allocate(ids(B, 3, 0), POOL) == Allocation(gpus=(B,), vgpus=2, vgpus_per_gpu=4)


def test_all_vgpus_of_several_gpus_are_whole_gpus_in_inventory_order() -> None:
    allocation = allocate([*ids(C, 1, 3, 2, 0), *ids(A, 0, 1, 2, 3)], POOL)
    assert allocation == Allocation(gpus=(A, C), vgpus=4, vgpus_per_gpu=4)
    assert allocation.is_whole


@pytest.mark.parametrize(
    ("device_ids", "sentence"),
    [
        ([], "at least one vGPU, got none"),
        (ids(A, 1, 1), "once, got GPU-a::1 more than once"),
        (["GPU-x::0"], "of this node, GPU-x::0 is not"),
        (["GPU-a::4"], "of this node, GPU-a::4 is not"),
        (["GPU-a::00"], "of this node, GPU-a::00 is not"),
        ([*ids(B, 1), *ids(A, 0)], "got 1 of 4 on GPU-a, 1 of 4 on GPU-b: GPU-a::0, GPU-b::1"),
        ([*ids(A, 0, 1, 2, 3), *ids(B, 0)], "got 4 of 4 on GPU-a, 1 of 4 on GPU-b: .* and"),
    ],
)
def test_what_cannot_be_held_is_rejected_with_the_ids_and_the_reason(device_ids: list[str], sentence: str) -> None:
    with pytest.raises(AllocationError, match=sentence.removesuffix(" and")):
        allocate(device_ids, POOL)


def test_a_rejection_stays_short_however_many_ids_there_are() -> None:
    pool = Pool(gpus=(A, B), vgpus_per_gpu=100)
    device_ids = [str(vgpu) for vgpu, _ in pool.vgpus()][:150]
    with pytest.raises(AllocationError, match="GPU-a::5 and 144 more") as rejection:
        allocate(device_ids, pool)
    assert len(str(rejection.value)) < 256


def test_unprintable_ids_are_named_in_ascii() -> None:
    with pytest.raises(AllocationError) as rejection:
        allocate(["\x1b[2J\n"], POOL)
    assert str(rejection.value).isprintable()


@given(device_ids=st.lists(st.sampled_from([*EVERY_ID, "GPU-x::0", "", "GPU-a::9"]), max_size=14))
def test_a_share_never_spans_gpus_unless_they_are_whole_and_never_has_a_vgpu_twice(device_ids: list[str]) -> None:
    try:
        allocation = allocate(device_ids, POOL)
    except AllocationError:
        return
    assert len(set(device_ids)) == len(device_ids) == allocation.vgpus * len(allocation.gpus) > 0
    assert {device_id.split("::")[0] for device_id in device_ids} == {gpu.uuid for gpu in allocation.gpus}
    assert len(allocation.gpus) == 1 or allocation.is_whole


@given(
    wanted=st.one_of(
        st.tuples(st.just(1), st.integers(1, 4)),  # a part of one GPU
        st.tuples(st.integers(1, 3), st.just(4)),  # whole GPUs
    ),
    random=st.randoms(use_true_random=False),
)
def test_whatever_can_be_held_is_granted_in_any_order(wanted: tuple[int, int], random: object) -> None:
    gpus, vgpus = wanted
    device_ids = [device_id for gpu in POOL.gpus[:gpus] for device_id in ids(gpu, *range(vgpus))]
    getattr(random, "shuffle")(device_ids)  # noqa: B009 - hypothesis gives no public type
    assert allocate(device_ids, POOL) == Allocation(gpus=POOL.gpus[:gpus], vgpus=vgpus, vgpus_per_gpu=4)
