"""Clients that connect to a daemon and say nothing: the daemon waits for them, and nobody else is served."""

import logging
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from threading import Event, Thread

import pytest

from plugin.gpus.gpu import Gpu
from plugin.mps.daemon import TIMING, Daemon, Place
from plugin.mps.daemon_supervisor import DaemonSupervisor, SupervisorContext
from plugin.mps.patience import SECONDS
from plugin.mps.restart_policy import Answered, NoAnswer
from plugin.mps.silent_callers import SilentCallers, call_of
from plugin.mps.supervisor import every
from tests.plugin.mps.bench import A, Bench, Start
from tests.plugin.mps.conftest import QUICK, UUID
from tests.plugin.mps.isolated import needs_mounts
from tests.plugin.mps.standin import StandIn, alive
from tests.plugin.mps.supervised import is_now, running, said
from tests.plugin.waiting import wait_until

IMPATIENT = replace(QUICK, answer=0.3)
SILENT = "a client that said nothing kept an MPS daemon from all others: its connections are ended"


def connected(pipes: Path, gpu_uuid: str = UUID) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(str(pipes / gpu_uuid / "control"))
    connection.settimeout(30)
    return connection


@pytest.fixture
def daemon(place: Place) -> Daemon:
    daemon = Daemon(UUID, place, IMPATIENT)
    daemon.start()
    return daemon


@pytest.fixture
def callers(root: Path) -> SilentCallers:
    return SilentCallers(root / "containers")


@contextmanager
def looked(look: Callable[[], None]) -> Iterator[None]:
    """Look as often as `gpu-share mps` does, in a thread."""
    stopping = Event()
    thread = Thread(target=every, args=[TIMING.silence, look, look, stopping])
    thread.start()
    try:
        yield
    finally:
        stopping.set()
        thread.join()


@pytest.fixture
def looking(daemon: Daemon, callers: SilentCallers) -> Iterator[None]:
    with looked(lambda: callers.hang_up(daemon.pids)):
        yield


def waits(daemon: Daemon) -> None:
    wait_until(lambda: all(call_of(pid) for pid in daemon.pids) and bool(daemon.pids))


def test_a_daemon_that_waits_for_a_silent_client_serves_others_once_its_connection_is_ended(
    daemon: Daemon, pipes: Path, callers: SilentCallers, caplog: pytest.LogCaptureFixture
) -> None:
    with closing(connected(pipes)) as silent:
        waits(daemon)
        assert isinstance(daemon.look(), NoAnswer)
        began = time.monotonic()
        callers.hang_up(daemon.pids)
        assert silent.recv(1) == b""
        assert SECONDS < time.monotonic() - began < 2
        assert daemon.look() == Answered({})
    (warning,) = said(caplog, SILENT)
    assert (warning["caller"], warning["user"]) == (f"process {os.getpid()}", os.getuid())


def test_a_caller_that_was_silent_once_is_not_waited_for_again(
    daemon: Daemon, pipes: Path, callers: SilentCallers
) -> None:
    with ExitStack() as stack:
        for _ in range(60):
            stack.enter_context(closing(connected(pipes)))
        waits(daemon)
        for _ in range(2):
            callers.hang_up(daemon.pids)
        assert daemon.look() == Answered({})


@pytest.mark.usefixtures("looking")
def test_a_client_that_speaks_late_is_heard(daemon: Daemon, pipes: Path) -> None:
    for _ in range(5):
        with closing(connected(pipes)) as late:
            waits(daemon)
            time.sleep(0.1)
            late.sendall(b"get_default_active_thread_percentage\n")
            assert late.recv(100) == b"100.0\n"
        time.sleep(0.5)


# Connections of one program, all silent: so many, each for so many seconds, and whether by children that have ended.
ATTACKS = {"rotating": (50, 0.12, ""), "fast": (50, 0.01, ""), "many": (100, 60, ""), "of the dead": (50, 60, "dead")}
_ATTACKER = """
import os, socket, sys, threading, time
path, count, hold, dead = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), sys.argv[4]
def connect():
    connection = socket.socket(socket.AF_UNIX)
    child = os.fork() if dead else None
    if child:
        os.waitpid(child, 0)
    else:
        try:
            connection.connect(path)
        finally:
            if dead:
                os._exit(0)
    return connection
def one(number):
    time.sleep(hold * number)
    while True:
        try:
            connection = connect()
            connection.settimeout(hold * count if hold < 1 else 60)
            connection.recv(1)
        except OSError:
            pass
        connection.close()
threading.stack_size(65536)
for number in range(count):
    threading.Thread(target=one, args=[number if hold < 1 else 0], daemon=True).start()
time.sleep(600)
"""


@contextmanager
def attacked(pipes: Path, how: str) -> Iterator[None]:
    count, hold, dead = ATTACKS[how]
    command = [sys.executable, "-W", "ignore", "-c", _ATTACKER]
    arguments = [*command, str(pipes / UUID / "control"), str(count), str(hold), dead]
    with subprocess.Popen(arguments, start_new_session=True) as attacker:
        try:
            time.sleep(3)  # by now no patience with it is left
            yield
        finally:
            os.killpg(attacker.pid, signal.SIGKILL)  # with its children


@pytest.mark.usefixtures("looking")
@pytest.mark.parametrize("how", ATTACKS)
def test_no_number_of_silent_connections_keeps_others_out_for_long_or_ends_the_daemon(
    daemon: Daemon, pipes: Path, how: str
) -> None:
    before = daemon.pids
    with attacked(pipes, how):
        for _ in range(10):
            with closing(connected(pipes)) as innocent:
                innocent.sendall(b"get_default_active_thread_percentage\n")
                assert innocent.recv(100) == b"100.0\n"
    assert daemon.pids == before


def test_a_daemon_that_clients_keep_waiting_is_not_good_and_is_not_killed(
    supervisor: DaemonSupervisor, pipes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("plugin.mps.patience.SECONDS", float("inf"))  # whatever they do
    supervisor._daemon.control._timeout_seconds = 0.1
    with running(supervisor):
        is_now(supervisor, "ready")
        before = supervisor._daemon.pids
        with closing(connected(pipes)), looked(supervisor.hang_up):
            is_now(supervisor, "failed", "clients that say nothing keep it from all others")
            time.sleep(2)  # of twenty looks
            assert supervisor._daemon.pids == before
        is_now(supervisor, "ready")


def test_a_daemon_that_hangs_is_ended_although_a_client_keeps_it_waiting_for_a_moment_now_and_then(
    gpu: Gpu, context: SupervisorContext, standin: StandIn, pipes: Path
) -> None:
    timing = replace(context.timing, answer=1.0, quit=0.1, kill=0.2)
    supervisor = DaemonSupervisor(gpu, replace(context, timing=timing))
    ended = Event()

    def keep_it_for_a_moment() -> None:
        while not ended.wait(0.37):
            with suppress(OSError), closing(connected(pipes)) as silent:  # between two daemons there is none
                silent.settimeout(0.1)
                silent.recv(1)

    with running(supervisor), looked(supervisor.hang_up):
        is_now(supervisor, "ready")
        client = Thread(target=keep_it_for_a_moment)
        client.start()
        standin.behave(hang=["get_server_list", "quit"])
        try:
            is_now(supervisor, "failed", "5 times in a row; the next start is after a pause of")
        finally:
            ended.set()
            client.join()
        standin.behave()
        is_now(supervisor, "ready")


@needs_mounts
def test_a_user_id_is_told_as_it_is(
    daemon: Daemon, pipes: Path, callers: SilentCallers, caplog: pytest.LogCaptureFixture
) -> None:
    program = (
        "import ctypes, os, socket, sys\n"
        "os.seteuid(4_000_000_000)\nctypes.CDLL(None).setfsuid(0)\n"  # the directories above are root's
        "connection = socket.socket(socket.AF_UNIX)\n"
        "connection.connect(sys.argv[1])\nconnection.recv(1)\n"
    )
    with subprocess.Popen([sys.executable, "-c", program, str(pipes / UUID / "control")]):
        waits(daemon)
        callers.hang_up(daemon.pids)
    assert [line["user"] for line in said(caplog, SILENT)] == [4_000_000_000]


def test_a_daemon_that_stands_still_over_a_client_is_not_kept_waiting_by_it(
    daemon: Daemon, pipes: Path, callers: SilentCallers
) -> None:
    with closing(connected(pipes)):
        waits(daemon)
        for pid in daemon.pids:
            os.kill(pid, signal.SIGSTOP)
        for _ in range(3):
            callers.hang_up(daemon.pids)
        before_seconds = callers.kept_seconds
        callers.hang_up(daemon.pids)
        assert callers.kept_seconds == before_seconds
        for pid in daemon.pids:
            os.kill(pid, signal.SIGCONT)
    assert daemon.look() == Answered({})


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
        time.sleep(1)
        bench.is_now("ready", A)
    assert {one.pid for one in alive(bench.pipes)} == before


@pytest.fixture(autouse=True)
def _log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
