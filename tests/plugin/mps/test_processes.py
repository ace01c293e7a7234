import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from plugin.mps.processes import Holder, holder, holders, reap, runs, send, watched
from tests.plugin.waiting import wait_until
from tests.programs import ended

DAEMON = ["nvidia-cuda-mps-control", "-d"]
SERVER = ["nvidia-cuda-mps-server"]
PIPE = "CUDA_MPS_PIPE_DIRECTORY=/p/GPU-a"

Start = Callable[..., subprocess.Popen[bytes]]


def process(
    proc: Path,
    *,
    pid: int = 42,
    name: str = "nvidia-cuda-mps",
    pids: str = "42",
    arguments: list[str] = DAEMON,
    variables: str = PIPE,
) -> None:
    directory = proc / str(pid)
    directory.mkdir()
    (directory / "comm").write_text(name + "\n")
    (directory / "status").write_text(f"Name:\tx\nNSpid:\t{pids}\nVmRSS:\t1 kB\n")
    (directory / "cmdline").write_text("".join(argument + "\0" for argument in arguments))
    (directory / "environ").write_text(f"PATH=/bin\0{variables}\0")


@pytest.mark.parametrize(
    ("arguments", "role"),
    [
        (DAEMON, "daemon"),
        (["/usr/bin/nvidia-cuda-mps-control", "-f"], "daemon"),
        (["nvidia-cuda-mps-control", "-d", "-M"], "daemon"),
        (SERVER, "server"),
        (["/usr/bin/nvidia-cuda-mps-server", "-d"], "server"),
    ],
)
def test_a_daemon_and_its_servers_are_told_apart(tmp_path: Path, arguments: list[str], role: str) -> None:
    process(tmp_path, arguments=arguments)
    (found,) = holders(tmp_path)
    assert (found.pid, found.role, found.directory) == (42, role, "/p/GPU-a")


@pytest.mark.parametrize(
    ("name", "arguments", "variables"),
    [
        ("python", DAEMON, PIPE),  # a tenant has the variable as well
        ("nvidia-cuda-mp", DAEMON, PIPE),
        ("nvidia-cuda-mps", ["nvidia-cuda-mps-control"], PIPE),  # somebody's command
        ("nvidia-cuda-mps", DAEMON, "CUDA_MPS_LOG_DIRECTORY=/p/GPU-a"),
        ("nvidia-cuda-mps", [], ""),  # dead, not reaped
    ],
)
def test_other_processes_hold_nothing(tmp_path: Path, name: str, arguments: list[str], variables: str) -> None:
    process(tmp_path, name=name, arguments=arguments, variables=variables)
    (tmp_path / "self").mkdir()
    (tmp_path / "43").mkdir()  # gone while it is looked at
    assert list(holders(tmp_path)) == []


INTERPRETED = ["python3", "/opt/nvidia-cuda-mps-control", "-d"]
LOGS = f"{PIPE}\0CUDA_MPS_LOG_DIRECTORY=/logs/GPU-a"


@pytest.mark.parametrize(
    ("arguments", "role"),
    [
        (INTERPRETED, "daemon"),
        (["python3", "/opt/nvidia-cuda-mps-server"], "server"),
        (["python3", "-c", "what a daemon became"], "daemon"),
        (INTERPRETED[:2], None),  # a command of ours has the same variables
    ],
)
def test_what_an_interpreter_runs_is_known_by_the_log_directory(
    tmp_path: Path, arguments: list[str], role: str | None
) -> None:
    process(tmp_path, name="python3", arguments=arguments, variables=LOGS)
    assert [one.role for one in holders(tmp_path, logs="/logs/GPU-a")] == ([role] if role else [])
    assert list(holders(tmp_path, logs="/logs/GPU-b")) == []
    assert list(holders(tmp_path)) == []


def test_a_tenant_that_knows_the_log_directory_is_in_its_container_all_the_same(tmp_path: Path) -> None:
    process(tmp_path, name="python3", arguments=INTERPRETED, variables=LOGS, pids="42\t7")
    assert list(holders(tmp_path, logs="/logs/GPU-a")) == []


def test_a_process_in_a_container_holds_nothing_however_it_calls_itself(tmp_path: Path) -> None:
    process(tmp_path, pids="42\t7")
    assert list(holders(tmp_path)) == []


@pytest.fixture
def start(root: Path) -> Iterator[Start]:
    program = root / "nvidia-cuda-mps-control"
    program.write_text(f"#!{sys.executable} -ISs\nimport signal\nsignal.pause()\n")
    program.chmod(0o755)
    with ExitStack() as stack:

        def start(*flags: str) -> subprocess.Popen[bytes]:
            started = subprocess.Popen([program, *flags], env={"CUDA_MPS_PIPE_DIRECTORY": str(root)})
            stack.callback(started.wait)
            stack.callback(started.kill)
            wait_until(lambda: Path(f"/proc/{started.pid}/comm").read_text() == "nvidia-cuda-mps\n")
            return started

        yield start


def test_a_signal_reaches_the_holder_and_nobody_else(start: Start, root: Path) -> None:
    daemon, command = start("-d"), start()
    found = holder(daemon.pid)
    assert found == Holder(daemon.pid, "daemon", str(root), "")
    send(Holder(command.pid, "daemon", str(root), ""), signal.SIGTERM)
    send(Holder(daemon.pid, "daemon", "/elsewhere", ""), signal.SIGTERM)
    for spared in (daemon, command):
        with pytest.raises(subprocess.TimeoutExpired):
            spared.wait(0.1)
    send(found, signal.SIGTERM)
    assert daemon.wait() == -signal.SIGTERM


def test_a_dead_daemon_is_no_holder_before_it_is_reaped(start: Start) -> None:
    daemon = start("-d")
    daemon.kill()
    os.waitid(os.P_PID, daemon.pid, os.WEXITED | os.WNOWAIT)
    assert holder(daemon.pid) is None
    reap(daemon.pid)
    assert not Path(f"/proc/{daemon.pid}").exists()
    reap(daemon.pid)
    reap(1)
    send(Holder(daemon.pid, "daemon", "/p", ""), signal.SIGTERM)


def test_the_end_of_a_process_is_noticed_once_and_that_of_a_zombie_never() -> None:
    waiting = [sys.executable, "-ISc", "import signal; signal.pause()"]
    zombie, living = (subprocess.Popen(waiting) for _ in range(2))
    try:
        zombie.kill()
        os.waitid(os.P_PID, zombie.pid, os.WEXITED | os.WNOWAIT)
        with watched([zombie.pid, living.pid, 0, 1 << 40]) as has_ended:
            assert not has_ended()
            living.kill()
            os.waitid(os.P_PID, living.pid, os.WEXITED | os.WNOWAIT)
            assert has_ended()
        with watched([zombie.pid, living.pid]) as has_ended:
            assert not has_ended()
    finally:
        for one in (zombie, living):
            one.kill()
            one.wait()


def test_a_process_runs_until_it_ends_whatever_the_number_of_the_file_that_says_so() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(2048, hard), hard))
    with ExitStack() as opened:
        opened.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        while (file := os.open("/dev/null", os.O_RDONLY)) < 1100:
            opened.callback(os.close, file)
        opened.callback(os.close, file)
        with ended(subprocess.Popen(["sleep", "60"])) as process:  # noqa: S607
            assert runs(process.pid)
            process.kill()
            wait_until(lambda: not runs(process.pid))
    assert not runs(1 << 40)
