"""
What NVML tells of the processes on a GPU.

Under MPS it lists the clients with their memory, as compute processes or in a list of their own, and the server; older
documents say that the server stands for all. So both lists are read, and a process in both counts once. How long each
process kept the GPU busy is told where the driver samples it; a sample that is older than the last look says nothing.
Of clients it says nothing either where the server has one: that has the time of all (docs/decisions/0032).
"""

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from plugin.gpus.nvml import NvmlProcesses, count_of, raise_if_nvml_failed, text_of
from plugin.usage.record import MEASURE_SECONDS

_MOST_PERCENT: Final = 100
_MICROSECONDS: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class ProcessUse:
    """What one process takes of a GPU; None where NVML does not tell."""

    pid: int  # 0 if it is in a PID namespace that cannot be seen from here
    memory_bytes: int | None
    sm_ratio: float | None
    only_draws: bool = False  # a display server, for instance


@dataclass(frozen=True, slots=True)
class OnGpu:
    """The processes on one GPU."""

    processes: tuple[ProcessUse, ...]
    lists_all: bool  # clients of MPS, too: who is not listed takes nothing


def read_processes(nvml: NvmlProcesses, *, now_seconds: float) -> dict[str, OnGpu]:
    """
    List the processes on each GPU that answers, by its UUID; *now_seconds* is the time of the clock.

    Raises:
        nvml.NVMLError: If NVML as a whole fails.
    """
    found: dict[str, OnGpu] = {}
    for index in range(count_of(nvml)):
        try:
            handle = nvml.nvmlDeviceGetHandleByIndex(index)
            found[text_of(nvml.nvmlDeviceGetUUID(handle))] = _on_gpu(nvml, handle, now_seconds)
        except (nvml.NVMLError, UnicodeDecodeError) as error:  # the latter by a UUID that is no text
            raise_if_nvml_failed(error)
    return found


def _on_gpu(nvml: NvmlProcesses, handle: Any, now_seconds: float) -> OnGpu:
    computing = nvml.nvmlDeviceGetComputeRunningProcesses_v3(handle)  # without it nothing is known of the GPU
    clients = _if_told(nvml, lambda: nvml.nvmlDeviceGetMPSComputeRunningProcesses_v3(handle))
    drawing = _if_told(nvml, lambda: nvml.nvmlDeviceGetGraphicsRunningProcesses_v3(handle))
    memory: dict[int, int | None] = {}
    for one in (*computing, *(clients or ()), *(drawing or ())):
        known = memory.get(one.pid)
        memory[one.pid] = one.usedGpuMemory if known is None else max(known, one.usedGpuMemory or 0)
    busy = _busy(nvml, handle, now_seconds)
    served = {one.pid for one in clients or ()}
    if not busy.keys() <= served:
        busy = {pid: ratio for pid, ratio in busy.items() if pid not in served}
    computes = {one.pid for one in computing} | served
    processes = tuple(
        ProcessUse(pid, used, busy.get(pid), only_draws=pid not in computes) for pid, used in memory.items()
    )
    return OnGpu(processes, lists_all=clients is not None)


def _busy(nvml: NvmlProcesses, handle: Any, now_seconds: float) -> dict[int, float]:
    """Say which part of the time each process kept the GPU busy, by its PID, in its newest sample."""
    since = int((now_seconds - 1.5 * MEASURE_SECONDS) * _MICROSECONDS)
    until = int((now_seconds + MEASURE_SECONDS) * _MICROSECONDS)  # later ones are of before the clock was set back
    samples = _if_told(nvml, lambda: nvml.nvmlDeviceGetProcessUtilization(handle, since)) or ()
    # Values of other processes and times stand in the list as well: samples that the driver has kept.
    good = [one for one in samples if one.pid and since < one.timeStamp < until and one.smUtil <= _MOST_PERCENT]
    return {one.pid: one.smUtil / _MOST_PERCENT for one in sorted(good, key=lambda one: one.timeStamp)}


def _if_told(nvml: NvmlProcesses, call: Callable[[], Iterable[Any]]) -> list[Any] | None:
    """Ask for what not every driver tells; None if this one does not."""
    with suppress(nvml.NVMLError, AttributeError):  # bindings that are older than the call
        return [*call()]
    return None
