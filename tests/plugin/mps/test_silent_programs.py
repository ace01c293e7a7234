"""Which programs a daemon may be waiting for: those of MPS itself, and none that only look like them."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from plugin.gpus.gpu import Gpu
from plugin.mps.daemon import Daemon
from plugin.mps.daemon_supervisor import DaemonSupervisor, SupervisorContext
from plugin.mps.seen import Answered, NoAnswer
from plugin.mps.silent_callers import SilentCallers, call_of, free_of
from tests.plugin.mps.conftest import QUICK, UUID
from tests.plugin.mps.isolated import needs_mounts
from tests.plugin.mps.silent import SILENT, connected, waits
from tests.plugin.mps.standin import StandIn
from tests.plugin.mps.supervised import is_now, running, said
from tests.plugin.waiting import wait_until
from tests.programs import ended


@contextmanager
def silent_program(directory: Path, pipes: Path, name: str, *before: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a program of that name that connects, and says nothing."""
    program = directory / name
    program.write_text(
        f"#!{sys.executable}\nimport socket, sys\n"
        "connection = socket.socket(socket.AF_UNIX)\nconnection.connect(sys.argv[1])\n"
        "print(connection.recv(1), flush=True)\n"
    )
    program.chmod(0o755)
    command = [*before, str(program), str(pipes / UUID / "control")]
    with ended(subprocess.Popen(command, stdout=subprocess.PIPE)) as process:
        yield process


KEPT = "a command of MPS that somebody has open keeps its daemon from all others"
OTHERS = ["/bin/sh", "-c", '"$@" & echo $!; wait', "sh"]  # so that it is no child of ours


@pytest.mark.parametrize(("name", "keeps"), [("nvidia-cuda-mps-server", False), ("nvidia-cuda-mps-control", True)])
def test_a_server_or_a_command_of_mps_may_take_its_time_and_only_the_latter_is_no_fault_of_the_daemons(  # noqa: PLR0917
    daemon: Daemon,
    root: Path,
    pipes: Path,
    callers: SilentCallers,
    caplog: pytest.LogCaptureFixture,
    name: str,
    *,
    keeps: bool,
) -> None:
    def told() -> list[dict[str, object]]:
        callers.hang_up(daemon.pids)  # a machine that is busy holds a look up, which counts less then
        return said(caplog, KEPT)

    with silent_program(root, pipes, name, *OTHERS) as program, ExitStack() as stack:
        assert program.stdout is not None
        pid = int(program.stdout.readline())
        stack.callback(os.kill, pid, signal.SIGKILL)
        waits(daemon)
        told()
        if keeps:
            wait_until(lambda: bool(told()))
        assert isinstance(daemon.look(), NoAnswer)
        assert program.poll() is None
        assert [(line["pid"], line["user"]) for line in told()] == [(pid, os.getuid())] * keeps
        assert (callers.kept_seconds > 0) is keeps


def test_a_program_of_ours_is_not_said_to_be_somebodys(
    daemon: Daemon, root: Path, pipes: Path, callers: SilentCallers, caplog: pytest.LogCaptureFixture
) -> None:
    with silent_program(root, pipes, "nvidia-cuda-mps-control"):
        waits(daemon)
        callers.hang_up(daemon.pids)
        assert callers.kept_seconds > 0
    assert caplog.records == []


def test_a_daemon_is_freed_of_a_group_of_processes_that_it_waits_for_and_not_of_one_that_waits_for_it(
    daemon: Daemon, pipes: Path
) -> None:
    ours = os.getpgid(0)
    assert not free_of(daemon.pids, ours)
    with closing(connected(pipes)) as speaks:
        waits(daemon)
        assert not free_of(daemon.pids, 1)
        for pid in daemon.pids:
            os.kill(pid, signal.SIGSTOP)
            wait_until(lambda pid=pid: ") T " in Path(f"/proc/{pid}/stat").read_text())  # type: ignore[misc]
        assert all(map(call_of, daemon.pids))
        speaks.sendall(b"get_default_active_thread_percentage\n")
        assert not free_of(daemon.pids, ours)
        for pid in daemon.pids:
            os.kill(pid, signal.SIGCONT)
        assert speaks.recv(100) == b"100.0\n"
    with closing(connected(pipes)) as silent:
        waits(daemon)
        assert free_of(daemon.pids, ours)
        assert silent.recv(1) == b""
    assert not free_of([1 << 30], ours)  # it has ended


def test_a_program_of_ours_that_connects_and_says_nothing_is_ended_and_keeps_nobody_from_the_daemon(
    gpu: Gpu, root: Path, context: SupervisorContext, standin: StandIn, pipes: Path
) -> None:
    supervisor = DaemonSupervisor(gpu, replace(context, timing=replace(QUICK, answer=0.5, patience=600.0)))
    hangs = root / "hangs"
    with running(supervisor):
        is_now(supervisor, "ready")
        standin.begins_with(
            f"import socket, time\nif os.path.exists({str(hangs)!r}):\n"
            f"    silent = socket.socket(socket.AF_UNIX)\n    silent.connect({str(pipes / UUID / 'control')!r})\n"
            "    time.sleep(600)"
        )
        hangs.touch()
        is_now(supervisor, "failed", "cannot be run: it connects to the daemon, and says nothing")
        with closing(connected(pipes)) as client:
            client.sendall(b"get_default_active_thread_percentage\n")
            assert client.recv(100) == b"100.0\n"
        hangs.unlink()
        is_now(supervisor, "ready")
    assert len(standin.starts()) == 1


def with_pid(pid: int, command: list[str]) -> subprocess.Popen[bytes]:
    """Start a program as the next process after *pid* - 1, as often as it takes."""
    for _ in range(200):
        Path("/proc/sys/kernel/ns_last_pid").write_text(str(pid - 1))
        started = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        if started.pid == pid:
            return started
        started.kill()
        started.wait()
    pytest.skip("another process has the PID")


@needs_mounts
def test_a_program_of_mps_does_not_stand_for_a_caller_that_had_its_pid(
    daemon: Daemon, root: Path, pipes: Path, callers: SilentCallers, caplog: pytest.LogCaptureFixture
) -> None:
    with closing(socket.socket(socket.AF_UNIX)) as silent:
        if not (caller := os.fork()):
            silent.connect(str(pipes / UUID / "control"))
            os._exit(0)
        os.waitpid(caller, 0)
        waits(daemon)
        named = root / "nvidia-cuda-mps-server"
        named.symlink_to("/bin/sleep")

        def is_told() -> bool:
            callers.hang_up(daemon.pids)
            return bool(said(caplog, SILENT))

        with ended(with_pid(caller, [str(named), "60"])):
            wait_until(is_told)
        assert daemon.look() == Answered({})
    (warning,) = said(caplog, SILENT)
    assert warning["caller"] == "a process that has ended"


@pytest.mark.parametrize(
    ("name", "before"),
    [
        ("nvidia-cuda", []),
        pytest.param("nvidia-cuda-mps-server", ["/usr/bin/unshare", "--pid", "--fork"], marks=needs_mounts),
    ],
    ids=["another name", "a container"],
)
def test_no_other_program_may_whatever_a_container_calls_it(  # noqa: PLR0917 - all are fixtures
    daemon: Daemon, root: Path, pipes: Path, callers: SilentCallers, name: str, before: list[str]
) -> None:
    def has_ended() -> bool:
        callers.hang_up(daemon.pids)
        return other.poll() is not None

    with silent_program(root, pipes, name, *before) as other:
        waits(daemon)
        wait_until(has_ended)
        assert other.stdout is not None
        assert other.stdout.readline() == b"b''\n"
