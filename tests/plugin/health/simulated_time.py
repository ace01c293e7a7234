"""The watcher in time that passes only where somebody waits: an hour takes a moment."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from threading import Event as Signal
from typing import Any

from plugin.gpus.gpu import Gpu
from plugin.health.monitor import Monitor, Periods
from plugin.health.reports import Report
from plugin.simulated.faults import ScriptedFault
from plugin.simulated.gpus import SimulatedNode, simulated_gpus
from plugin.simulated.nvml import SimulatedNvml

GPUS = simulated_gpus("2xH200")
FIRST, SECOND = (gpu.uuid for gpu in GPUS)
HOUR = 3600.0
MANY = 20_000


class SimulatedTime(Signal):
    """Time that passes only where somebody waits, and ends."""

    def __init__(self, end_seconds: float) -> None:
        super().__init__()
        self.seconds = 0.0
        self._end_seconds = end_seconds

    def pass_by(self, seconds: float) -> None:
        self.seconds += seconds

    def wait(self, timeout: float | None = None) -> bool:
        assert timeout is not None
        self.pass_by(max(timeout, 0))
        return self.is_set()

    def is_set(self) -> bool:
        return super().is_set() or self.seconds >= self._end_seconds


class CountedNvml(SimulatedNvml):
    def __init__(self, node: SimulatedNode, time: SimulatedTime) -> None:
        super().__init__(node, clock=lambda: time.seconds, sleep=time.pass_by)
        self.calls: Counter[str] = Counter()

    def count(self, call: str) -> None:
        self.calls[call] += 1
        assert self.calls[call] < MANY, "time does not pass"

    def nvmlInit(self) -> None:  # noqa: N802
        self.count("init")
        super().nvmlInit()

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        self.count("probe")
        return super().nvmlDeviceGetCount()

    def nvmlEventSetCreate(self) -> dict[str, int]:  # noqa: N802
        self.count("create")
        return super().nvmlEventSetCreate()

    def nvmlEventSetFree(self, event_set: dict[str, int], /) -> None:  # noqa: N802
        self.count("free")
        super().nvmlEventSetFree(event_set)

    def nvmlEventSetWait_v2(self, event_set: Any, timeout_ms: int, /) -> Any:  # noqa: N802
        self.count("wait")
        return super().nvmlEventSetWait_v2(event_set, timeout_ms)


def watched(
    *faults: ScriptedFault,
    gpus: tuple[Gpu, ...] = GPUS,
    seconds: float = HOUR,
    sysfs: Path | None = None,
    wait: Callable[[], Any] | None = None,
    wait_costs_seconds: float = 0,
    at: Callable[[float], None] = lambda _: None,
) -> tuple[Counter[str], list[Report]]:
    """Watch for so long; *wait* is called, at a cost, to wait for events, and *at* hears of each report's time."""
    time = SimulatedTime(seconds)
    nvml = CountedNvml(SimulatedNode(gpus=gpus, faults=faults), time)
    reports: list[Report] = []

    def report(one: Report) -> None:
        reports.append(one)
        at(time.seconds)

    if wait:

        def counted(_events: object, _timeout_ms: int) -> Any:
            if wait_costs_seconds:
                nvml.calls["wait"] += 1
                time.pass_by(wait_costs_seconds)
            else:
                nvml.count("wait")
            return wait()

        nvml.nvmlEventSetWait_v2 = counted  # type: ignore[method-assign]
    Monitor(nvml, report, periods=Periods(clock=lambda: time.seconds), sysfs=sysfs, ended=time).run()
    return nvml.calls, reports


def pci_device(sysfs: Path, address: str, *, driver: str = "nvidia", vendor: str = "0x10de") -> Path:
    device = sysfs / "bus/pci/devices" / address
    device.mkdir(parents=True)
    (device / "vendor").write_text(f"{vendor}\n")
    (device / "class").write_text("0x030200\n")
    (device / "config").write_bytes(b"\xde\x10")
    (device / "driver").symlink_to(f"../../drivers/{driver}")
    return device
