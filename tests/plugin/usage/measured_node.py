"""GPUs of a fake NVML, processes, containers and who holds shares, as `gpu-share mps` sees them."""

import shutil
from collections.abc import Mapping
from itertools import count
from pathlib import Path
from typing import Any

import msgspec

from plugin.gpus.nvml import NvmlProcesses
from plugin.mps.holders import has_a_right, holders
from plugin.pod_resources.occupancy import GpuOccupancy, NodeOccupancy, Occupant, read_occupancy, write_occupancy
from plugin.state_files import boot_id, boot_seconds
from plugin.usage.measurement import Measurement, Surroundings
from plugin.usage.outsiders import Holders
from plugin.usage.record import GpuUse, read_use
from tests.plugin.health.published import occupied
from tests.plugin.mps.bench import A, B
from tests.plugin.nvml_library import bound
from tests.plugin.usage.links import UID


class Node:
    """A node."""

    def __init__(self, root: Path) -> None:
        self.nvml, self.proc, self.logs, self.state = (root / name for name in ("nvml", "proc", "containers", "state"))
        for directory in (self.nvml, self.proc, self.logs, self.state):
            directory.mkdir()
        (self.nvml / "gpus").write_text(f"{A}\n{B}\n")
        self.says("clients", A)
        self.says("clients", B)
        self._numbers = count(1)
        self._nvml: NvmlProcesses | None = None
        around = Surroundings(logs=self.logs, proc=self.proc, holders=self._holders, is_ours=self._is_ours)
        self._measurement = Measurement(self.state, self._load, boot_id=boot_id(), around=around)

    def says(self, what: str, uuid: str, *lines: str) -> None:
        (self.nvml / f"{what}-{uuid}").write_text("".join(f"{line}\n" for line in lines))

    def has(
        self, pod: str, *pids: int, container: str = "main", logged: bool = True, namespace: str = "team-a"
    ) -> None:
        """Let processes run in a container."""
        number = f"{next(self._numbers):064x}"
        if logged:
            (self.logs / f"{pod}_{namespace}_{container}-{number}.log").symlink_to("/nowhere")
        for pid in pids:
            (self.proc / str(pid)).mkdir()
            (self.proc / str(pid) / "cgroup").write_text(f"0::/kubepods/burstable/pod{UID}/{number}\n")

    def has_own(self, pid: int, program: str = "python3") -> None:
        """Let a process run in no container."""
        process = self.proc / str(pid)
        process.mkdir()
        (process / "cgroup").write_text("0::/system.slice/some.service\n")
        (process / "comm").write_text(f"{program[:15]}\n")
        (process / "status").write_text(f"Name:\t{program[:15]}\nNSpid:\t{pid}\n")
        (process / "cmdline").write_bytes(program.encode() + b"\0")

    def looks(self, *occupants: Occupant, gpus: Mapping[str, GpuOccupancy] | None = None, **said: Any) -> None:
        """Let the plugin ask the kubelet now, who says that *occupants* hold shares of the first GPU."""
        asked_seconds = boot_seconds()
        every = gpus or {A: occupied(*occupants, all_named=True), B: occupied(all_named=True)}
        now = NodeOccupancy(
            boot_id=boot_id(), asked_seconds=asked_seconds, looked_seconds=boot_seconds(), gpus=dict(every)
        )
        write_occupancy(self.state, msgspec.structs.replace(now, **said))

    def ends(self, pid: int) -> None:
        """Let a process end."""
        shutil.rmtree(self.proc / str(pid))

    def measured(self, library: Path) -> dict[str, GpuUse]:
        with bound(library) as nvml:
            self._nvml = nvml
            self._measurement.measure()
        written = read_use(self.state, boot_id=boot_id())
        return written.gpus if written else {}

    def _load(self) -> NvmlProcesses:
        assert self._nvml is not None
        return self._nvml

    def _holders(self) -> Holders | None:
        return holders(read_occupancy(self.state, boot_id=boot_id()), now_seconds=boot_seconds())

    def _is_ours(self, pid: int) -> bool:
        return has_a_right(pid, self.proc)
