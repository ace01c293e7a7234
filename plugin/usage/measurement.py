"""The thread of `gpu-share mps` that measures what containers take of the GPUs, and writes it down."""

import logging
import time
from collections.abc import Callable
from pathlib import Path

from plugin.gpus.nvml import NvmlProcesses, explained, initialised
from plugin.state_files import boot_seconds
from plugin.usage.cgroups import ContainerId, container_of
from plugin.usage.containers import Container, Containers, containers
from plugin.usage.nvml_processes import OnGpu, ProcessUse, read_processes
from plugin.usage.record import ContainerUse, GpuUse, NodeUse, write_use
from program.log import WarnOnce

_log = logging.getLogger(__name__)

ContainerOf = Callable[[int], ContainerId | None]  # raises OSError as `container_of` does


class Measurement:
    """Measures once for each call; one that hangs in the driver is the only one that does."""

    def __init__(
        self,
        state_dir: Path,
        load: Callable[[], NvmlProcesses],
        *,
        boot_id: str,
        logs: Path,
        proc: Path = Path("/proc"),
    ) -> None:
        self._state_dir = state_dir
        self._load = load
        self._boot_id = boot_id
        self._logs = logs
        self._proc = proc
        self._warn = WarnOnce(_log)

    def measure(self) -> None:
        """Ask NVML, find out whose the processes are, and write it down; what fails is logged, and nothing written."""
        nvml = self._load()
        try:
            with initialised(nvml):
                on_gpus = read_processes(nvml, now_seconds=time.time())
        except nvml.NVMLError as error:
            self._warn("what containers take of the GPUs is not known", explained(error))
            return
        try:
            known = containers(self._logs)
        except OSError as error:
            self._warn("which container a process is in is not known", f"{self._logs}: {error.strerror}")
            known = Containers()
        gpus = {uuid: use_of(found, self._container_of, known) for uuid, found in on_gpus.items()}
        try:
            write_use(self._state_dir, NodeUse(boot_id=self._boot_id, measured_seconds=boot_seconds(), gpus=gpus))
        except OSError as error:
            reason = f"--state-dir {self._state_dir}: {error.strerror}"
            self._warn("what containers take of the GPUs cannot be written: nobody can see it", reason)

    def _container_of(self, pid: int) -> ContainerId | None:
        return container_of(pid, self._proc)


def use_of(on_gpu: OnGpu, container_of: ContainerOf, known: Containers) -> GpuUse:
    """Add up by container what its processes take of one GPU."""
    by_container: dict[Container, list[ProcessUse]] = {}
    complete = on_gpu.lists_all
    for process in on_gpu.processes:
        if process.pid == 0:
            complete = False
            continue
        try:
            found = container_of(process.pid)
        except (FileNotFoundError, ProcessLookupError):  # it has ended, and takes nothing any more
            continue
        except OSError:
            complete = False
            continue
        if found is None:  # of the node itself
            continue
        if (container := known.find(found)) is None:
            complete = False
            continue
        by_container.setdefault(container, []).append(process)
    return GpuUse(
        containers=tuple(_added(container, ours) for container, ours in sorted(by_container.items())),
        complete=complete,
    )


def _added(container: Container, processes: list[ProcessUse]) -> ContainerUse:
    """Add up; a sum of which one part is not known is not known."""
    memory = [one.memory_bytes for one in processes if one.memory_bytes is not None]
    busy = [one.sm_ratio for one in processes if one.sm_ratio is not None]
    return ContainerUse(
        namespace=container.namespace,
        pod=container.pod,
        container=container.container,
        processes=len(processes),
        memory_bytes=sum(memory) if len(memory) == len(processes) else None,
        sm_ratio=min(1.0, round(sum(busy), 4)) if busy else None,
    )
