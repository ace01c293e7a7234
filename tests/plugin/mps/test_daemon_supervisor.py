"""One GPU's supervisor in its thread, with a stand-in for NVIDIA's program."""

import os
import signal
import time
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from plugin.gpus.gpu import Gpu
from plugin.mps.daemon_supervisor import DaemonSupervisor, SupervisorContext
from plugin.pod_resources.tenancy import Tenancy
from plugin.state_files import boot_seconds
from tests.plugin.mps.conftest import QUICK, UUID
from tests.plugin.mps.fake_modes import FakeModes, FakeNvmlError
from tests.plugin.mps.silent import connected, looked
from tests.plugin.mps.standin import StandIn, alive
from tests.plugin.mps.supervised import is_now, running, said
from tests.plugin.mps.tenants import held, kubelet
from tests.plugin.waiting import wait_until


def test_a_daemon_is_started_in_exclusive_mode_and_watched_until_the_end(
    supervisor: DaemonSupervisor, nvml: FakeModes, standin: StandIn, pipes: Path
) -> None:
    is_now(supervisor, "starting")
    with running(supervisor):
        is_now(supervisor, "ready")
        assert nvml.modes == {UUID: 3}
        assert supervisor.report.why == ""
        first = supervisor.report.checked_seconds
        wait_until(lambda: supervisor.report.checked_seconds > first)
        assert 0 <= boot_seconds() - supervisor.report.checked_seconds < 60
    is_now(supervisor, "stopped")
    assert list(alive(pipes)) == []
    assert len(standin.starts()) == 1


def test_a_daemon_that_dies_is_started_again(supervisor: DaemonSupervisor, standin: StandIn, pipes: Path) -> None:
    with running(supervisor):
        is_now(supervisor, "ready")
        for one in alive(pipes):
            os.kill(one.pid, signal.SIGKILL)
        is_now(supervisor, "failed", "the daemon is gone; the next start is after a pause of 1 s")
        is_now(supervisor, "ready")
    assert len(standin.starts()) == 2


def test_a_daemon_that_hangs_is_not_ready_at_once_and_ended_after_five_looks(
    gpu: Gpu, context: SupervisorContext, standin: StandIn, caplog: pytest.LogCaptureFixture
) -> None:
    supervisor = DaemonSupervisor(gpu, replace(context, timing=replace(context.timing, answer=1.0, quit=0.1, kill=0.2)))
    with running(supervisor):
        is_now(supervisor, "ready")
        standin.behave(hang=["get_server_list", "quit"])
        is_now(supervisor, "failed", "get_server_list: no answer within 1 s")
        is_now(supervisor, "failed", "5 times in a row; the next start is after a pause of")
        standin.behave()
        is_now(supervisor, "ready")
    assert len(standin.starts()) == 2
    assert caplog.text.count("supervising the MPS daemon failed") == 0


def test_one_silence_does_not_end_anyones_context(supervisor: DaemonSupervisor, standin: StandIn, pipes: Path) -> None:
    with running(supervisor):
        is_now(supervisor, "ready")
        (daemon,) = alive(pipes)
        standin.behave(lie={"get_server_list": "garbage"})
        is_now(supervisor, "failed", "'garbage'")
        standin.behave()
        is_now(supervisor, "ready")
        assert list(alive(pipes)) in ([daemon], [])  # unless five looks came before
    assert len(standin.starts()) <= 2


def test_a_fault_is_reported_with_who_lost_their_contexts_and_left_to_recover(
    gpu: Gpu, root: Path, context: SupervisorContext, standin: StandIn, caplog: pytest.LogCaptureFixture
) -> None:
    socket = root / "kubelet"
    supervisor = DaemonSupervisor(gpu, replace(context, tenancy=Tenancy(socket, lambda: ["gpu-share.dev/vgpu"])))
    others = held("team/elsewhere", "GPU-other", vgpus=1)
    with kubelet(socket, held("team/a", UUID, vgpus=2), others), running(supervisor):
        standin.behave(servers={"42": "ACTIVE"})
        is_now(supervisor, "ready")
        standin.behave(servers={"42": "FAULT"})
        is_now(supervisor, "fault", "a fatal fault of one client ended the contexts of all")
        wait_until(lambda: any(line["state"] == "fault" for line in said(caplog, "MPS daemon")))
        (line,) = (line for line in said(caplog, "MPS daemon") if line["state"] == "fault")
        assert line["tenants"] == ("team/a/main",)
        assert line["levelname"] == "WARNING"
        standin.behave(servers={"42": "ACTIVE"})
        is_now(supervisor, "ready")
    assert len(standin.starts()) == 1


def test_a_gpu_whose_mode_cannot_be_set_has_no_daemon_and_says_why(
    supervisor: DaemonSupervisor, nvml: FakeModes, standin: StandIn
) -> None:
    nvml.refuses[UUID] = FakeNvmlError(4, "Insufficient Permissions")
    with running(supervisor):
        is_now(supervisor, "failed", "NVML: Insufficient Permissions: run gpu-share mps as root")
        assert standin.starts() == []
        nvml.refuses.clear()
        is_now(supervisor, "ready")


def test_a_gpu_that_loses_its_mode_later_is_not_ready_and_its_daemon_goes_on(
    supervisor: DaemonSupervisor, standin: StandIn, pipes: Path
) -> None:
    with running(supervisor):
        is_now(supervisor, "ready")
        supervisor.blocked = "the compute mode cannot be changed"
        is_now(supervisor, "failed", "the compute mode cannot be changed")
        supervisor.blocked = ""
        is_now(supervisor, "ready")
        assert len(list(alive(pipes))) == 1
    assert len(standin.starts()) == 1


def test_a_start_that_fails_is_tried_again_with_its_reason_in_the_state(
    supervisor: DaemonSupervisor, standin: StandIn
) -> None:
    standin.behave(start={"*": "no CUDA-capable device"})
    with running(supervisor):
        is_now(supervisor, "failed", "'no CUDA-capable device'; the next start is after a pause of 1 s")
        standin.behave()
        is_now(supervisor, "ready")


def test_an_end_while_the_daemon_starts_asks_nothing_more_of_it(
    gpu: Gpu, context: SupervisorContext, standin: StandIn, pipes: Path
) -> None:
    standin.behave(mute=True)
    supervisor = DaemonSupervisor(gpu, replace(context, timing=replace(QUICK, start=1.0)))
    ending = Event()
    started = supervisor._daemon.control.start

    def ends_meanwhile(*flags: Any, **options: Any) -> None:
        ending.set()
        standin.behave()
        started(*flags, **options)

    supervisor._daemon.control.start = ends_meanwhile  # type: ignore[method-assign]
    supervisor.run(ending)
    assert standin.commands() == ["quit"]
    assert (supervisor.report.state, list(alive(pipes))) == ("stopped", [])


def test_an_error_of_our_own_is_logged_and_does_not_end_the_watch(
    supervisor: DaemonSupervisor, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with running(supervisor):
        is_now(supervisor, "ready")
        with monkeypatch.context() as patched:
            patched.setattr(supervisor._daemon, "look", lambda: 1 / 0)
            is_now(supervisor, "failed", "an error in gpu-share itself")
        is_now(supervisor, "ready")
    assert "ZeroDivisionError" in caplog.text


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
    timing = replace(context.timing, answer=1.0, patience=2.0, quit=0.1, kill=0.2)
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
