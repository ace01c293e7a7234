import logging
import os
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from plugin.gpus.gpu import Gpu
from plugin.gpus.numbers import GpuNumbers
from plugin.mps.compute_mode import ComputeModes
from plugin.mps.daemon import Daemon
from plugin.mps.daemon_supervisor import DaemonSupervisor, SupervisorContext
from plugin.mps.place import Place
from plugin.mps.silent_callers import SilentCallers
from plugin.mps.timing import Timing
from plugin.pod_resources.tenancy import Tenancy
from plugin.shares.division import Division
from plugin.shares.last_parts import LastParts
from tests.plugin.mps.bench import QUICK_COMMAND, Bench, Running, Start
from tests.plugin.mps.fake_modes import FakeModes
from tests.plugin.mps.isolated import ISOLATED
from tests.plugin.mps.standin import StandIn, kill_all
from tests.plugin.mps.tenants import kubelet

UUID = "GPU-00000000-0000-0000-0000-000000000000"
QUICK = Timing(
    look=0.05, settle=0.02, answer=5.0, patience=5.0, start=10.0, quit=5.0, kill=1.0, limits=60.0, publish=0.05
)


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def close_to_a_user(path: Path, kind: str = "access") -> None:
    """Give a file an ACL that keeps one user out, and lets all others in as the mode 755 does."""
    nobody = 0xFFFFFFFF
    entries = [(0x01, 7, nobody), (0x02, 0, 1000), (0x04, 5, nobody), (0x10, 5, nobody), (0x20, 5, nobody)]
    acl = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)  # setfacl -m u:1000:---
    try:
        os.setxattr(path, f"system.posix_acl_{kind}", acl)
    except OSError as error:
        pytest.skip(f"the file system has no ACLs: {error}")


@pytest.fixture
def root() -> Iterator[Path]:
    # pytest's own directories are too deep for a unix socket, and other users cannot enter them.
    path = Path(tempfile.mkdtemp(prefix="gs-", dir="/tmp"))
    path.chmod(0o755)
    yield path
    kill_all(path)
    shutil.rmtree(path)


@pytest.fixture
def pipes(root: Path) -> Path:
    path = root / "p"
    path.mkdir(mode=0o755)
    return path


@pytest.fixture
def idle(root: Path) -> Iterator[None]:
    """Have a kubelet that says that nobody holds anything."""
    with kubelet(root / "kubelet"):
        yield


@pytest.fixture
def standin(root: Path) -> StandIn:
    return StandIn(root / "bin")


@pytest.fixture
def gpu() -> Gpu:
    return Gpu(uuid=UUID, index=0, minor=0, model="NVIDIA H200", memory_bytes=143771 << 20, numa_node=0)


@pytest.fixture
def place(root: Path, pipes: Path, standin: StandIn) -> Place:
    return Place(
        pipe_directory=pipes,
        mount_sources=None,
        log_directory=root / "log",
        program=str(standin.program),
        multi_user=False,
    )


@pytest.fixture
def nvml() -> FakeModes:
    return FakeModes({UUID: 0})


@pytest.fixture
def context(root: Path, place: Place, nvml: FakeModes) -> SupervisorContext:
    return SupervisorContext(
        place=place,
        state_dir=root,
        boot_id="this boot",
        modes=ComputeModes(lambda: nvml, record=root / "compute-modes.json", boot_id="this boot"),
        tenancy=Tenancy(root / "no-kubelet", lambda: ["gpu-share.dev/vgpu"]),
        parts=LastParts(root),
        timing=QUICK,
        container_logs=root / "containers",
        device_of=lambda by, gpu: Division(by, node_name="node", number_of=GpuNumbers(None, ()).of).device(gpu),
    )


@pytest.fixture
def supervisor(gpu: Gpu, context: SupervisorContext, caplog: pytest.LogCaptureFixture) -> DaemonSupervisor:
    caplog.set_level(logging.INFO)
    return DaemonSupervisor(gpu, context)


COMPILER = shutil.which("gcc") or shutil.which("cc")


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> str:
    if COMPILER is None:
        pytest.skip("no C compiler: the NVML bindings have nothing to load")
    made = tmp_path_factory.mktemp("nvml") / "libnvidia-ml.so.1"
    source = Path(__file__).with_name("fake_modes.c")
    subprocess.run([COMPILER, "-Wall", "-Werror", "-shared", "-fPIC", "-o", str(made), str(source)], check=True)
    return str(made.parent)


@pytest.fixture
def bench(root: Path, pipes: Path, standin: StandIn, library: str) -> Bench:
    return Bench(root, pipes, standin, library)


@pytest.fixture
def daemon(place: Place) -> Iterator[Daemon]:
    """Give one that runs, and is asked with little patience."""
    daemon = Daemon(UUID, place, replace(QUICK, answer=0.3))
    daemon.start()
    yield daemon
    daemon.control.give_up()


@pytest.fixture
def callers(root: Path) -> SilentCallers:
    return SilentCallers(root / "containers")


@pytest.fixture
def start(bench: Bench) -> Iterator[Start]:
    with ExitStack() as stack:

        def start(*flags: str, strategy: str = "mps", before: tuple[str, ...] = ISOLATED) -> Running:
            where = (bench.policies, bench.state_dir, bench.tenants, bench.standin.program)
            started = Running(bench, "-c", QUICK_COMMAND, *map(str, where), strategy, *flags, before=before)
            stack.callback(started.close)
            return started

        yield start
