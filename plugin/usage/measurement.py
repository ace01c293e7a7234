"""The thread of `gpu-share mps` that measures what containers take of the GPUs, and writes it down."""

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from plugin.gpus.nvml import NvmlProcesses, explained, initialised
from plugin.state_files import boot_seconds
from plugin.usage.cgroups import ContainerId, container_of
from plugin.usage.containers import Container, Containers, containers
from plugin.usage.nvml_processes import OnGpu, ProcessUse, read_processes
from plugin.usage.outsiders import Holders, OnOneGpu, Outsiders
from plugin.usage.record import ContainerUse, GpuUse, NodeUse, write_use
from plugin.usage.sums import of_container
from program.log import WarnOnce

_log = logging.getLogger(__name__)

ContainerOf = Callable[[int], ContainerId | None]  # raises OSError as `container_of` does


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What is asked beside NVML."""

    logs: Path  # directory of the links to the logs of all containers, whose names say which is which
    proc: Path = Path("/proc")
    holders: Callable[[], Holders | None] = lambda: None  # of shares, as the kubelet said it last; None if unknown
    is_ours: Callable[[int], bool] = lambda _pid: False  # whether a process in no container is MPS' or the driver's


class Measurement:
    """Measures once for each call; one that hangs in the driver is the only one that does."""

    def __init__(
        self,
        state_dir: Path,
        load: Callable[[], NvmlProcesses],
        *,
        boot_id: str,
        around: Surroundings,
    ) -> None:
        self._state_dir = state_dir
        self._load = load
        self._boot_id = boot_id
        self._around = around
        self._outsiders = Outsiders()
        self._warn = WarnOnce(_log)

    def measure(self) -> None:
        """Ask NVML, find out whose the processes are, and write it down; what fails is logged, and nothing written."""
        nvml, holders = self._load(), self._around.holders()  # who holds what is from before
        try:
            with initialised(nvml):
                on_gpus = read_processes(nvml, now_seconds=time.time())
        except nvml.NVMLError as error:
            self._warn("what containers take of the GPUs is not known", explained(error))
            return
        try:
            known = containers(self._around.logs)
        except OSError as error:
            self._warn("which container a process is in is not known", f"{self._around.logs}: {error.strerror}")
            known = Containers()
        gpus = {
            uuid: whose(found, self._container_of, known, is_ours=self._around.is_ours)
            for uuid, found in on_gpus.items()
        }
        use = NodeUse(boot_id=self._boot_id, measured_seconds=boot_seconds(), gpus=self._uses(gpus, holders))
        self._outsiders.seen(gpus, at_seconds=use.measured_seconds)
        try:
            write_use(self._state_dir, use)
        except OSError as error:
            reason = f"--state-dir {self._state_dir}: {error.strerror}"
            self._warn("what containers take of the GPUs cannot be written: nobody can see it", reason)

    def _uses(self, gpus: Mapping[str, OnOneGpu], holders: Holders | None) -> dict[str, GpuUse]:
        return {
            uuid: GpuUse(
                containers=_by_name(on_gpu),
                complete=on_gpu.complete,
                outsiders=self._outsiders.containers(uuid, gpus, holders),
                of_node=self._outsiders.of_node(uuid, on_gpu),
            )
            for uuid, on_gpu in gpus.items()
        }

    def _container_of(self, pid: int) -> ContainerId | None:
        return container_of(pid, self._around.proc)


def whose(on_gpu: OnGpu, container_of: ContainerOf, known: Containers, *, is_ours: Callable[[int], bool]) -> OnOneGpu:
    """Find out in which container each process on a GPU is; those of the node that are our own are left out."""
    by_container: dict[tuple[Container, ContainerId], list[ProcessUse]] = {}
    of_node: list[ProcessUse] = []
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
        if found is None:
            if not (process.only_draws or is_ours(process.pid)):
                of_node.append(process)
        elif (container := known.find(found)) is None:
            complete = False
        else:
            by_container.setdefault((container, found), []).append(process)
    return OnOneGpu(by_container, of_node, complete)


def _by_name(on_gpu: OnOneGpu) -> tuple[ContainerUse, ...]:
    """Add up by the names of containers: a pod that was deleted by force may have those of its successor."""
    by_name: dict[Container, list[ProcessUse]] = {}
    for (container, _), processes in on_gpu.by_container.items():
        by_name.setdefault(container, []).extend(processes)
    return tuple(of_container(container, processes) for container, processes in sorted(by_name.items()))
