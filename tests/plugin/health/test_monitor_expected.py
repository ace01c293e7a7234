"""GPUs that an earlier plugin knew, and that NVML did not find when this one began: it finds none later by itself."""

from collections.abc import Collection
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from plugin.gpus.gpu import Gpu
from plugin.gpus.reading import Check, NotShareableError, any_gpu
from plugin.health.monitor import Monitor, Periods
from plugin.health.reports import Probe, Report
from plugin.simulated.gpus import SimulatedNode
from tests.plugin.health.simulated_time import FIRST, GPUS, SECOND, CountedNvml, SimulatedTime, pci_device

BACK_SECONDS = 605.0
END_SECONDS = 1200.0


class NvmlOfItsStart(CountedNvml):
    """Lists what it found when it was started: the second GPU, if that is back by then."""

    def nvmlInit(self) -> None:  # noqa: N802
        super().nvmlInit()
        self._found = 1 + (self._clock() >= BACK_SECONDS)

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        return min(self._found, super().nvmlDeviceGetCount())

    def nvmlDeviceGetPciInfo(self, handle: Gpu, /) -> Any:  # noqa: N802
        return SimpleNamespace(busId=f"00000000:0{handle.index + 1}:00.0")


class NvmlOfNoNames(NvmlOfItsStart):
    """Lists GPUs that cannot be read."""

    def nvmlDeviceGetName(self, handle: Gpu, /) -> str:  # noqa: N802
        del handle
        raise UnicodeDecodeError("utf-8", b"\xff", 0, 1, "no name")


class NvmlOfMigWithoutNames(NvmlOfNoNames):
    """Lists GPUs that cannot be read, with a MIG instance each."""

    def nvmlDeviceGetMigMode(self, handle: Gpu, /) -> list[int]:  # noqa: N802
        del handle
        return [1, 1]

    def nvmlDeviceGetMigDeviceHandleByIndex(self, handle: Gpu, index: int, /) -> Gpu:  # noqa: N802
        del handle, index
        raise UnicodeDecodeError("utf-8", b"\xff", 0, 1, "no UUID")


def watched(
    sysfs: Path, *, expected: Collection[str], check: Check = any_gpu, of: type[NvmlOfItsStart] = NvmlOfItsStart
) -> tuple[int, list[Probe]]:
    """Watch a node with two GPUs on its bus, and count the starts of NVML."""
    time = SimulatedTime(END_SECONDS)
    nvml, reports = of(SimulatedNode(gpus=GPUS), time), list[Report]()
    periods = Periods(clock=lambda: time.seconds)
    Monitor(nvml, reports.append, periods=periods, sysfs=sysfs, check=check, expected=expected, ended=time).run()
    return nvml.calls["init"], [report for report in reports if isinstance(report, Probe)]


@pytest.mark.parametrize("expected", [{FIRST, SECOND}, {SECOND}])
def test_nvml_is_started_anew_until_it_finds_a_gpu_that_was_here_before(tmp_path: Path, expected: set[str]) -> None:
    for number in (1, 2):
        pci_device(tmp_path, f"0000:0{number}:00.0")
    starts, probes = watched(tmp_path, expected=expected)
    assert BACK_SECONDS / 20 <= starts <= BACK_SECONDS / 10 + 2
    found = next(probe for probe in probes if SECOND in probe.looks)
    assert found.seconds <= BACK_SECONDS + 15
    assert found.generation == probes[-1].generation == starts


@pytest.mark.parametrize("second", ["taken out", "fallen off the bus", "of another driver"])
def test_nvml_is_left_alone_where_the_bus_says_that_it_cannot_find_it(tmp_path: Path, second: str) -> None:
    pci_device(tmp_path, "0000:01:00.0")
    if second != "taken out":
        device = pci_device(tmp_path, "0000:02:00.0", driver="vfio-pci" if second == "of another driver" else "nvidia")
        (device / "config").write_bytes(b"\xde\x10" if second == "of another driver" else b"\xff\xff")
    assert watched(tmp_path, expected={SECOND})[0] == 1


def test_one_that_nvml_lists_and_that_cannot_be_shared_is_not_taken_for_the_one_that_was_taken_out(
    tmp_path: Path,
) -> None:
    def check(_: Gpu) -> None:
        raise NotShareableError("too many vGPUs")

    pci_device(tmp_path, "0000:01:00.0")
    assert watched(tmp_path, expected={SECOND}, check=check)[0] == 1
    assert watched(tmp_path, expected=())[0] == 1


@pytest.mark.parametrize("of", [NvmlOfNoNames, NvmlOfMigWithoutNames])
def test_nor_is_one_that_cannot_be_read(tmp_path: Path, of: type[NvmlOfItsStart]) -> None:
    pci_device(tmp_path, "0000:01:00.0")
    starts, probes = watched(tmp_path, expected={SECOND}, of=of)
    assert (starts, probes[-1].gpus) == (1, ())
