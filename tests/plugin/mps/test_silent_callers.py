"""Clients that connect to a daemon and say nothing: the daemon waits for them, and nobody else is served."""

import logging
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import pytest

from plugin.mps.daemon import Daemon
from plugin.mps.patience import SECONDS
from plugin.mps.seen import Answered, NoAnswer
from plugin.mps.silent_callers import SilentCallers, call_of
from tests.plugin.mps.bench import A, Bench, Start
from tests.plugin.mps.conftest import UUID
from tests.plugin.mps.isolated import needs_mounts
from tests.plugin.mps.silent import SILENT, connected, looked, waits
from tests.plugin.mps.standin import alive
from tests.plugin.mps.supervised import said
from tests.plugin.waiting import wait_until
from tests.programs import ended


@pytest.fixture
def looking(daemon: Daemon, callers: SilentCallers) -> Iterator[None]:
    with looked(lambda: callers.hang_up(daemon.pids)):
        yield


def test_a_daemon_that_waits_for_a_silent_client_serves_others_once_its_connection_is_ended(
    daemon: Daemon, pipes: Path, callers: SilentCallers, caplog: pytest.LogCaptureFixture
) -> None:
    with closing(connected(pipes)) as silent:
        waits(daemon)
        assert isinstance(daemon.look(), NoAnswer)
        began = time.monotonic()

        def is_ended() -> bool:
            callers.hang_up(daemon.pids)  # a machine that is busy holds a look up, which counts less then
            return bool(select.select([silent], [], [], 0)[0])

        wait_until(is_ended)
        assert time.monotonic() - began > SECONDS
        assert silent.recv(1) == b""
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

        def is_free() -> bool:
            callers.hang_up(daemon.pids)
            return daemon.look() == Answered({})

        wait_until(is_free)
    assert callers.kept_seconds < 60 * SECONDS / 5


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

    def has_ended() -> bool:
        callers.hang_up(daemon.pids)
        return silent.poll() is not None

    with ended(subprocess.Popen([sys.executable, "-c", program, str(pipes / UUID / "control")])) as silent:
        waits(daemon)
        wait_until(has_ended)
    assert [line["user"] for line in said(caplog, SILENT)] == [4_000_000_000]


def test_a_daemon_that_stands_still_over_a_client_is_not_kept_waiting_by_it(
    daemon: Daemon, pipes: Path, callers: SilentCallers
) -> None:
    with closing(connected(pipes)):
        waits(daemon)
        for pid in daemon.pids:
            os.kill(pid, signal.SIGSTOP)

        def keeps_nobody() -> bool:
            before_seconds = callers.kept_seconds
            callers.hang_up(daemon.pids)
            return callers.kept_seconds == before_seconds > 0  # on a busy machine it stands still a little later

        wait_until(keeps_nobody)
        for pid in daemon.pids:
            os.kill(pid, signal.SIGCONT)
    assert daemon.look() == Answered({})


def test_a_process_that_waits_at_another_socket_is_left_alone(callers: SilentCallers) -> None:
    ours, other = socket.socketpair()
    with ours, other, ended(subprocess.Popen(["/bin/cat"], stdin=other.fileno())) as process:
        wait_until(lambda: call_of(process.pid) is not None)
        for _ in range(3):
            callers.hang_up([process.pid])
        assert process.poll() is None
        assert ours.send(b"x") == 1


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
