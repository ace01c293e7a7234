"""
A real GPU under a real `gpu-share mps`, and CUDA programs that run on it as a container's would.

With `TESTS_KEEP_COMPUTE_MODE=1` in the environment the compute mode of the GPU stays as it is, for a machine that is
not the tests' alone. What only an exclusive GPU answers is not asked then.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plugin.gpus.gpu import Gpu
from plugin.mps.control import Control
from plugin.mps.state import fault, read_state
from plugin.shares.allocation import Allocation
from plugin.shares.limits import limits
from plugin.shares.strategy import Mps
from plugin.state_files import boot_id, boot_seconds
from policies.contract import CUDA_VISIBLE_DEVICES, MPS_PIPE_DIRECTORY
from tests.plugin.mps.tenants import kubelet
from tests.plugin.waiting import wait_until

ROOT = Path(__file__).parents[2]
CLIENT = Path(__file__).with_name("client.py")
VGPUS_PER_GPU = 10
KEEPS_MODE = bool(os.environ.get("TESTS_KEEP_COMPUTE_MODE"))
_KEPT_MODE = Path(__file__).with_name("kept_mode")
EVERYTHING_MIB = 1 << 30  # more than any GPU has
_START_SECONDS = 60.0
_CLIENT_SECONDS = 120.0

_TAKES = """
import fcntl, os, sys
try:
    taken = os.open(sys.argv[1], os.O_RDWR | os.O_NONBLOCK)
    fcntl.flock(taken, fcntl.LOCK_EX | fcntl.LOCK_NB)
    fcntl.lockf(taken, fcntl.LOCK_EX | fcntl.LOCK_NB)
except OSError:
    pass
print('{"running": true}', flush=True)
sys.stdin.read()
"""

Answer = dict[str, Any]


@dataclass(frozen=True)
class Node:
    """A GPU whose MPS daemon runs below *directory*, in the mount namespace of *supervisor*."""

    gpu: Gpu
    directory: Path
    supervisor: subprocess.Popen[bytes]

    @property
    def pipe_directory(self) -> str:
        return str(self.directory / "mps")

    def fault(self) -> str | None:
        """Say what the plugin would say of the daemon now."""
        state = read_state(self.directory / "state")
        return fault(state, self.gpu.uuid, now_seconds=boot_seconds(), boot_id=boot_id())

    @property
    def pipes(self) -> str:
        """Name the directory of the GPU's daemon."""
        return f"{self.pipe_directory}/{self.gpu.uuid}"

    def control(self, *, timeout_seconds: float = _CLIENT_SECONDS) -> Control:
        """Speak with the GPU's daemon."""
        environment = {
            CUDA_VISIBLE_DEVICES: self.gpu.uuid,
            MPS_PIPE_DIRECTORY: self.pipes,
        }
        return Control(
            "nvidia-cuda-mps-control", environment, timeout_seconds=timeout_seconds, patience_seconds=_CLIENT_SECONDS
        )

    def environment(self, vgpus: int) -> dict[str, str]:
        """Give what a container with that many of ten vGPUs, or of those of an instance, gets from Allocate."""
        allocation = Allocation(gpus=(self.gpu,), vgpus=vgpus, vgpus_per_gpu=vgpus_of(self.gpu))
        return limits(allocation, Mps(self.pipe_directory)).environment

    def start(
        self, *arguments: str, environment: Mapping[str, str], user: int = 0, apart: Sequence[str] = ()
    ) -> subprocess.Popen[bytes]:
        """
        Start a CUDA program that shares the supervisor's mounts; *apart* are namespaces of its own, for unshare.

        In a mount namespace of its own it has a /dev/shm of its own.
        """
        # What NVIDIA's container runtime makes of NVIDIA_VISIBLE_DEVICES, where no container is.
        own = {
            "PATH": os.environ["PATH"],
            "LD_LIBRARY_PATH": os.environ.get("LD_LIBRARY_PATH", ""),
            "CUDA_VISIBLE_DEVICES": self.gpu.uuid,
            **environment,
        }
        enter = ["nsenter", "--mount", "--target", str(_mounts_of(self.supervisor))]
        leave = ["unshare", *apart] if apart else []
        become = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"] if user else []
        shadow = ["sh", "-c", 'mount -t tmpfs none /dev/shm && exec "$@"', "sh"] if "--mount" in apart else []
        command = [*enter, *leave, *shadow, *become, sys.executable, str(CLIENT), *arguments]
        return subprocess.Popen(command, env=own, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def command_as(self, user: int, command: str) -> str:
        """Send a command to the daemon as another user does, and give the answer."""
        environment = {"PATH": os.environ["PATH"], MPS_PIPE_DIRECTORY: f"{self.pipe_directory}/{self.gpu.uuid}"}
        become = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"]
        entered = ["nsenter", "--mount", "--target", str(_mounts_of(self.supervisor)), *become]
        program = [*entered, "nvidia-cuda-mps-control"]
        sent = subprocess.run(
            program, check=False, env=environment, input=f"{command}\n", capture_output=True, text=True, timeout=30
        )
        return sent.stdout + sent.stderr

    @contextmanager
    def taken_by(self, user: int, name: str) -> Iterator[None]:
        """Have another user lock a file of the daemon's, or open a pipe of it at both ends, as far as he may."""
        path = Path(self.pipe_directory) / self.gpu.uuid / name
        become = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"]
        with subprocess.Popen(
            [*become, sys.executable, "-c", _TAKES, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as program:
            runs(program)
            yield
            program.kill()

    def ask(self, *arguments: str, environment: Mapping[str, str], user: int = 0, apart: Sequence[str] = ()) -> Answer:
        """Run a CUDA program to its end and give what it says."""
        client = self.start(*arguments, environment=environment, user=user, apart=apart)
        return said(client)


def vgpus_of(gpu: Gpu) -> int:
    """Count the vGPUs that a GPU is divided into here: MPS has fewer clients on a MIG instance."""
    return min(VGPUS_PER_GPU, gpu.mps_clients or VGPUS_PER_GPU)


def said(client: subprocess.Popen[bytes]) -> Answer:
    """Wait for the end of a program and give its last line."""
    try:
        out, _ = client.communicate(timeout=_CLIENT_SECONDS)
    finally:
        client.kill()
    lines = out.splitlines()
    assert lines, f"the program ended with {client.returncode} and said nothing"
    answer: Answer = json.loads(lines[-1])
    return answer


def runs(client: subprocess.Popen[bytes]) -> None:
    """Wait until a program that spins or holds has begun."""
    assert client.stdout is not None
    line = client.stdout.readline()
    assert json.loads(line or b"{}").get("running"), f"it did not begin, and said {line!r}"


@contextmanager
def running(gpu: Gpu, directory: Path, *more: str, policy: str = "") -> Iterator[Node]:
    """Run `gpu-share mps` for *gpu* in a mount namespace of its own until the end of the block."""
    policies = directory / "policies"
    policies.mkdir()
    (policies / "_cluster.yaml").write_text(
        f"mps: {{pipeDirectory: {directory / 'mps'}}}\nvgpusPerGpu: {VGPUS_PER_GPU}\n"
        f"nodes:\n- {{indexes: [{gpu.index}], offer: mps, mig: shared}}\n- {{offer: none}}\n"
        + (f"vgpusPerInstance: {{{gpu.profile}: {vgpus_of(gpu)}}}\n" if gpu.instance else "")
    )
    (policies / "_default.yaml").write_text(policy or "enabled: true\n")
    command = ["unshare", "--mount", sys.executable, "-m", "gpu_share", "mps", *more]
    command += [
        "--policies",
        str(policies),
        "--state-dir",
        str(directory / "state"),
        "--lib-dir",
        str(directory),
        "--log-dir",
        str(directory / "log-dir"),
    ]
    command += ["--pod-resources", str(directory / "kubelet.sock")]
    # Where nobody says who holds what, the daemon has to let a client take anything.
    with kubelet(directory / "kubelet.sock"), (directory / "log").open("wb") as log:
        supervisor = subprocess.Popen(command, cwd=ROOT, env=_environment(), stderr=log)
        node = Node(gpu=gpu, directory=directory, supervisor=supervisor)
        try:
            wait_until(lambda: supervisor.poll() is not None or node.fault() is None, timeout_seconds=_START_SECONDS)
            assert supervisor.poll() is None, (directory / "log").read_text()
            yield node
        finally:
            supervisor.terminate()
            supervisor.wait(_START_SECONDS)


def _environment() -> dict[str, str]:
    paths = [str(_KEPT_MODE)] if KEEPS_MODE else []
    return {**os.environ, "PYTHONPATH": ":".join([*paths, os.environ.get("PYTHONPATH", "")]).strip(":")}


def _mounts_of(supervisor: subprocess.Popen[bytes]) -> int:
    return supervisor.pid  # unshare without --fork becomes the program itself
