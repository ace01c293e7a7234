"""What a supervisor tells its daemon: the ceiling of all clients, and to have a server before the first of them."""

import os
import signal
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from plugin.gpus.gpu import Gpu
from plugin.mps.client_limits import Ceiling
from plugin.mps.daemon_supervisor import DaemonSupervisor, SupervisorContext
from tests.plugin.mps.conftest import QUICK, UUID
from tests.plugin.mps.standin import StandIn, alive
from tests.plugin.mps.supervised import active, is_now, running, said
from tests.plugin.waiting import wait_until


def test_the_ceiling_is_told_to_the_daemon_and_to_its_servers_and_rises(
    supervisor: DaemonSupervisor, standin: StandIn
) -> None:
    supervisor.ceiling = Fraction(2, 10)
    with running(supervisor):
        wait_until(lambda: "set_default_device_pinned_mem_limit 0 28728M" in standin.commands())
        assert "set_default_active_thread_percentage 20" in standin.commands()
        standin.behave(servers={"41": "INITIALIZING", "42": "ACTIVE"})
        wait_until(lambda: "set_device_pinned_mem_limit 42 0 28728M" in standin.commands())
        assert "set_active_thread_percentage 41 20" not in standin.commands()  # it could not answer yet
        assert "set_active_thread_percentage 42 20" in standin.commands()
        standin.forget()
        supervisor.ceiling = Fraction(5, 10)
        wait_until(lambda: "set_device_pinned_mem_limit 42 0 71821M" in standin.commands())
        assert {
            "set_default_active_thread_percentage 50",
            "set_default_device_pinned_mem_limit 0 71821M",
            "set_active_thread_percentage 42 50",
        } <= set(standin.commands())


def test_a_server_is_started_after_the_defaults_and_before_the_first_client(
    supervisor: DaemonSupervisor, standin: StandIn
) -> None:
    with running(supervisor):
        is_now(supervisor, "ready")
        commands = standin.commands()
    defaults = [at for at, command in enumerate(commands) if command.startswith("set_default_")]
    assert max(defaults) < commands.index("start_server -uid 0") < commands.index("get_server_list")
    assert commands.count("start_server -uid 0") == 1


def test_a_daemon_that_listens_a_little_late_is_told_its_limits_and_to_start_a_server_all_the_same(
    supervisor: DaemonSupervisor, standin: StandIn
) -> None:
    standin.behave(late=0.3)
    with running(supervisor):
        is_now(supervisor, "ready")
    assert "start_server -uid 0" in standin.commands()


def test_a_daemon_that_was_started_again_is_told_again(
    supervisor: DaemonSupervisor, standin: StandIn, pipes: Path
) -> None:
    limit = "set_default_active_thread_percentage 100"
    with running(supervisor):
        wait_until(lambda: "get_default_device_pinned_mem_limit 0" in standin.commands())
        standin.forget()
        for one in alive(pipes):
            os.kill(one.pid, signal.SIGKILL)
        wait_until(lambda: limit in standin.commands())


def test_what_was_told_is_not_told_again_at_each_look(supervisor: DaemonSupervisor, standin: StandIn) -> None:
    with running(supervisor):
        wait_until(lambda: standin.commands().count("get_server_list") > 4)
    told = [command.split()[0] for command in standin.commands() if "limit" in command or "thread" in command]
    limits = ("active_thread_percentage", "device_pinned_mem_limit")
    assert sorted(told) == sorted(
        f"{verb}_{of}{limit}" for verb in ("get", "set") for of in ("default_", "") for limit in limits
    )


def test_a_limit_that_somebody_changed_is_set_again_with_a_warning(
    gpu: Gpu, context: SupervisorContext, standin: StandIn, caplog: pytest.LogCaptureFixture
) -> None:
    supervisor = DaemonSupervisor(gpu, replace(context, timing=replace(context.timing, limits=0.1)))
    supervisor.ceiling = Fraction(2, 10)
    with running(supervisor):
        wait_until(lambda: "get_default_device_pinned_mem_limit 0" in standin.commands())
        standin.forget()
        supervisor._daemon.control.ask("set_default_active_thread_percentage 100")  # as a tenant can
        wait_until(lambda: "set_default_active_thread_percentage 20" in standin.commands())
    (line,) = said(caplog, "an MPS limit was changed: set again")
    assert (line["expected"], line["got"]) == ("20.0", "'100.0'")


def test_a_limit_on_memory_that_somebody_changed_within_a_gigabyte_is_set_again_though_no_answer_shows_it(
    gpu: Gpu, context: SupervisorContext, standin: StandIn, caplog: pytest.LogCaptureFixture
) -> None:
    supervisor = DaemonSupervisor(gpu, replace(context, timing=replace(context.timing, limits=0.1)))
    supervisor.ceiling = Fraction(2, 10)
    standin.behave(servers={"42": "ACTIVE"})
    with running(supervisor):
        is_now(supervisor, "ready")
        for of in ("set_default_device_pinned_mem_limit 0", "set_device_pinned_mem_limit 42 0"):
            supervisor._daemon.control.ask(f"{of} 29600M")  # as a tenant can; it answers 28G as before
            standin.forget()
            wait_until(lambda: f"{of} 28728M" in standin.commands())  # noqa: B023 - called here
        assert supervisor.report.state == "ready"
    assert said(caplog, "an MPS limit was changed: set again") == []


@pytest.mark.parametrize(
    "lie",
    [
        {"get_default_active_thread_percentage": "unknown command"},
        {"get_default_active_thread_percentage": "100.0"},
        {"get_default_device_pinned_mem_limit": "no limit"},
        {"get_default_device_pinned_mem_limit": "0M"},
        {"get_default_device_pinned_mem_limit": "140G"},
        {"get_device_pinned_mem_limit": "140G"},
    ],
)
def test_a_daemon_that_does_not_keep_a_limit_is_a_fault_of_its_gpu_until_it_does(
    supervisor: DaemonSupervisor, standin: StandIn, lie: dict[str, str]
) -> None:
    supervisor.ceiling = Fraction(2, 10)
    (question,) = lie
    standin.behave(lie=lie, servers={"42": "ACTIVE"})
    with running(supervisor):
        is_now(supervisor, "failed", why=f"it does not keep its limits: {question}")
        assert f"answers '{lie[question]}' after set_" in supervisor.report.why
        standin.behave(servers={"42": "ACTIVE"})
        is_now(supervisor, "ready")
        standin.behave(lie=lie, servers={"42": "ACTIVE"})
        supervisor.ceiling = Fraction(3, 10)
        is_now(supervisor, "failed", why=question)
    assert len(standin.starts()) == 1  # contexts of its tenants are not ended for it


def test_a_limit_by_uuid_is_not_applied_and_an_ordinal_is_right_where_one_gpu_is_visible(
    supervisor: DaemonSupervisor, standin: StandIn
) -> None:
    with running(supervisor):
        is_now(supervisor, "ready")
        ask = supervisor._daemon.control.ask
        ask(f"set_default_device_pinned_mem_limit {UUID} 1024M")
        assert ask("get_default_device_pinned_mem_limit 0") == "140G\n"
    (started,) = standin.starts()
    assert started["environment"]["CUDA_VISIBLE_DEVICES"] == UUID


def test_a_server_that_ends_while_it_is_told_its_limits_is_no_fault(
    supervisor: DaemonSupervisor, standin: StandIn
) -> None:
    limits = supervisor._limits
    with running(supervisor):
        is_now(supervisor, "ready")
    supervisor._daemon.start()
    limits.forget()
    standin.behave(lie={"get_device_pinned_mem_limit": "no such server"}, servers={"42": "ACTIVE"})
    fault = limits.hold(Ceiling(thread_percentage=20, memory_mib=1000), active(41), at_most_seconds=9.0)
    assert fault.why == ""
    fault = limits.hold(Ceiling(thread_percentage=20, memory_mib=1000), active(41, 42), at_most_seconds=9.0)
    assert "get_device_pinned_mem_limit 42 0 answers 'no such server'" in fault.why


def test_limits_that_cannot_be_set_are_a_fault_and_tried_again(
    gpu: Gpu, context: SupervisorContext, standin: StandIn
) -> None:
    supervisor = DaemonSupervisor(gpu, replace(context, timing=replace(context.timing, answer=0.3)))
    standin.behave(hang=["set_default_active_thread_percentage"])
    with running(supervisor):
        wait_until(lambda: standin.commands().count("set_default_active_thread_percentage 100") >= 2)
        is_now(supervisor, "failed", why="limits cannot be set: set_default_active_thread_percentage 100: no answer")
        standin.behave()
        is_now(supervisor, "ready")
    assert "set_default_device_pinned_mem_limit 0 143643M" in standin.commands()


def test_a_slow_daemon_is_told_its_limits_over_several_looks_so_that_each_look_is_in_time(
    gpu: Gpu, context: SupervisorContext, standin: StandIn
) -> None:
    supervisor = DaemonSupervisor(gpu, replace(context, timing=replace(QUICK, answer=0.5)))
    with running(supervisor):
        is_now(supervisor, "ready")
        standin.behave(slow=0.2, servers={"41": "ACTIVE", "42": "ACTIVE"})
        wait_until(lambda: "get_server_status 42" in standin.commands())
        standin.forget()
        wait_until(lambda: "get_device_pinned_mem_limit 42 0" in standin.commands(), timeout_seconds=30)
        standin.behave()
    assert "get_server_list" in standin.commands()  # between the first limit and the last
