"""CDI specifications: every runtime can read them, and a container gets from them what holds it to its share."""

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plugin.errors import HandoverError
from plugin.gpus.gpu import Gpu, Pool
from plugin.shares.allocation import Allocation
from plugin.shares.cdi import device_name, grids_of, kind, specification
from plugin.shares.handover import Delivery, answer
from plugin.shares.strategy import Mps, Sharing, TimeSlicing, Whole
from plugin.simulated.gpus import MODELS, simulated_gpus
from tests.plugin.shares.cdi_runtime import VALIDATOR, created, needed_version, read

NAME = "gpu-share.dev/vgpu"
MPS = Mps("/tmp/nvidia-mps")
A, B = simulated_gpus("2xH200")
OURS = (
    "NVIDIA_VISIBLE_DEVICES",
    "GPU_SHARE_FRACTION",
    "GPU_SHARE_MEMORY_MIB",
    "CUDA_MPS_PIPE_DIRECTORY",
    "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE",
    "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT",
)
ResourceNames = st.from_regex(
    r"([a-z0-9]([-a-z0-9]{0,3}[a-z0-9])?\.){1,2}[a-z0-9]/[A-Za-z0-9]([A-Za-z0-9._-]{0,53}[A-Za-z0-9])?", fullmatch=True
)


def edits(gpu: Gpu, *, vgpus: int, of: int = 10, sharing: Sharing = MPS) -> dict[str, Any]:
    found = read(specification(NAME, grids_of(Pool(gpus=(A, B), vgpus_per_gpu=of), sharing)))
    name = device_name(gpu.uuid, vgpus=vgpus, vgpus_per_gpu=of)
    (device,) = [device for device in found["devices"] if device["name"] == name]
    made: dict[str, Any] = device["containerEdits"]
    return made


def test_a_share_of_one_fifth_brings_its_variables_and_mounts() -> None:
    assert edits(A, vgpus=2) == {
        "env": [
            f"NVIDIA_VISIBLE_DEVICES={A.uuid}",
            "GPU_SHARE_FRACTION=0.2",
            "GPU_SHARE_MEMORY_MIB=28728",
            f"CUDA_MPS_PIPE_DIRECTORY=/tmp/nvidia-mps/{A.uuid}",
            "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=20",
            "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=28728M",
        ],
        "mounts": [
            {
                "hostPath": f"/tmp/nvidia-mps/{A.uuid}",
                "containerPath": f"/tmp/nvidia-mps/{A.uuid}",
                "options": ["rbind", "rprivate", "rw", "nosuid", "nodev", "noexec"],
            },
            {
                "hostPath": "/tmp/nvidia-mps/shm",
                "containerPath": "/dev/shm",
                "options": ["rbind", "rprivate", "rw", "nosuid", "nodev", "noexec"],
            },
        ],
    }


@pytest.mark.parametrize("sharing", [TimeSlicing(), Whole()])
def test_without_mps_a_device_brings_no_mount(sharing: Sharing) -> None:
    assert set(edits(B, vgpus=1, sharing=sharing)) == {"env"}


def test_there_is_one_device_for_each_gpu_and_size_of_a_share() -> None:
    found = read(specification(NAME, grids_of(Pool(gpus=(A, B), vgpus_per_gpu=3), MPS)))
    assert [device["name"] for device in found["devices"]] == [
        *(f"{gpu.uuid}-{vgpus}of3" for gpu in (A, B) for vgpus in (1, 2, 3)),
        "void",
    ]


def test_a_gpu_that_is_handed_out_whole_is_one_device() -> None:
    found = read(specification("gpu-share.dev/gpu", grids_of(Pool(gpus=(A,), vgpus_per_gpu=1), Whole())))
    assert found["kind"] == "gpu-share.dev/gpu"
    assert [device["name"] for device in found["devices"]] == [f"{A.uuid}-1of1", "void"]


def test_the_device_void_tells_nvidias_runtime_to_do_nothing() -> None:
    found = read(specification(NAME, grids_of(Pool(gpus=(A, B), vgpus_per_gpu=10), MPS)))
    assert found["devices"][-1] == {"name": "void", "containerEdits": {"env": ["NVIDIA_VISIBLE_DEVICES=void"]}}


def test_the_same_gpus_give_the_same_bytes() -> None:
    pool = Pool(gpus=(A, B), vgpus_per_gpu=10)
    assert specification(NAME, grids_of(pool, MPS)) == specification(NAME, grids_of(pool, MPS))


@settings(deadline=None, max_examples=50)
@given(
    name=ResourceNames,
    specified=st.sampled_from([f"{count}x{model}" for count in (1, 3) for model in MODELS]),
    vgpus_per_gpu=st.integers(1, 20) | st.just(100),
    sharing=st.sampled_from([MPS, Mps("/run/a.b_c-d"), TimeSlicing(), Whole()]),
)
def test_whatever_is_shared_is_a_valid_specification_that_says_the_oldest_version_there_is(
    name: str, specified: str, vgpus_per_gpu: int, sharing: Sharing
) -> None:
    found = read(
        specification(name, grids_of(Pool(gpus=simulated_gpus(specified), vgpus_per_gpu=vgpus_per_gpu), sharing))
    )
    assert found["cdiVersion"] == needed_version(found) == "0.3.0"


@pytest.mark.parametrize(
    "broken",
    [
        {"cdiVersion": "0.9.0"},
        {"kind": "vgpu"},
        {"kind": "gpu-share.dev/vgpu/all"},
        {"kind": "gpu-share.dev/1st"},
        {"devices": []},
        {"containerEdits": {"variables": []}},
        {"devices": [{"name": "GPU=0", "containerEdits": {"env": ["A=b"]}}]},
        {"devices": [{"name": "GPU-0", "containerEdits": {}}]},
        {"devices": [{"name": "GPU-0", "containerEdits": {"env": ["A"]}}]},
        {"devices": [{"name": "GPU-0", "containerEdits": {"mounts": [{"hostPath": "/a"}]}}]},
        {"devices": [{"name": "GPU-0", "containerEdits": {"mounts": [{"hostPath": "a", "containerPath": "/a"}]}}]},
        {"note": "ours"},
    ],
)
def test_the_schema_takes_nothing_that_a_runtime_rejects(broken: dict[str, Any]) -> None:
    good = read(specification(NAME, grids_of(Pool(gpus=(A,), vgpus_per_gpu=1), MPS)))
    assert VALIDATOR.is_valid(good)
    assert not VALIDATOR.is_valid(good | broken)


@pytest.mark.parametrize("name", [NAME, "gpu-share.dev/vgpu-timesliced", "k8s.amazonaws.com/v_GPU2", "a-1.b/c--d"])
def test_a_resource_keeps_its_name_where_cdi_takes_it(name: str) -> None:
    assert kind(name) == name


@pytest.mark.parametrize(
    ("name", "pattern"),
    [
        ("nvidia.com/gpu.shared", r"nvidia\.com/gpu-shared-[0-9a-f]{12}"),
        ("gpu-share.dev/1st", r"gpu-share\.dev/x-1st-[0-9a-f]{12}"),
        ("3m.com/gpu", r"x-3m\.com/gpu-[0-9a-f]{12}"),
        ("gpu-share.dev/g", r"gpu-share\.dev/g-[0-9a-f]{12}"),
        (f"gpu-share.dev/{'a.' * 27}a", rf"gpu-share\.dev/{'a-' * 25}-[0-9a-f]{{12}}"),
    ],
)
def test_a_name_that_cdi_does_not_take_is_changed_and_told_apart(name: str, pattern: str) -> None:
    assert re.fullmatch(pattern, kind(name))


def test_no_two_resources_have_one_kind() -> None:
    dotted, dashed = "gpu-share.dev/a.b", "gpu-share.dev/a-b"
    pretender = kind(dotted)  # is the name of a resource too
    assert len({kind(dotted), kind(dashed), kind(pretender), kind("x-3m.com/gpu"), kind("3m.com/gpu")}) == 5


@settings(deadline=None)
@given(names=st.sets(ResourceNames, min_size=2, max_size=6))
def test_different_names_are_different_kinds(names: set[str]) -> None:
    dashed = {f"{domain}/{name.replace('.', '-')}" for domain, _, name in (each.partition("/") for each in names)}
    near = names | dashed | {kind(name) for name in names}
    assert len({kind(name) for name in near}) == len(near)


@pytest.mark.parametrize("uuid", ["0-GPU", "GPU=a", "GPU a", "GPU/a", "GPU-ä", ""])
def test_a_uuid_that_cannot_be_part_of_a_name_is_an_error_with_the_way_out(uuid: str) -> None:
    gpu = Gpu(uuid=uuid, index=0, minor=None, model="H200", memory_bytes=1 << 37, numa_node=None)
    with pytest.raises(HandoverError, match=r"leave cdi out of handover in _cluster\.yaml") as error:
        specification(NAME, grids_of(Pool(gpus=(gpu,), vgpus_per_gpu=1), MPS))
    assert str(error.value).isascii()


Environments = st.lists(
    st.tuples(st.sampled_from([*OURS, "PATH", "CUDA_VISIBLE_DEVICES"]), st.sampled_from(["all", "", "100", "GPU-x=9G"]))
)
Mounts = st.lists(
    st.tuples(
        st.sampled_from(
            ["/dev/shm", "/dev/shm/", "//dev/shm", "/dev", "/tmp", "/tmp/nvidia-mps", f"/tmp/nvidia-mps/{A.uuid}", "/"]
        ),
        st.just("/of/the/pod"),
    )
)


@settings(deadline=None)
@given(image=Environments, pod=Environments, mounts=Mounts, vgpus=st.integers(1, 10))
def test_what_a_cdi_device_brings_wins_over_whatever_image_and_pod_say(
    image: list[tuple[str, str]], pod: list[tuple[str, str]], mounts: list[tuple[str, str]], vgpus: int
) -> None:
    made = edits(A, vgpus=vgpus)
    told = answer(
        Allocation(gpus=(A,), vgpus=vgpus, vgpus_per_gpu=10),
        MPS,
        Delivery(ways=frozenset({"cdi"}), cdi_kind=kind(NAME)),
    )
    started = created(image=dict(image), requested=[*told.environment.items(), *pod], mounts=mounts, edits=made)
    ours = dict(entry.split("=", 1) for entry in made["env"])
    assert set(ours) == set(OURS)
    assert {name: started.environment[name] for name in ours} == ours
    assert started.lies_at("/dev/shm") == "/tmp/nvidia-mps/shm"
    assert started.lies_at(f"/tmp/nvidia-mps/{A.uuid}") == f"/tmp/nvidia-mps/{A.uuid}"


def test_without_a_cdi_device_the_pod_wins() -> None:
    told = answer(
        Allocation(gpus=(A,), vgpus=2, vgpus_per_gpu=10), MPS, Delivery(ways=frozenset({"envvar"}))
    ).environment
    pod = [("NVIDIA_VISIBLE_DEVICES", "all")]
    started = created(image={}, requested=[*told.items(), *pod], mounts=[("/dev/shm", "/of/the/pod")], edits={})
    assert started.environment["NVIDIA_VISIBLE_DEVICES"] == "all"
    assert started.lies_at("/dev/shm") == "/of/the/pod"
