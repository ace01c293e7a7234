"""What a container is told and given, by each of the ways to hand a GPU over, and by all of them together."""

import json
from dataclasses import replace
from itertools import chain, combinations
from pathlib import Path
from typing import Any

import pytest

from plugin.errors import HandoverError
from plugin.gpus.gpu import Gpu, Pool
from plugin.shares.allocation import Allocation
from plugin.shares.handover import (
    BY_VARIABLE,
    Answer,
    Delivery,
    HandoverSettings,
    answer,
    forget_others,
    handover_settings,
    look_for_devices,
    prepare,
)
from plugin.shares.limits import limits
from plugin.shares.strategy import Mps, Sharing, TimeSlicing, Whole
from plugin.simulated.gpus import simulated_gpus
from policies.contract import Handover
from tests.plugin.shares.cdi_runtime import Started, created, read_directory

NAME = "gpu-share.dev/vgpu"
MPS = Mps("/tmp/nvidia-mps")
SIMULATED = simulated_gpus("2xH200")
A, B = (replace(gpu, minor=gpu.index) for gpu in SIMULATED)
POOL = Pool(gpus=(A, B), vgpus_per_gpu=10)
FIFTH = Allocation(gpus=(A,), vgpus=2, vgpus_per_gpu=10)
BOTH = Allocation(gpus=(A, B), vgpus=10, vgpus_per_gpu=10)
WAYS: tuple[Handover, ...] = ("envvar", "cdi", "devices")
EVERY_SET = [frozenset(ways) for ways in chain.from_iterable(combinations(WAYS, size) for size in (1, 2, 3))]
TOLD = {"GPU_SHARE_FRACTION": "0.2", "GPU_SHARE_MEMORY_MIB": "28741"}
NODES = ("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-modeset")


# NVIDIA's own devices, as its toolkit specifies them: of the GPU, and hostile ones of everything else.
HOSTILE = ["NVIDIA_VISIBLE_DEVICES=all", "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=100", "GPU_SHARE_FRACTION=1"]
THEIRS: dict[str, dict[str, Any]] = {
    f"nvidia.com/gpu={gpu.uuid}": {"env": HOSTILE, "deviceNodes": [{"path": f"/dev/nvidia{gpu.minor}"}]}
    for gpu in (A, B)
}


def with_nvidia(directory: Path, ways: frozenset[Handover], *gpus: Gpu) -> HandoverSettings:
    """Settings of a node where NVIDIA's toolkit has made a device of each of *gpus*."""
    static = directory / "etc-cdi"
    static.mkdir()
    devices = [{"name": gpu.uuid, "containerEdits": THEIRS[f"nvidia.com/gpu={gpu.uuid}"]} for gpu in gpus]
    text = json.dumps({"cdiVersion": "0.5.0", "kind": "nvidia.com/gpu", "devices": devices})
    (static / "nvidia.json").write_text(text)
    return handover_settings(ways, cdi_dir=directory / "cdi", static_dir=static)


def settings(directory: Path, ways: frozenset[Handover]) -> HandoverSettings:
    return HandoverSettings(ways=ways, cdi_dir=directory / "cdi")


@pytest.fixture(params=EVERY_SET, ids=lambda ways: "+".join(sorted(ways)))
def ways(request: pytest.FixtureRequest) -> frozenset[Handover]:
    chosen: frozenset[Handover] = request.param
    return chosen


@pytest.fixture
def host_dev(tmp_path: Path) -> Path:
    dev = tmp_path / "dev"
    dev.mkdir()
    (dev / "nvidia-modeset").touch()
    return dev


def delivery(ways: frozenset[Handover]) -> Delivery:
    return Delivery(ways=ways, cdi_kind=NAME if "cdi" in ways else "", common_nodes=NODES if "devices" in ways else ())


def test_by_variable_the_answer_is_all_there_is() -> None:
    held = limits(FIFTH, MPS)
    assert answer(FIFTH, MPS, BY_VARIABLE) == Answer(environment=held.environment, mounts=held.mounts)


def test_by_cdi_alone_the_device_brings_it_all_and_a_runtime_that_ignores_it_shows_no_gpu() -> None:
    assert answer(FIFTH, MPS, delivery(frozenset({"cdi"}))) == Answer(
        environment={**TOLD, "NVIDIA_VISIBLE_DEVICES": "void"}, cdi_devices=(f"{NAME}={A.uuid}-2of10",)
    )


def test_by_device_nodes_alone_the_hook_is_told_to_do_nothing() -> None:
    held = limits(FIFTH, MPS)
    assert answer(FIFTH, MPS, delivery(frozenset({"devices"}))) == Answer(
        environment=held.environment | {"NVIDIA_VISIBLE_DEVICES": "void"},
        mounts=held.mounts,
        device_nodes=(*NODES, "/dev/nvidia0"),
    )


def test_by_cdi_and_device_nodes_the_device_alone_speaks_to_the_hook_and_the_limits_do_not_depend_on_it() -> None:
    held = limits(FIFTH, MPS)
    assert answer(FIFTH, MPS, delivery(frozenset({"cdi", "devices"}))) == Answer(
        environment=held.environment | {"NVIDIA_VISIBLE_DEVICES": "void"},
        mounts=held.mounts,
        device_nodes=(*NODES, "/dev/nvidia0"),
        cdi_devices=(f"{NAME}={A.uuid}-2of10",),
    )


def test_several_ways_go_together() -> None:
    held = limits(FIFTH, MPS)
    assert answer(FIFTH, MPS, delivery(frozenset(WAYS))) == Answer(
        environment=held.environment,
        mounts=held.mounts,
        device_nodes=(*NODES, "/dev/nvidia0"),
        cdi_devices=(f"{NAME}={A.uuid}-2of10",),
    )


def test_several_whole_gpus_are_no_cdi_device(ways: frozenset[Handover]) -> None:
    told = answer(BOTH, TimeSlicing(), delivery(ways))
    seen = "void" if ways == {"devices"} else f"{A.uuid},{B.uuid}"
    assert told.environment == {
        "GPU_SHARE_FRACTION": "1",
        "GPU_SHARE_MEMORY_MIB": "143771",
        "NVIDIA_VISIBLE_DEVICES": seen,
    }
    assert (told.mounts, told.cdi_devices) == ((), ())
    assert told.device_nodes == ((*NODES, "/dev/nvidia0", "/dev/nvidia1") if "devices" in ways else ())


def test_a_gpu_that_is_handed_out_whole_is_a_cdi_device_of_its_own() -> None:
    told = answer(
        Allocation(gpus=(B,), vgpus=1, vgpus_per_gpu=1),
        Whole(),
        Delivery(ways=frozenset({"cdi"}), cdi_kind="gpu-share.dev/gpu"),
    )
    assert told.cdi_devices == (f"gpu-share.dev/gpu={B.uuid}-1of1",)


def test_simulated_gpus_have_no_device_nodes() -> None:
    simulated = Allocation(gpus=SIMULATED[:1], vgpus=2, vgpus_per_gpu=10)
    assert answer(simulated, MPS, delivery(frozenset({"devices"}))).device_nodes == ()


@pytest.mark.parametrize(
    ("allocation", "sharing"),
    [(FIFTH, MPS), (FIFTH, TimeSlicing()), (BOTH, TimeSlicing())],
    ids=["mps", "time-slicing", "two whole"],
)
def test_the_kubelet_can_always_expand_what_the_container_is_told(
    ways: frozenset[Handover], allocation: Allocation, sharing: Sharing
) -> None:
    environment = answer(allocation, sharing, delivery(ways)).environment
    assert {"GPU_SHARE_FRACTION", "GPU_SHARE_MEMORY_MIB", "NVIDIA_VISIBLE_DEVICES"} <= set(environment)


def started(told: Answer, directory: Path, *, runtime_knows_cdi: bool) -> Started:
    """Start a container whose image wants all GPUs."""
    known = read_directory(directory) | THEIRS if told.cdi_devices and runtime_knows_cdi else {}
    every = [known[name] for name in told.cdi_devices] if known else []
    edits = {
        field: [one for edit in every for one in edit.get(field, ())] for field in ("env", "mounts", "deviceNodes")
    }
    return created(
        image={"NVIDIA_VISIBLE_DEVICES": "all", "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": "100"},
        requested=list(told.environment.items()),
        mounts=[(mount.container_path, mount.host_path) for mount in told.mounts],
        edits=edits,
    )


def test_a_container_has_its_share_or_no_gpu_by_every_way_whatever_its_image_says(
    ways: frozenset[Handover], tmp_path: Path, host_dev: Path
) -> None:
    told = answer(FIFTH, MPS, prepare(settings(tmp_path, ways), NAME, POOL, MPS, dev=host_dev))
    for runtime_knows_cdi in (True, False):
        container = started(told, tmp_path / "cdi", runtime_knows_cdi=runtime_knows_cdi)
        environment = container.environment
        assert environment["NVIDIA_VISIBLE_DEVICES"] in {A.uuid, "void"}
        if told.device_nodes or environment["NVIDIA_VISIBLE_DEVICES"] != "void":
            held = limits(FIFTH, MPS)
            assert environment.items() >= (held.environment.items() - {("NVIDIA_VISIBLE_DEVICES", A.uuid)})
            assert container.lies_at("/dev/shm") == "/tmp/nvidia-mps/shm"
            assert container.lies_at(f"/tmp/nvidia-mps/{A.uuid}") == f"/tmp/nvidia-mps/{A.uuid}"
        else:
            assert not runtime_knows_cdi


def test_of_the_pipes_only_those_of_the_own_gpu_are_mounted_by_every_way(
    ways: frozenset[Handover], tmp_path: Path, host_dev: Path
) -> None:
    told = answer(FIFTH, MPS, prepare(settings(tmp_path, ways), NAME, POOL, MPS, dev=host_dev))
    container = started(told, tmp_path / "cdi", runtime_knows_cdi=True)
    own = f"/tmp/nvidia-mps/{A.uuid}"
    assert sorted(container.mounts) == [("/dev/shm", "/tmp/nvidia-mps/shm"), (own, own)]


def test_every_cdi_device_that_can_be_answered_lies_ready(tmp_path: Path) -> None:
    made = prepare(settings(tmp_path, frozenset({"cdi"})), NAME, POOL, MPS)
    shares = [Allocation(gpus=(gpu,), vgpus=vgpus, vgpus_per_gpu=10) for gpu in POOL.gpus for vgpus in range(1, 11)]
    named = {answer(share, MPS, made).cdi_devices[0] for share in shares}
    assert named | {f"{NAME}=void"} == set(read_directory(tmp_path / "cdi"))


def test_the_shares_of_a_gpu_that_appears_lie_ready_before_it_is_shared(tmp_path: Path) -> None:
    chosen = settings(tmp_path, frozenset({"cdi", "devices"}))
    alone = Pool(gpus=(A,), vgpus_per_gpu=10)
    first = prepare(chosen, NAME, alone, MPS)
    again = prepare(chosen, NAME, replace(alone, gpus=(A, B)), MPS)
    assert again == first
    devices = read_directory(tmp_path / "cdi")
    assert {f"{NAME}={gpu.uuid}-1of10" for gpu in (A, B)} <= set(devices)
    told = answer(Allocation(gpus=(B,), vgpus=1, vgpus_per_gpu=10), MPS, first)
    assert told.device_nodes[-1] == "/dev/nvidia1"


def test_without_cdi_the_directory_is_left_as_it_is(tmp_path: Path) -> None:
    prepare(settings(tmp_path, frozenset({"cdi"})), NAME, POOL, MPS)
    before = (tmp_path / "cdi" / "gpu-share_gpu-share.dev_vgpu.json").stat()
    by_variable = settings(tmp_path, frozenset({"envvar", "devices"}))
    forget_others(by_variable, ["gpu-share.dev/gpu"])
    prepare(by_variable, NAME, replace(POOL, vgpus_per_gpu=5), MPS)
    assert (tmp_path / "cdi" / "gpu-share_gpu-share.dev_vgpu.json").stat() == before


def test_with_cdi_what_is_no_longer_offered_is_cleared_up(tmp_path: Path) -> None:
    chosen = settings(tmp_path, frozenset({"cdi"}))
    for name in (NAME, "gpu-share.dev/gpu"):
        prepare(chosen, name, POOL, MPS)
    forget_others(chosen, [NAME])
    assert {name.partition("=")[0] for name in read_directory(tmp_path / "cdi")} == {NAME}


def test_a_resource_without_gpus_has_no_specification(tmp_path: Path) -> None:
    # CDI knows none without devices: a runtime would complain about the file at each start of a container.
    prepare(settings(tmp_path, frozenset({"cdi"})), NAME, Pool(gpus=(), vgpus_per_gpu=10), MPS)
    assert not (tmp_path / "cdi").exists()


def test_a_directory_that_cannot_be_written_to_is_an_error_of_the_handover(tmp_path: Path) -> None:
    (tmp_path / "cdi").touch()
    with pytest.raises(HandoverError, match=r"^--cdi-dir "):
        prepare(settings(tmp_path, frozenset({"cdi"})), NAME, POOL, MPS)


def test_device_nodes_are_looked_for_at_the_start_only(tmp_path: Path, host_dev: Path) -> None:
    made = prepare(settings(tmp_path, frozenset({"devices"})), NAME, POOL, MPS, dev=host_dev)
    (host_dev / "nvidia-modeset").unlink()
    assert "/dev/nvidia-modeset" in answer(FIFTH, MPS, made).device_nodes


def test_the_node_of_a_gpu_goes_by_its_minor_number_whatever_nvml_numbers_it() -> None:
    renumbered = replace(B, index=0)
    told = answer(Allocation(gpus=(renumbered,), vgpus=1, vgpus_per_gpu=10), MPS, delivery(frozenset({"devices"})))
    assert told.device_nodes[-1] == "/dev/nvidia1"


def test_nvidias_own_device_brings_the_gpu_and_ours_its_limits(tmp_path: Path) -> None:
    chosen = with_nvidia(tmp_path, frozenset({"cdi"}), A)
    assert look_for_devices(chosen, (A,), driver="") == "cdi, with NVIDIA's own CDI device of each GPU"
    told = answer(FIFTH, MPS, prepare(chosen, NAME, POOL, MPS))
    assert told == Answer(
        environment={**TOLD, "NVIDIA_VISIBLE_DEVICES": "void"},
        cdi_devices=(f"nvidia.com/gpu={A.uuid}", f"{NAME}={A.uuid}-2of10", f"{NAME}=void"),
    )


def test_whatever_nvidias_device_sets_the_limits_are_ours_and_its_runtime_does_nothing(tmp_path: Path) -> None:
    chosen = with_nvidia(tmp_path, frozenset({"cdi"}), A, B)
    look_for_devices(chosen, (A, B), driver="")
    told = answer(FIFTH, MPS, prepare(chosen, NAME, POOL, MPS))
    environment = started(told, tmp_path / "cdi", runtime_knows_cdi=True).environment
    held = limits(FIFTH, MPS).environment
    assert environment.items() >= (held | {"NVIDIA_VISIBLE_DEVICES": "void"}).items()


def test_several_whole_gpus_are_nvidias_devices_where_there_is_one_of_each(tmp_path: Path) -> None:
    chosen = with_nvidia(tmp_path, frozenset({"cdi"}), A, B)
    made = prepare(chosen, NAME, POOL, TimeSlicing())
    look_for_devices(chosen, (A, B), driver="")
    told = answer(BOTH, TimeSlicing(), made)
    assert told.cdi_devices == (f"nvidia.com/gpu={A.uuid}", f"nvidia.com/gpu={B.uuid}", f"{NAME}=void")
    assert told.environment["NVIDIA_VISIBLE_DEVICES"] == "void"
    assert started(told, tmp_path / "cdi", runtime_knows_cdi=True).environment["NVIDIA_VISIBLE_DEVICES"] == "void"


def test_several_whole_gpus_of_which_one_has_no_device_go_by_variables(tmp_path: Path) -> None:
    chosen = with_nvidia(tmp_path, frozenset({"cdi"}), A)
    look_for_devices(chosen, (A, B), driver="")
    told = answer(BOTH, TimeSlicing(), prepare(chosen, NAME, POOL, TimeSlicing()))
    assert (told.cdi_devices, told.environment["NVIDIA_VISIBLE_DEVICES"]) == ((), f"{A.uuid},{B.uuid}")


def test_a_device_that_appears_is_named_from_then_on_without_another_preparation(tmp_path: Path) -> None:
    chosen = with_nvidia(tmp_path, frozenset({"cdi"}), A)
    made = prepare(chosen, NAME, POOL, MPS)
    assert answer(FIFTH, MPS, made).cdi_devices == (f"{NAME}={A.uuid}-2of10",)
    look_for_devices(chosen, (A, B), driver="")
    assert answer(FIFTH, MPS, made).cdi_devices[0] == f"nvidia.com/gpu={A.uuid}"
    (tmp_path / "etc-cdi" / "nvidia.json").unlink()
    look_for_devices(chosen, (A, B), driver="")
    assert answer(FIFTH, MPS, made).cdi_devices == (f"{NAME}={A.uuid}-2of10",)


@pytest.mark.parametrize(
    "ways", [one for one in EVERY_SET if "cdi" not in one], ids=lambda ways: "+".join(sorted(ways))
)
def test_without_cdi_no_device_of_nvidias_is_named(tmp_path: Path, ways: frozenset[Handover]) -> None:
    chosen = with_nvidia(tmp_path, ways, A, B)
    assert look_for_devices(chosen, (A, B), driver="") == " and ".join(sorted(ways))
    assert answer(FIFTH, MPS, prepare(chosen, NAME, POOL, MPS)).cdi_devices == ()


def test_with_nvidias_device_a_container_has_its_share_or_no_gpu_whatever_its_image_says(
    ways: frozenset[Handover], tmp_path: Path, host_dev: Path
) -> None:
    chosen = with_nvidia(tmp_path, ways, A, B)
    look_for_devices(chosen, (A, B), driver="")
    told = answer(FIFTH, MPS, prepare(chosen, NAME, POOL, MPS, dev=host_dev))
    held = limits(FIFTH, MPS).environment.items() - {("NVIDIA_VISIBLE_DEVICES", A.uuid)}
    for runtime_knows_cdi in (True, False):
        container = started(told, tmp_path / "cdi", runtime_knows_cdi=runtime_knows_cdi)
        by_device = runtime_knows_cdi and "cdi" in ways
        assert container.environment["NVIDIA_VISIBLE_DEVICES"] in ({"void"} if by_device else {A.uuid, "void"})
        if by_device or told.device_nodes or container.environment["NVIDIA_VISIBLE_DEVICES"] != "void":
            assert container.environment.items() >= held
            assert container.lies_at("/dev/shm") == "/tmp/nvidia-mps/shm"
