"""What a container is told and given where NVIDIA's toolkit has made a CDI device of its GPU."""

import json
from pathlib import Path

import pytest

from plugin.gpus.gpu import Gpu
from plugin.shares.handover import Answer, HandoverSettings, answer, handover_settings, look_for_devices
from plugin.shares.limits import limits
from plugin.shares.strategy import TimeSlicing
from policies.contract import Handover
from tests.plugin.shares.two_gpus import BOTH, EVERY_SET, FIFTH, MPS, NAME, POOL, THEIRS, TOLD, A, B, prepare, started


def with_nvidia(directory: Path, ways: frozenset[Handover], *gpus: Gpu) -> HandoverSettings:
    """Settings of a node where NVIDIA's toolkit has made a device of each of *gpus*."""
    static = directory / "etc-cdi"
    static.mkdir()
    devices = [{"name": gpu.uuid, "containerEdits": THEIRS[f"nvidia.com/gpu={gpu.uuid}"]} for gpu in gpus]
    text = json.dumps({"cdiVersion": "0.5.0", "kind": "nvidia.com/gpu", "devices": devices})
    (static / "nvidia.json").write_text(text)
    return handover_settings(ways, cdi_dir=directory / "cdi", static_dir=static)


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


def test_a_gpu_that_is_missing_makes_no_variable_needed_and_has_its_device_where_there_is_one(tmp_path: Path) -> None:
    chosen = with_nvidia(tmp_path, frozenset({"cdi"}), A)
    for missing, needed, there in (
        ({B.uuid}, False, "of each GPU"),
        ((), True, "for 1 of 2 GPUs"),
        ({A.uuid}, True, ""),
    ):
        assert there in look_for_devices(chosen, (A, B), driver="", missing=missing)
        assert (chosen.needs_variable, [*chosen.nvidia.names]) == (needed, [A.uuid])


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
