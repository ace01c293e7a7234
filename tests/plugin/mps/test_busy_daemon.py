"""A daemon that answers late, since clients ask it much, is not taken for one that hangs."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from plugin.gpus.gpu import Gpu
from plugin.mps.busy_callers import BusyCallers
from plugin.mps.daemon import Daemon
from plugin.mps.daemon_supervisor import DaemonSupervisor, SupervisorContext
from plugin.pod_resources.tenancy import Tenancy
from tests.plugin.mps.conftest import UUID
from tests.plugin.mps.silent import connected, waits
from tests.plugin.mps.standin import StandIn, alive
from tests.plugin.mps.supervised import is_now, running, said
from tests.plugin.mps.tenants import held, kubelet
from tests.plugin.waiting import wait_until

TALKERS = 30
SLOW = "clients ask it more than it can answer in time"
_TALKER = """
import socket, sys, threading, time
def talk():
    while True:
        with socket.socket(socket.AF_UNIX) as connection:
            try:
                connection.connect(sys.argv[1])
                connection.sendall(b"get_default_active_thread_percentage\\n")
                while connection.recv(100):
                    pass
            except OSError:
                pass
for _ in range(int(sys.argv[2])):
    threading.Thread(target=talk, daemon=True).start()
time.sleep(600)
"""


@contextmanager
def talked_to(pipes: Path) -> Iterator[int]:
    """Have many threads of one process, which is no child of ours, ask the daemon all the time; its PID."""
    command = ["sh", "-c", '"$@" & echo $!; wait', "sh", sys.executable, "-c", _TALKER]
    arguments = [*command, str(pipes / UUID / "control"), str(TALKERS)]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, start_new_session=True) as talker:
        assert talker.stdout is not None
        try:
            yield int(talker.stdout.readline())
        finally:
            os.killpg(talker.pid, signal.SIGKILL)


@pytest.fixture
def waiting(gpu: Gpu, root: Path, context: SupervisorContext) -> DaemonSupervisor:
    """Give one with little patience at first, and much at last."""
    timing = replace(context.timing, answer=0.5, patience=600.0, quit=0.1, kill=0.2)
    tenancy = Tenancy(root / "kubelet", lambda: ["gpu-share.dev/vgpu"])
    return DaemonSupervisor(gpu, replace(context, timing=timing, tenancy=tenancy))


def test_one_that_clients_ask_more_than_it_can_answer_goes_on_and_the_state_names_them(
    waiting: DaemonSupervisor, root: Path, standin: StandIn, pipes: Path
) -> None:
    with kubelet(root / "kubelet", held("team/a", UUID, vgpus=2)), running(waiting):
        is_now(waiting, "ready")
        daemon = {one.pid for one in alive(pipes) if one.role == "daemon"}
        with talked_to(pipes) as pid:
            standin.behave(slow=0.05)
            is_now(waiting, "failed", f"{SLOW}, most of them of process {pid}: end it")
        standin.behave()
        is_now(waiting, "ready")
        assert {one.pid for one in alive(pipes) if one.role == "daemon"} == daemon
    assert len(standin.starts()) == 1


def test_one_that_nobody_has_work_by_is_not_waited_for(waiting: DaemonSupervisor, root: Path, standin: StandIn) -> None:
    with kubelet(root / "kubelet"), running(waiting):
        is_now(waiting, "ready")
        standin.behave(hang=["get_server_list", "quit"])
        is_now(waiting, "failed", "5 times in a row; the next start is after a pause of")


def test_while_it_is_waited_for_its_state_is_fresh_and_an_end_is_not_kept_waiting(
    waiting: DaemonSupervisor, root: Path, standin: StandIn, caplog: pytest.LogCaptureFixture
) -> None:
    with kubelet(root / "kubelet", held("team/a", UUID, vgpus=2)):
        with running(waiting):
            is_now(waiting, "ready")
            standin.behave(hang=["get_server_list", "quit"])
            wait_until(lambda: waiting._status.useless == 4)
            before = waiting.report.checked_seconds
            time.sleep(1.5)
            assert waiting._status.useless == 4
            assert waiting.report.checked_seconds - before > 1
            began = time.monotonic()
        assert time.monotonic() - began < 60
    assert not said(caplog, "supervising the MPS daemon failed")


def test_of_those_that_are_served_who_is_so_most_of_the_time_is_named(daemon: Daemon, pipes: Path, root: Path) -> None:
    busy = BusyCallers(root / "containers")
    assert busy.most() == ("", 0)
    for count in (1, 2):
        with connected(pipes):
            waits(daemon)
            busy.look(daemon.pids)
            busy.look(daemon.pids)
            name, connections = busy.most()
        assert (name.split()[0], connections) == ("process", count)
        wait_until(lambda: not _is_busy(daemon))
    for _ in range(5):
        busy.look(daemon.pids)
    assert busy.most() == ("", 0)
    busy.look([1 << 30])  # it has ended
    assert busy.most() == ("", 0)


def _is_busy(daemon: Daemon) -> bool:
    now = BusyCallers(Path("/nowhere"))
    now.look(daemon.pids)
    return now.most() != ("", 0)


def test_what_a_client_asked_once_and_takes_long_is_no_reason_to_end_it(
    waiting: DaemonSupervisor, root: Path, standin: StandIn, pipes: Path
) -> None:
    with kubelet(root / "kubelet", held("team/a", UUID, vgpus=2)), running(waiting):
        is_now(waiting, "ready")
        standin.behave(slow=6)
        with connected(pipes) as one:
            one.sendall(b"get_default_active_thread_percentage\n")
            time.sleep(0.5)
            standin.behave()
            is_now(waiting, "failed", "slower than it should: it works for long on what process ")
            assert ": end it" not in waiting.report.why
        is_now(waiting, "ready")
    assert len(standin.starts()) == 1


def test_limits_that_were_changed_are_set_again_however_busy_it_is(
    gpu: Gpu, root: Path, context: SupervisorContext, standin: StandIn, pipes: Path
) -> None:
    timing = replace(context.timing, answer=0.5, patience=600.0, limits=0.5, quit=0.1, kill=0.2)
    tenancy = Tenancy(root / "kubelet", lambda: ["gpu-share.dev/vgpu"])
    supervisor = DaemonSupervisor(gpu, replace(context, timing=timing, tenancy=tenancy))
    supervisor.ceiling = Fraction(1, 5)
    with kubelet(root / "kubelet", held("team/a", UUID, vgpus=2)), running(supervisor):
        is_now(supervisor, "ready")
        with talked_to(pipes):
            standin.behave(slow=0.025)
            wait_until(lambda: SLOW in supervisor.report.why, timeout_seconds=60)
            with connected(pipes) as root_in_a_container:
                root_in_a_container.sendall(b"set_default_device_pinned_mem_limit 0 143771M\n")
                assert root_in_a_container.recv(100) == b""
            changed = len(standin.commands())
            wait_until(
                lambda: any(
                    one.startswith("set_default_device_pinned_mem_limit 0 28") for one in standin.commands()[changed:]
                ),
                timeout_seconds=60,
            )
            assert supervisor.report.state == "failed"
    assert len(standin.starts()) == 1
