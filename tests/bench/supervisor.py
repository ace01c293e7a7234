"""A running `gpu-share mps` over a small NVML and daemons of the tests' own."""

import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.plugin.mps.bench import Bench, Running
from tests.plugin.mps.standin import StandIn, kill_all

_SOURCE = Path(__file__).parents[1] / "plugin" / "mps" / "fake_modes.c"


@contextmanager
def supervised(gpu_uuids: Sequence[str]) -> Iterator[tuple[subprocess.Popen[str], Callable[[], int]]]:
    """Give the process once all daemons are ready, and a count of the commands that they were sent."""
    root = Path(tempfile.mkdtemp(prefix="gs-", dir="/tmp"))  # short, for sockets, and open to others
    root.chmod(0o755)
    compiler = shutil.which("gcc") or shutil.which("cc") or "cc"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", str(root / "libnvidia-ml.so.1"), str(_SOURCE)], check=True)
    (root / "p").mkdir(mode=0o755)
    bench = Bench(root, root / "p", StandIn(root / "bin"), str(root))
    bench.has(*gpu_uuids)
    options = {
        "policies": bench.policies,
        "state-dir": bench.state_dir,
        "log-dir": bench.logs,
        "control": bench.standin.program,
    }
    running = Running(bench, "-m", "gpu_share", "mps", *(f"--{name}={value}" for name, value in options.items()))
    try:
        bench.is_now("ready", *gpu_uuids)
        yield running.process, lambda: len(bench.standin.commands())
    finally:
        running.process.terminate()
        running.process.communicate()
        kill_all(root)
        shutil.rmtree(root, ignore_errors=True)
