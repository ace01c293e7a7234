"""Which programs a daemon may be waiting for: those of MPS itself, and none that only look like them."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from plugin.mps.daemon import Daemon
from plugin.mps.seen import Answered, NoAnswer
from plugin.mps.silent_callers import SilentCallers
from tests.plugin.mps.conftest import UUID
from tests.plugin.mps.isolated import needs_mounts
from tests.plugin.mps.silent import SILENT, waits
from tests.plugin.mps.supervised import said


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
    with subprocess.Popen([*before, program, pipes / UUID / "control"], stdout=subprocess.PIPE) as process:
        yield process
        process.kill()


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
    with silent_program(root, pipes, name) as program:
        waits(daemon)
        for _ in range(2):
            callers.hang_up(daemon.pids)
        assert isinstance(daemon.look(), NoAnswer)
        assert program.poll() is None
        assert (callers.kept_seconds > 1) is keeps
        told = said(caplog, "a command of MPS that somebody has open keeps its daemon from all others")
        assert [(line["pid"], line["user"]) for line in told] == [(program.pid, os.getuid())] * keeps


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
        program = with_pid(caller, [str(named), "60"])
        for _ in range(2):
            callers.hang_up(daemon.pids)
        program.kill()
        program.wait()
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
    with silent_program(root, pipes, name, *before) as other:
        waits(daemon)
        for _ in range(2):
            callers.hang_up(daemon.pids)
        assert other.stdout is not None
        assert other.stdout.readline() == b"b''\n"
