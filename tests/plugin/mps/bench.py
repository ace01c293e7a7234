"""A node with GPUs of a fake NVML, and `gpu-share mps` on it as a process of its own."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from plugin.gpus.gpu import VGpuId
from plugin.mps.state import MpsState, fault, read_state
from plugin.shares.parts_file import Held, parts, write_parts
from plugin.state_files import boot_id, boot_seconds, write_atomically
from tests.plugin.mps.isolated import ISOLATED, ROOT, mounted
from tests.plugin.mps.standin import StandIn
from tests.plugin.mps.tenants import RESOURCE
from tests.plugin.waiting import wait_until

A, B = (f"GPU-00000000-0000-0000-0000-00000000000{index}" for index in (0, 1))
ENDS_WITHIN_SECONDS = 20
QUICK_COMMAND = """
import sys
from pathlib import Path
from plugin.mps_process import run
from plugin.mps.settings import MpsSettings
from plugin.mps.timing import Timing
policies, state, tenants, control, strategy = sys.argv[1:6]
sys.exit(run(
    MpsSettings(policies=Path(policies), state_dir=Path(state), lib_dir=Path(state).parent,
                log_dir=Path(state).parent / "log",
                pod_resources=Path(tenants), strategy=strategy, container_logs=Path(state).parent / "containers",
                pod_name="unlisted" if "unlisted" in sys.argv else "gpu-share-plugin",
                node_name="here", control=control, multi_user="multi" in sys.argv, wait_for_gpus="wait" in sys.argv),
    timing=Timing(look=60.0 if "slow looks" in sys.argv else 0.1, answer=3.0, patience=3.0, settle=0.05, start=10.0,
                  quit=2.0, kill=1.0, end=5.0, ceilings=0.1, gpus=0.1, publish=0.05, heartbeat=0.2, use=0.1),
))
"""


@dataclass
class Bench:
    """The node, and the files of gpu-share on it."""

    root: Path
    pipes: Path
    standin: StandIn
    library: str
    policies: Path = field(init=False)
    nvml: Path = field(init=False)
    state_dir: Path = field(init=False)
    tenants: Path = field(init=False)  # the kubelet's socket

    def __post_init__(self) -> None:
        self.policies, self.nvml, self.state_dir = self.root / "policies", self.root / "nvml", self.root / "state"
        self.tenants = self.root / "kubelet"
        self.policies.mkdir()
        self.nvml.mkdir()
        self.has(A, B)
        self.cluster()

    def cluster(self, more: str = "") -> None:
        self.says("_cluster", f"mps: {{pipeDirectory: {self.pipes}}}\n{more}")

    def says(self, name: str, text: str) -> None:
        """Write a policy file at once: half of it would say something else."""
        write_atomically(self.policies / f"{name}.yaml", text.encode())

    def has(self, *uuids: str) -> None:
        write_atomically(self.nvml / "gpus", "".join(f"{uuid}\n" for uuid in uuids).encode())

    def holds(
        self,
        uuid: str,
        *,
        vgpus: int,
        named: bool = True,
        gpu: str | None = "",
        also: str = "",
        resource: str = RESOURCE,
    ) -> None:
        """
        Write what the plugin writes of vGPUs that a container has.

        *gpu* is where they are, None: nobody knows, and *also* where an init container of its pod had them.
        """
        one = Held(resource=resource, of=10, named=named, gpu=gpu, also=(also,) if also else ())
        self.state_dir.mkdir(exist_ok=True)
        content = parts([(VGpuId(uuid, index), one) for index in range(vgpus)], vgpus_per_gpu=10, boot_id=boot_id())
        write_parts(self.state_dir, content)

    def mode(self, uuid: str, new: int | None = None) -> int:
        path = self.nvml / f"mode-{uuid}"
        if new is not None:
            write_atomically(path, str(new).encode())
        return int(path.read_text()) if path.exists() else 0

    @property
    def logs(self) -> Path:
        """Where NVIDIA's programs write."""
        return self.root / "log"

    def state(self) -> MpsState:
        return read_state(self.state_dir) or MpsState(boot_id="", gpus={})

    def is_now(self, state: str, *uuids: str, why: str = "") -> None:
        def reached() -> bool:
            gpus = self.state().gpus
            return all(uuid in gpus and gpus[uuid].state == state and why in gpus[uuid].why for uuid in uuids)

        wait_until(reached, timeout_seconds=20)

    def faults(self, *uuids: str) -> list[str | None]:
        now = boot_seconds()
        return [fault(self.state(), uuid, now_seconds=now, boot_id=boot_id()) for uuid in uuids]


class Running:
    """A running `gpu-share mps`."""

    def __init__(self, bench: Bench, *arguments: str, before: tuple[str, ...] = ISOLATED) -> None:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("GPU_SHARE_")}
        self.process = subprocess.Popen(
            [*before, sys.executable, "-W", "error", *arguments],
            cwd=ROOT,
            env=environment | {"LD_LIBRARY_PATH": bench.library, "FAKE_MODES": str(bench.nvml)},
            stderr=subprocess.PIPE,
            text=True,
        )

    def ends(self, by: int = 0) -> tuple[int, list[dict[str, Any]], str]:
        """Send a signal, or none: the exit code, the log, and what else was written."""
        if by:
            self.process.send_signal(by)
        _, written = self.process.communicate(timeout=ENDS_WITHIN_SECONDS)
        lines = written.splitlines()
        return (
            self.process.returncode,
            [json.loads(line) for line in lines if line.startswith("{")],
            "\n".join(line for line in lines if not line.startswith("{")),
        )

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        if self.process.stderr:
            self.process.stderr.close()


Start = Callable[..., Running]


def ready_in_a_container(bench: Bench, start: Start) -> Path:
    """Run it with the pipe directory as a mount of its own, until both GPUs are ready; returns what is mounted."""
    on_node = bench.root / "n"
    on_node.mkdir(mode=0o755)
    start(before=mounted(on_node, bench.pipes))
    bench.is_now("ready", A, B)
    return on_node
