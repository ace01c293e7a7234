"""Clients that connect to a daemon and say nothing: the daemon waits for them, and nobody else is served."""

import logging
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from plugin.mps.daemon import Daemon, Place
from plugin.mps.restart_policy import Answered, NoAnswer
from plugin.mps.silent_callers import SilentCallers, call_of
from tests.plugin.mps.bench import A, Bench, Start
from tests.plugin.mps.conftest import QUICK, UUID
from tests.plugin.mps.isolated import needs_mounts
from tests.plugin.mps.standin import alive
from tests.plugin.mps.supervised import said
from tests.plugin.waiting import wait_until

IMPATIENT = replace(QUICK, answer=0.3)
SILENT = "a client that said nothing kept the MPS daemon from all others: its connection was ended"
CONTAINER = "0" * 64


def connected(pipes: Path, gpu_uuid: str = UUID) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(str(pipes / gpu_uuid / "control"))
    connection.settimeout(10)
    return connection


@pytest.fixture
def daemon(place: Place) -> Daemon:
    daemon = Daemon(UUID, place, IMPATIENT)
    daemon.start()
    return daemon


@pytest.fixture
def callers(root: Path) -> SilentCallers:
    return SilentCallers(root / "containers")


def waits(daemon: Daemon) -> None:
    wait_until(lambda: all(call_of(pid) for pid in daemon.pids) and bool(daemon.pids))


def test_a_daemon_that_waits_for_a_silent_client_serves_others_once_its_connection_is_ended(
    daemon: Daemon, pipes: Path, callers: SilentCallers, caplog: pytest.LogCaptureFixture
) -> None:
    with closing(connected(pipes)) as silent:
        waits(daemon)
        assert isinstance(daemon.look(), NoAnswer)
        callers.hang_up(daemon.pids)
        assert isinstance(daemon.look(), NoAnswer)  # seen once, it may be about to speak
        callers.hang_up(daemon.pids)
        assert silent.recv(1) == b""
        assert daemon.look() == Answered({})
    (warning,) = said(caplog, SILENT)
    assert warning["reason"] == f"process {os.getpid()} of the node, user {os.getuid()}"


def test_those_that_queue_behind_a_silent_client_and_are_silent_too_cost_one_look(
    daemon: Daemon, pipes: Path, callers: SilentCallers
) -> None:
    with ExitStack() as stack:
        for _ in range(60):
            stack.enter_context(closing(connected(pipes)))
        waits(daemon)
        for _ in range(2):
            callers.hang_up(daemon.pids)
        assert daemon.look() == Answered({})


def test_a_client_that_speaks_late_is_heard_if_it_speaks_between_two_looks(
    daemon: Daemon, pipes: Path, callers: SilentCallers
) -> None:
    for _ in range(3):
        with closing(connected(pipes)) as late:
            waits(daemon)
            callers.hang_up(daemon.pids)
            late.sendall(b"get_default_active_thread_percentage\n")
            assert late.recv(100) == b"100.0\n"


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


def test_a_server_or_a_command_of_mps_may_take_its_time(
    daemon: Daemon, root: Path, pipes: Path, callers: SilentCallers
) -> None:
    with silent_program(root, pipes, "nvidia-cuda-mps-server") as server:
        waits(daemon)
        for _ in range(5):
            callers.hang_up(daemon.pids)
        assert isinstance(daemon.look(), NoAnswer)
        assert server.poll() is None


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


def test_a_process_that_waits_at_another_socket_is_left_alone(callers: SilentCallers) -> None:
    ours, other = socket.socketpair()
    with ours, other, subprocess.Popen(["/bin/cat"], stdin=other.fileno()) as process:
        wait_until(lambda: call_of(process.pid) is not None)
        for _ in range(3):
            callers.hang_up([process.pid])
        assert process.poll() is None
        assert ours.send(b"x") == 1
        process.kill()


def test_daemons_that_are_gone_are_no_trouble(
    daemon: Daemon, pipes: Path, callers: SilentCallers, caplog: pytest.LogCaptureFixture
) -> None:
    with closing(connected(pipes)):
        waits(daemon)
        callers.hang_up(daemon.pids)
        for pid in daemon.pids:
            os.kill(pid, signal.SIGKILL)
        callers.hang_up(daemon.pids)
        callers.hang_up([*daemon.pids, 1 << 22])
    assert caplog.records == []


@needs_mounts
def test_a_tenant_that_connects_and_says_nothing_costs_its_neighbours_no_daemon(bench: Bench, start: Start) -> None:
    start()
    bench.is_now("ready", A)
    before = {one.pid for one in alive(bench.pipes)}
    with ExitStack() as stack:
        for _ in range(20):
            stack.enter_context(closing(connected(bench.pipes, A)))
            time.sleep(0.2)
        bench.is_now("ready", A)
    assert {one.pid for one in alive(bench.pipes)} == before


@pytest.fixture(autouse=True)
def _log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
