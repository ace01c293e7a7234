"""GPUs as NVML tells of them: what is read, what is done without, and what cannot be shared."""

from collections.abc import Callable
from math import inf
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from plugin.errors import DiscoveryError
from plugin.gpus.discovery import Discovered, discover, wait_for_gpus
from plugin.gpus.gpu import Gpu
from plugin.gpus.reading import NotShareableError
from tests.plugin.gpus.fake_nvml import (
    FakeError,
    FakeNvml,
    FunctionNotFound,
    NotSupported,
    fails_with,
    no_memory_of_its_own,
    without_v2,
)


def sysfs(directory: Path, **numa_nodes: str) -> Path:
    for bus_id, node in numa_nodes.items():
        device = directory / "bus/pci/devices" / f"0000:{bus_id}:00.0"
        device.mkdir(parents=True)
        (device / "numa_node").write_text(f"{node}\n")
    return directory


def test_every_gpu_is_read_and_nvml_is_shut_down(tmp_path: Path) -> None:
    nvml = FakeNvml()
    nvml.reserved_bytes = 300 << 20
    assert discover(nvml, sysfs=sysfs(tmp_path, **{"0b": "0", "1b": "1"})) == Discovered(
        gpus=(
            Gpu(
                uuid="GPU-0",
                index=0,
                minor=4,
                model="Model 0",
                memory_bytes=(1 << 30) - (300 << 20),
                numa_node=0,
                reserved_bytes=300 << 20,
                architecture="Hopper",
            ),
            Gpu(
                uuid="GPU-1",
                index=1,
                minor=5,
                model="Model 1",
                memory_bytes=(2 << 30) - (300 << 20),
                numa_node=1,
                reserved_bytes=300 << 20,
                architecture="Hopper",
            ),
        ),
        driver="580.95.05",
    )
    assert nvml.shutdowns == 1


@pytest.mark.parametrize(
    ("in_sysfs", "from_nvml", "node"),
    [
        ("1", 7, 1),  # the kernel's is the CPUs' node, NVML's may be the GPU's own
        ("-1", 7, 7),
        (None, 7, 7),
        ("-1", FunctionNotFound(13), None),
        (None, NotSupported(3), None),
        (None, -1, None),
        ("nonsense", FunctionNotFound(13), None),
    ],
)
def test_the_numa_node_is_the_kernels_then_nvmls_then_none(
    tmp_path: Path, in_sysfs: str | None, from_nvml: int | Exception, node: int | None
) -> None:
    ask = fails_with(from_nvml) if isinstance(from_nvml, Exception) else lambda _: from_nvml
    root = sysfs(tmp_path, **({"0b": in_sysfs} if in_sysfs else {}))
    assert discover(FakeNvml(nvmlDeviceGetNumaNodeId=ask), sysfs=root).gpus[0].numa_node == node


def test_a_pci_domain_beyond_four_digits_is_found(tmp_path: Path) -> None:
    device = tmp_path / "bus/pci/devices/10000:0b:00.0"
    device.mkdir(parents=True)
    (device / "numa_node").write_text("3\n")
    nvml = FakeNvml(nvmlDeviceGetPciInfo=lambda _: SimpleNamespace(busId="00010000:0B:00.0"))
    assert discover(nvml, sysfs=tmp_path).gpus[0].numa_node == 3


@pytest.mark.parametrize("error", [FunctionNotFound(13), NotSupported(3)])
def test_what_an_old_driver_lacks_is_done_without(tmp_path: Path, error: FakeError) -> None:
    optional = ["MigMode", "PciInfo", "NumaNodeId", "MinorNumber", "Name"]
    nvml = FakeNvml(
        nvmlSystemGetDriverVersion=fails_with(error),
        **{f"nvmlDeviceGet{name}": fails_with(error) for name in optional},
    )
    inventory = discover(nvml, sysfs=tmp_path)
    assert [gpu.numa_node for gpu in inventory.gpus] == [None, None]
    assert inventory.driver == ""


@pytest.mark.parametrize(
    ("replaced", "reason"),
    [
        ({"nvmlDeviceGetHandleByIndex": fails_with(FakeError(15), at=0, otherwise=1)}, "error 15"),
        ({"nvmlDeviceGetUUID": fails_with(FakeError(15), at=0, otherwise="GPU-1")}, "error 15"),
        ({"nvmlDeviceGetMigMode": lambda handle: [int(handle == 0), 0]}, "MIG mode"),
        (
            {"nvmlDeviceGetMemoryInfo": lambda handle, **_: SimpleNamespace(total=handle << 30, reserved=0)},
            "reports no memory",
        ),
        ({"nvmlDeviceGetMemoryInfo": no_memory_of_its_own}, "GPU-0 reports no memory"),
        ({"nvmlDeviceGetUUID": lambda handle: "GPU-1" if handle else ""}, "cannot be part of a device ID"),
        ({"nvmlDeviceGetName": lambda handle: "fine" if handle else b"\xff"}, "decode"),
    ],
)
def test_one_gpu_that_cannot_be_shared_does_not_take_down_the_others(
    tmp_path: Path, replaced: dict[str, Callable[..., Any]], reason: str
) -> None:
    inventory = discover(FakeNvml(**replaced), sysfs=tmp_path)
    assert [gpu.uuid for gpu in inventory.gpus] == ["GPU-1"]
    (skipped,) = inventory.skipped
    assert skipped.startswith("GPU 0 of 2 cannot be shared: ")
    assert reason in skipped


@pytest.mark.parametrize(
    ("replaced", "sentence"),
    [
        ({"nvmlInit": fails_with(FakeError(9))}, "error 9: load the NVIDIA driver"),
        ({"nvmlInit": fails_with(FakeError(999))}, "error 999: see nvidia-smi"),
        ({"nvmlDeviceGetCount": fails_with(FakeError(18))}, "error 18: .*reboot the node"),
        ({"nvmlDeviceGetCount": lambda: 0}, "NVML sees no GPU"),
        ({"nvmlDeviceGetCount": lambda: 2**32 - 1}, "it tells of 4294967295 GPUs, where at most 256 can be: see"),
        ({"nvmlDeviceGetUUID": fails_with(FakeError(15))}, "GPU 0 of 2 .*error 15; GPU 1 of 2 .*error 15"),
    ],
)
def test_without_any_gpu_there_is_one_sentence_that_says_why(
    tmp_path: Path, replaced: dict[str, Callable[..., Any]], sentence: str
) -> None:
    with pytest.raises(DiscoveryError, match=sentence):
        discover(FakeNvml(**replaced), sysfs=tmp_path)


def test_waiting_for_gpus_says_why_once_and_again_when_the_reason_changes(caplog: pytest.LogCaptureFixture) -> None:
    found = Discovered(gpus=(), driver="580")
    outcomes: list[DiscoveryError | Discovered] = [*[DiscoveryError(text) for text in "aabba"], found]
    pauses: list[float] = []

    def read() -> Discovered:
        outcome = outcomes.pop(0)
        if isinstance(outcome, DiscoveryError):
            raise outcome
        return outcome

    told: list[str] = []

    def ended(seconds: float, why: str) -> bool:
        pauses.append(seconds)
        told.append(why)
        return False

    assert wait_for_gpus(read, wait_seconds=inf, ended=ended) is found
    assert [vars(record)["reason"] for record in caplog.records] == ["a", "b", "a"]
    assert told == list("aabba")
    assert min(pauses) >= 1


def test_waiting_for_gpus_ends_when_told_to() -> None:
    assert wait_for_gpus(fails_with(DiscoveryError("none")), wait_seconds=inf, ended=lambda *_: True) is None


@pytest.mark.parametrize("error", [FunctionNotFound(13), NotSupported(3), FakeError(25), FakeError(2)])
def test_where_the_driver_does_not_say_what_it_reserves_all_memory_is_counted(tmp_path: Path, error: Exception) -> None:
    found = discover(FakeNvml(nvmlDeviceGetMemoryInfo=without_v2(error)), sysfs=tmp_path)
    assert [(gpu.memory_bytes, gpu.reserved_bytes) for gpu in found.gpus] == [(1 << 30, None)] * 2


@pytest.mark.parametrize("reserved_bytes", [-1, 1 << 30, 1 << 40])
def test_a_driver_that_reserves_nonsense_is_not_believed(tmp_path: Path, reserved_bytes: int) -> None:
    nvml = FakeNvml()
    nvml.reserved_bytes = reserved_bytes
    assert discover(nvml, sysfs=tmp_path).gpus[0].memory_bytes == 1 << 30


def test_a_gpu_that_is_lost_between_the_two_questions_is_not_shared(tmp_path: Path) -> None:
    with pytest.raises(DiscoveryError, match="error 15"):
        discover(FakeNvml(nvmlDeviceGetMemoryInfo=without_v2(FakeError(15))), sysfs=tmp_path)


def test_a_gpu_that_cannot_be_shared_as_it_is_to_be_is_left_out_with_its_reason(tmp_path: Path) -> None:
    def check(gpu: Gpu) -> None:
        if gpu.index == 0:
            raise NotShareableError("it is too old")

    found = discover(FakeNvml(), sysfs=tmp_path, check=check)
    assert [gpu.index for gpu in found.gpus] == [1]
    assert found.skipped == ("GPU 0 of 2 cannot be shared: it is too old",)
