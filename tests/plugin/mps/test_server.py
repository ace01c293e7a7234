"""The MPS server, which keeps the GPU from programs that do without MPS: there is one, or the GPU is not ready."""

import os
import signal
from dataclasses import replace

import pytest

from plugin.gpus.gpu import Gpu
from plugin.mps.daemon_supervisor import DaemonSupervisor, SupervisorContext
from tests.plugin.mps.conftest import QUICK
from tests.plugin.mps.fake_modes import FakeModes, FakeNvmlError
from tests.plugin.mps.standin import StandIn
from tests.plugin.mps.supervised import is_now, running, said
from tests.plugin.waiting import wait_until

START = "start_server -uid 0"


def server_of(supervisor: DaemonSupervisor) -> int:
    (pid,) = map(int, supervisor._daemon.control.ask("get_server_list").split())
    return pid


def test_a_server_that_is_killed_is_started_again_and_the_gpu_is_not_ready_meanwhile(
    gpu: Gpu, context: SupervisorContext, standin: StandIn, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    supervisor = DaemonSupervisor(gpu, replace(context, timing=replace(QUICK, look=60.0)))
    with running(supervisor):
        is_now(supervisor, "ready")
        first = server_of(supervisor)
        standin.forget()
        os.kill(first, signal.SIGKILL)  # seen at once, not at the next look
        wait_until(lambda: START in standin.commands())
        is_now(supervisor, "ready")
        assert server_of(supervisor) != first
    reasons = [line.get("reason", "") for line in said(caplog, "MPS daemon")]
    assert sum("no MPS server holds the GPU" in reason for reason in reasons) == 1


def test_a_gpu_that_was_reset_is_exclusive_again_before_it_has_a_server(
    gpu: Gpu, context: SupervisorContext, nvml: FakeModes
) -> None:
    supervisor = DaemonSupervisor(gpu, replace(context, timing=replace(QUICK, look=60.0)))
    with running(supervisor):
        is_now(supervisor, "ready")
        first = server_of(supervisor)
        nvml.modes[gpu.uuid] = 0
        os.kill(first, signal.SIGKILL)
        wait_until(lambda: nvml.modes[gpu.uuid] == 3)
        is_now(supervisor, "ready")


def test_a_gpu_that_was_reset_has_no_server_while_it_cannot_be_made_exclusive(
    gpu: Gpu, context: SupervisorContext, nvml: FakeModes, standin: StandIn
) -> None:
    supervisor = DaemonSupervisor(gpu, context)
    with running(supervisor):
        is_now(supervisor, "ready")
        first = server_of(supervisor)
        nvml.refuses[gpu.uuid] = FakeNvmlError(4, "Insufficient Permissions")
        nvml.modes[gpu.uuid] = 0
        standin.forget()
        os.kill(first, signal.SIGKILL)
        is_now(supervisor, "failed", why="the compute mode cannot be changed")
        assert START not in standin.commands()
        nvml.refuses.clear()
        is_now(supervisor, "ready")


def test_without_a_server_the_gpu_is_not_ready_and_says_why_until_there_is_one(
    supervisor: DaemonSupervisor, standin: StandIn, caplog: pytest.LogCaptureFixture
) -> None:
    standin.behave(no_server=True)  # as where another program has the GPU
    with running(supervisor):
        is_now(supervisor, "failed", why="its MPS server ends as soon as it is started: end what else uses the GPU")
        wait_until(lambda: standin.commands().count(START) > 3)
        standin.behave()
        is_now(supervisor, "ready")
    assert len(standin.starts()) == 1
    assert sum(line.get("state") == "failed" for line in said(caplog, "MPS daemon")) == 1  # and not at each look


def test_a_server_that_cannot_be_started_is_said_with_its_reason(
    gpu: Gpu, context: SupervisorContext, standin: StandIn
) -> None:
    standin.behave(hang=["start_server"])
    with running(DaemonSupervisor(gpu, replace(context, timing=replace(QUICK, start=1.0)))) as supervisor:
        is_now(supervisor, "failed", why="no MPS server can be started: start_server -uid 0: no answer within 1 s")
        standin.behave()
        is_now(supervisor, "ready")


def test_a_server_that_initializes_is_not_ready_before_it_is_active(
    supervisor: DaemonSupervisor, standin: StandIn
) -> None:
    standin.behave(status="INITIALIZING")
    with running(supervisor):
        is_now(supervisor, "starting", why="its server is initializing")
        standin.behave()
        is_now(supervisor, "ready")


def test_a_server_of_another_user_in_its_place_is_as_good_and_no_second_one_is_started(
    supervisor: DaemonSupervisor, standin: StandIn, caplog: pytest.LogCaptureFixture
) -> None:
    with running(supervisor):
        is_now(supervisor, "ready")
        standin.forget()
        standin.behave(servers={"4242": "INITIALIZING"})  # without -M the first client's user replaces ours
        wait_until(lambda: "get_server_status 4242" in standin.commands())
        standin.behave(servers={"4242": "ACTIVE"})
        wait_until(lambda: "get_device_pinned_mem_limit 4242 0" in standin.commands())
        assert supervisor.report.state == "ready"
        assert START not in standin.commands()
    assert [line["state"] for line in said(caplog, "MPS daemon") if line["state"] == "failed"] == []


def test_a_moment_between_the_servers_of_two_users_is_not_taken_for_none(
    gpu: Gpu, context: SupervisorContext, standin: StandIn, caplog: pytest.LogCaptureFixture
) -> None:
    supervisor = DaemonSupervisor(gpu, replace(context, timing=replace(QUICK, settle=2.0)))
    with running(supervisor):
        is_now(supervisor, "ready")
        standin.forget()
        standin.behave(servers={})
        wait_until(lambda: "get_server_list" in standin.commands())
        standin.behave(servers={"4242": "ACTIVE"})
        wait_until(lambda: "get_server_status 4242" in standin.commands())
        assert supervisor.report.state == "ready"
        assert START not in standin.commands()
    assert [line["state"] for line in said(caplog, "MPS daemon") if line["state"] == "failed"] == []


def test_a_server_that_answers_numbers_which_are_no_processes_ends_no_watch(
    supervisor: DaemonSupervisor, standin: StandIn
) -> None:
    with running(supervisor):
        is_now(supervisor, "ready")
        standin.behave(servers={"9999999999": "ACTIVE", "4194305": "ACTIVE"})
        wait_until(lambda: "get_server_status 9999999999" in standin.commands())
        checked = supervisor.report.checked_seconds
        wait_until(lambda: supervisor.report.checked_seconds > checked)
        assert supervisor.report.state == "ready"
