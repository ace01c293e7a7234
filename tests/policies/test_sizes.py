"""The sizes of a share by DRA: names that no two of them have, and grids that the scheduler can look through."""

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.cluster import Cluster
from policies.contract import SIZE_RESOURCE_PREFIX, WHOLE_GPU_RESOURCE_PREFIXES, SharingStrategy
from policies.device_names import resource_of
from policies.sizes import Size, devices_per_gpu, grid, is_sized, is_too_fine, read_size, size_of
from tests.policies.test_nodes import problems_of

GRIDS = st.integers(1, 100)
STRATEGIES = st.sampled_from(get_args(SharingStrategy))


def test_a_size_is_named_by_its_thousandths_and_how_the_gpu_is_shared() -> None:
    fifth = size_of(2, 10, "mps")
    assert (fifth.resource, fifth.device_class) == ("gpu-share.dev/share-200m", "share-200m.gpu-share.dev")
    assert size_of(1, 3, "time-slicing").resource == "gpu-share.dev/share-333m-timesliced"
    assert size_of(2, 1, "whole").resource == "gpu-share.dev/share-2000m-whole"


@given(GRIDS, STRATEGIES)
def test_no_two_sizes_have_the_same_name_and_each_is_read_back(per_gpu: int, strategy: SharingStrategy) -> None:
    sizes = grid(per_gpu, strategy)
    assert len({one.resource for one in sizes}) == len(sizes)
    assert [read_size(one.resource) for one in sizes] == list(sizes)
    assert all(is_sized(one.resource) for one in sizes)


@given(GRIDS, st.integers(1, 800))
def test_vgpus_are_found_again_in_their_size(per_gpu: int, units: int) -> None:
    if units <= per_gpu or units % per_gpu == 0:
        assert size_of(units, per_gpu, "mps").units(per_gpu) == units


@given(GRIDS, st.integers(1, 8000))
def test_a_size_of_another_grid_is_none_of_this_one(per_gpu: int, milli: int) -> None:
    size = Size("mps", milli)
    assert (size.units(per_gpu) is not None) == any(
        size_of(n, per_gpu, "mps") == size for n in range(1, 8 * per_gpu + 1)
    )


@given(GRIDS, st.lists(st.integers(1, 100)))
def test_what_fits_in_vgpus_fits_in_thousandths(per_gpu: int, units: list[int]) -> None:
    if sum(units) <= per_gpu:
        assert sum(size_of(one, per_gpu, "mps").milli for one in units) <= 1000


@pytest.mark.parametrize(
    "text",
    [
        "gpu-share.dev/vgpu",
        "gpu-share.dev/share-0m",
        "gpu-share.dev/share-0200m",
        "gpu-share.dev/share-200",
        "gpu-share.dev/share-200m-",
        "gpu-share.dev/share-200m-mps",
        "gpu-share.dev/share-200m\n",
        "gpu-share.dev/share-\u0662m",
        "200m",
        "example.com/share-200m",
    ],
)
def test_what_is_no_size_is_not_read_as_one(text: str) -> None:
    assert read_size(text) is None


def test_the_resource_that_kubernetes_makes_of_a_class_is_one_of_ours() -> None:
    assert is_sized("deviceclass.resource.kubernetes.io/share-200m.gpu-share.dev")
    assert not is_sized("deviceclass.resource.kubernetes.io/gpu.example.com")
    assert Cluster().is_ours("gpu-share.dev/share-anything")
    assert not Cluster().is_ours("gpu-share.dev/other")


def test_tenths_need_27_devices_for_each_gpu() -> None:
    assert devices_per_gpu(10) == 27


def test_nodes_by_dra_with_a_grid_too_fine_are_told_which_grid_fits() -> None:
    by_dra = "nodes: [{offer: mps, allocation: dra}]"
    (problem,) = problems_of(f"vgpusPerGpu: 100\n{by_dra}")
    assert "needs 482 devices for each GPU" in problem.message
    assert "at most 34 fits, such as 10, 20, 25" in problem.message
    assert not is_too_fine(34)
    assert problems_of(f"vgpusPerGpu: 34\n{by_dra}") == []
    assert problems_of("vgpusPerGpu: 60\nnodes: [{offer: mps}]") == []


@pytest.mark.parametrize("entry", ["offer: mps, vgpusPerGpu: 20", "offer: whole", "device: t4, vgpusPerGpu: 20"])
def test_a_grid_that_is_too_fine_counts_for_nodes_that_are_divided_by_it(entry: str) -> None:
    assert problems_of(f"vgpusPerGpu: 40\nnodes: [{{{entry}, allocation: dra}}]") == []


@pytest.mark.parametrize("name", ["gpu-share.dev/share-200m", "gpu-share.dev/share"])
def test_a_resource_of_the_device_plugin_cannot_be_named_like_a_size(name: str) -> None:
    (problem,) = problems_of(f"resourceNames: {{mps: {name}}}")
    assert "no gpu-share.dev/share or gpu-share.dev/share-..." in problem.message


@pytest.mark.parametrize("reserved", [*WHOLE_GPU_RESOURCE_PREFIXES, SIZE_RESOURCE_PREFIX])
@pytest.mark.parametrize("device", ["", "mig-1g.10gb", "model-t4"])
def test_the_resource_of_no_device_begins_like_one_of_others(reserved: str, device: str) -> None:
    for name in (reserved.rstrip("-/"), f"{reserved.rstrip('-/')}d", f"{reserved}x"):
        is_other = resource_of(name, device).startswith(reserved)
        assert not is_other or problems_of(f"resourceNames: {{mps: {name}}}") != []
    assert problems_of("resourceNames: {mps: gpu-share.dev/shared, whole: nvidia.com/migs}") == []
