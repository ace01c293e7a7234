"""What a container is told and given, by each of the ways to hand a GPU over, and by all of them together."""

from dataclasses import replace
from pathlib import Path

import pytest

from plugin.errors import HandoverError
from plugin.gpus.gpu import Pool
from plugin.shares.allocation import Allocation
from plugin.shares.cdi import grids_of
from plugin.shares.handover import BY_VARIABLE, Answer, Delivery, answer
from plugin.shares.handover import delivery as delivery_of
from plugin.shares.limits import limits
from plugin.shares.specifications import Specifications
from plugin.shares.strategy import Mps, Sharing, TimeSlicing, Whole
from policies.contract import Handover
from tests.plugin.shares.cdi_runtime import read_directory
from tests.plugin.shares.two_gpus import (
    BOTH,
    FIFTH,
    MPS,
    NAME,
    POOL,
    SIMULATED,
    TOLD,
    WAYS,
    A,
    B,
    prepare,
    settings,
    started,
)

NODES = ("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-modeset")


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


def test_what_is_mounted_is_what_gpu_share_mps_hands_out_as_it_says_by_now(
    ways: frozenset[Handover], tmp_path: Path, host_dev: Path
) -> None:
    says: list[Mps | None] = [None, Mps("/tmp/nvidia-mps", mount_sources="/run/gpu-share/pipes"), Mps("/old")]
    chosen = replace(settings(tmp_path, ways), mps=lambda: says[0])
    specifications = Specifications(chosen)
    specifications.advertise(NAME, grids_of(POOL, MPS))
    found = []
    while says:
        specifications.see({})
        told = answer(FIFTH, MPS, delivery_of(chosen, NAME, dev=host_dev))
        container = started(told, tmp_path / "cdi", runtime_knows_cdi=True)
        inside = ("/dev/shm", container.environment["CUDA_MPS_PIPE_DIRECTORY"])
        found.append(tuple(map(container.lies_at, inside)))
        del says[0]
    assert found == [
        ("/tmp/nvidia-mps/shm", f"/tmp/nvidia-mps/{A.uuid}"),
        ("/run/gpu-share/pipes/shm", f"/run/gpu-share/pipes/{A.uuid}"),
        ("/old/shm", f"/old/{A.uuid}"),
    ]


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
