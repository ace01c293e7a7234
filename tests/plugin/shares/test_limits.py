from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plugin.errors import AllocationError
from plugin.gpus.gpu import Gpu, MigInstance
from plugin.shares.allocation import Allocation
from plugin.shares.limits import MPS_SERVER_MIB, Mount, limits, memory_mib
from plugin.shares.strategy import Mps, Sharing, TimeSlicing, Whole

MIB = 1024 * 1024
H200 = Gpu(uuid="GPU-a", index=0, minor=None, model="H200", memory_bytes=143771 * MIB, numa_node=0)
L4 = Gpu(uuid="GPU-b", index=0, minor=None, model="L4", memory_bytes=23034 * MIB, numa_node=1)
MPS = Mps("/tmp/nvidia-mps")


def share(vgpus: int, of: int, *gpus: Gpu) -> Allocation:
    return Allocation(gpus=gpus or (H200,), vgpus=vgpus, vgpus_per_gpu=of)


def test_a_fifth_of_a_gpu_under_mps() -> None:
    received = limits(share(2, 10), MPS)
    assert received.environment == {
        "NVIDIA_VISIBLE_DEVICES": "GPU-a",
        "CUDA_MPS_PIPE_DIRECTORY": "/tmp/nvidia-mps/GPU-a",
        "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": "20",
        "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT": "0=28728M",
        "GPU_SHARE_FRACTION": "0.2",
        "GPU_SHARE_MEMORY_MIB": "28728",
    }
    assert received.mounts == (
        Mount(host_path="/tmp/nvidia-mps/GPU-a", container_path="/tmp/nvidia-mps/GPU-a"),
        Mount(host_path="/tmp/nvidia-mps/shm", container_path="/dev/shm"),
    )


def test_a_fifth_of_a_gpu_by_time_slicing_has_nothing_of_mps() -> None:
    received = limits(share(2, 10), TimeSlicing())
    assert received.environment == {
        "NVIDIA_VISIBLE_DEVICES": "GPU-a",
        "GPU_SHARE_FRACTION": "0.2",
        "GPU_SHARE_MEMORY_MIB": "28754",
    }
    assert received.mounts == ()


def test_a_gpu_that_is_handed_out_whole_has_nothing_of_mps() -> None:
    received = limits(share(1, 1), Whole())
    assert received.environment == {
        "NVIDIA_VISIBLE_DEVICES": "GPU-a",
        "GPU_SHARE_FRACTION": "1",
        "GPU_SHARE_MEMORY_MIB": "143771",
    }
    assert received.mounts == ()


def test_one_whole_gpu_keeps_its_own_daemon_and_all_that_the_server_leaves() -> None:
    environment = limits(share(10, 10), MPS).environment
    assert environment["CUDA_MPS_PIPE_DIRECTORY"] == "/tmp/nvidia-mps/GPU-a"
    assert environment["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"] == "100"
    assert environment["CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"] == "0=143643M"
    assert environment["GPU_SHARE_FRACTION"] == "1"


def test_several_gpus_under_mps_are_rejected_since_a_process_reaches_one_daemon_only() -> None:
    sentence = "a process reaches one GPU through MPS, got 2: ask for at most 10 vGPUs in one container"
    with pytest.raises(AllocationError, match=sentence):
        limits(share(10, 10, H200, L4), MPS)


@pytest.mark.parametrize("sharing", [TimeSlicing(), Whole()])
def test_several_whole_gpus_are_all_visible(sharing: Sharing) -> None:
    received = limits(share(10, 10, H200, L4), sharing)
    assert received.environment == {
        "NVIDIA_VISIBLE_DEVICES": "GPU-a,GPU-b",
        "GPU_SHARE_FRACTION": "1",
        "GPU_SHARE_MEMORY_MIB": "23034",
    }
    assert received.mounts == ()


@pytest.mark.parametrize(
    ("vgpus", "of", "fraction", "percentage"),
    [(1, 3, "0.3333", "33"), (2, 3, "0.6666", "66"), (1, 8, "0.125", "12"), (1, 100, "0.01", "1"), (7, 7, "1", "100")],
)
def test_numbers_are_short_and_rounded_down(vgpus: int, of: int, fraction: str, percentage: str) -> None:
    environment = limits(share(vgpus, of), MPS).environment
    assert environment["GPU_SHARE_FRACTION"] == fraction
    assert environment["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"] == percentage


@given(data=st.data(), of=st.integers(1, 100), memory_bytes=st.integers(200 * MIB, 1 << 40))
def test_the_shares_of_a_gpu_never_add_up_to_more_than_the_gpu(data: st.DataObject, of: int, memory_bytes: int) -> None:
    gpu = Gpu(uuid="GPU-a", index=0, minor=None, model="any", memory_bytes=memory_bytes, numa_node=None)
    cuts = sorted(data.draw(st.sets(st.integers(1, of), max_size=10)) | {of})
    shares = [share(cut - before, of, gpu) for before, cut in zip([0, *cuts], cuts, strict=False)]
    told = [limits(each, MPS).environment for each in shares]
    assert sum(memory_mib(each) for each in shares) * MIB <= memory_bytes
    limited_mib = [int(each["CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"].removeprefix("0=").removesuffix("M")) for each in told]
    assert (sum(limited_mib) + MPS_SERVER_MIB) * MIB <= memory_bytes
    assert sum(int(each["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"]) for each in told) <= 100
    assert sum(Fraction(each["GPU_SHARE_FRACTION"]) for each in told) <= 1
    assert all(int(each["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"]) >= 1 for each in told)


def test_a_container_has_one_mig_instance_with_its_own_uuid_and_pipe() -> None:
    placed = MigInstance(profile="1g.10gb", parent_uuid="GPU-a", gpu_instance=1, compute_instance=0)
    one = replace(H200, uuid="MIG-a", memory_bytes=9728 * MIB, instance=placed)
    received = limits(share(2, 6, one), MPS)
    assert received.environment["NVIDIA_VISIBLE_DEVICES"] == "MIG-a"
    assert received.environment["CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"] == f"0={(9728 - MPS_SERVER_MIB) // 3}M"
    assert received.mounts[0].host_path == "/tmp/nvidia-mps/MIG-a"
    with pytest.raises(AllocationError, match="a program reaches one MIG instance, got 2"):
        limits(share(1, 1, one, replace(one, uuid="MIG-b")), Whole())
