"""What counts of a ceiling that a daemon was not told yet, or gave no answer to."""

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

import pytest

from plugin.gpus.gpu import Gpu
from plugin.mps.answers import ServerState
from plugin.mps.client_limits import Ceiling, ClientLimits
from plugin.mps.daemon import Daemon
from plugin.mps.daemon_supervisor import DaemonSupervisor, SupervisorContext
from plugin.mps.seen import Fault
from tests.plugin.mps.conftest import QUICK, UUID
from tests.plugin.mps.standin import StandIn
from tests.plugin.mps.supervised import active, is_now, running
from tests.plugin.waiting import wait_until

LOW = Ceiling(thread_percentage=20, memory_mib=28000)
HIGH = Ceiling(thread_percentage=100, memory_mib=140000)
SLOW = Fault("the daemon is slow, and was not told all of its limits yet")
LONG, NONE = 60.0, -1.0  # seconds: for all of them, and for none


@pytest.fixture
def limits(daemon: Daemon, standin: StandIn) -> Iterator[ClientLimits]:
    """Give those of a daemon with two servers, as long as it does as it is told."""
    standin.behave(servers={"41": "ACTIVE", "42": "ACTIVE"})
    made = ClientLimits(UUID, daemon.control, QUICK)
    yield made
    standin.behave()


def told(standin: StandIn) -> list[str]:
    return [command for command in standin.commands() if command.startswith("set_")]


def test_a_ceiling_that_has_fallen_is_a_fault_until_the_daemon_was_told_all_of_it(limits: ClientLimits) -> None:
    assert limits.hold(HIGH, active(41), at_most_seconds=NONE) == SLOW
    assert limits.hold(HIGH, active(41), at_most_seconds=LONG) == Fault()
    assert limits.hold(LOW, active(41), at_most_seconds=NONE) == SLOW
    assert limits.hold(LOW, active(41), at_most_seconds=LONG) == Fault()


@pytest.mark.parametrize("untold", ["active_thread_percentage", "default_device_pinned_mem_limit"])
def test_each_limit_of_a_server_and_each_default_counts(limits: ClientLimits, standin: StandIn, untold: str) -> None:
    limits.hold(HIGH, active(41), at_most_seconds=LONG)
    standin.behave(servers={"41": "ACTIVE"}, lie={f"get_{untold}": "nothing"})
    assert untold in limits.hold(LOW, active(41), at_most_seconds=LONG).why
    assert limits.hold(LOW, active(41), at_most_seconds=NONE) == SLOW


def test_a_ceiling_that_is_to_rise_may_do_so_late(limits: ClientLimits) -> None:
    limits.hold(LOW, active(41), at_most_seconds=LONG)
    assert limits.hold(HIGH, active(41), at_most_seconds=NONE) == Fault()


def test_what_falls_does_so_for_the_servers_first_and_what_rises_for_those_to_come(
    limits: ClientLimits, standin: StandIn
) -> None:
    for ceiling, first in ((LOW, "set_active_"), (HIGH, "set_default_")):
        standin.forget()
        limits.hold(ceiling, active(41), at_most_seconds=LONG)
        of_first, of_others = told(standin)[:2], told(standin)[2:]
        assert len(of_others) == 2
        assert of_first[0].startswith(first)
        assert all(("default" in one) == ("default" in first) for one in of_first)
        assert all(("default" in one) != ("default" in first) for one in of_others)


def test_a_server_that_is_new_has_the_defaults_and_may_have_those_of_shortly_before(limits: ClientLimits) -> None:
    for ceiling in (HIGH, LOW):
        limits.hold(ceiling, active(41), at_most_seconds=LONG)
    assert limits.hold(LOW, active(41, 42), at_most_seconds=NONE) == SLOW
    limits._fell_seconds -= 600
    assert limits.hold(LOW, active(41, 42), at_most_seconds=NONE) == SLOW  # it began with those
    assert limits.hold(LOW, active(41, 42), at_most_seconds=LONG) == Fault()
    assert limits.hold(LOW, active(41, 42, 43), at_most_seconds=NONE) == Fault()


@pytest.mark.parametrize("state", ["FAULT", "UNKNOWN", "INITIALIZING"])
@pytest.mark.parametrize("before", [active(41), active()])
def test_a_server_that_was_not_active_while_the_ceiling_fell_has_any_of_earlier_however_long_ago_that_was(
    limits: ClientLimits, before: dict[int, ServerState], state: ServerState
) -> None:
    limits.hold(HIGH, before, at_most_seconds=LONG)
    assert limits.hold(LOW, {41: state}, at_most_seconds=LONG) == Fault()
    limits._fell_seconds -= 600
    assert limits.hold(LOW, {41: state}, at_most_seconds=LONG) == Fault()
    assert limits.hold(LOW, active(41), at_most_seconds=NONE) == SLOW
    assert limits.hold(LOW, active(41), at_most_seconds=LONG) == Fault()


def test_a_server_with_the_pid_of_one_that_has_ended_is_a_new_one(limits: ClientLimits) -> None:
    limits.hold(LOW, active(41), at_most_seconds=LONG)
    limits.hold(LOW, {41: "FAULT"}, at_most_seconds=LONG)
    limits._fell_seconds -= 600
    limits.hold(LOW, active(42), at_most_seconds=LONG)
    assert limits.hold(LOW, active(41, 42), at_most_seconds=NONE) == Fault()


def test_the_first_server_has_what_was_told_before_it_and_only_that(limits: ClientLimits) -> None:
    limits.hold(LOW, active(), at_most_seconds=LONG)
    assert limits.hold(LOW, active(41), at_most_seconds=NONE) == Fault()
    limits.forget()
    limits.hold(LOW, active(), at_most_seconds=NONE)
    limits.hold(LOW, active(), at_most_seconds=LONG)
    assert limits.hold(LOW, active(41), at_most_seconds=NONE) == SLOW


@pytest.mark.parametrize("verb", ["set", "get"])
def test_an_answer_that_did_not_come_leaves_no_earlier_limit_believed_in_force(
    limits: ClientLimits, daemon: Daemon, standin: StandIn, verb: str
) -> None:
    limits.hold(LOW, active(), at_most_seconds=LONG)
    standin.behave(hang=[f"{verb}_default_active_thread_percentage"])
    assert "no answer within" in limits.hold(HIGH, active(), at_most_seconds=LONG).why
    standin.behave()
    daemon.control.give_up()
    assert limits.hold(LOW, active(), at_most_seconds=NONE) == SLOW
    standin.forget()
    wait_until(lambda: limits.hold(LOW, active(), at_most_seconds=LONG) == Fault())
    assert "set_default_active_thread_percentage 20" in told(standin)


def test_however_slow_it_is_each_limit_has_its_turn_of_being_checked(limits: ClientLimits, standin: StandIn) -> None:
    limits.hold(LOW, active(41), at_most_seconds=LONG)
    standin.forget()
    standin.behave(slow=0.1, servers={"41": "ACTIVE"})

    def are_checked() -> bool:
        limits.doubt()
        limits.hold(LOW, active(41), at_most_seconds=0.05)  # for one of them
        return sum(one.startswith("get_") for one in set(standin.commands())) == 4

    wait_until(are_checked)
    assert not any("thread" in one for one in told(standin))


def test_a_check_tells_the_limits_on_memory_once_more_and_no_others(limits: ClientLimits, standin: StandIn) -> None:
    limits.hold(LOW, active(41), at_most_seconds=LONG)
    standin.forget()
    limits.doubt()
    for _ in range(3):
        assert limits.hold(LOW, active(41), at_most_seconds=LONG) == Fault()
    memory = ("default_device_pinned_mem_limit 0", "device_pinned_mem_limit 41 0")
    assert sorted(told(standin)) == sorted(f"set_{one} 28000M" for one in memory)


def test_a_limit_on_memory_that_a_check_could_not_tell_is_told_at_the_next_look(
    limits: ClientLimits, daemon: Daemon, standin: StandIn
) -> None:
    limits.hold(LOW, active(), at_most_seconds=LONG)
    limits.doubt()
    standin.behave(hang=["set_default_device_pinned_mem_limit"])
    assert "no answer within" in limits.hold(LOW, active(), at_most_seconds=LONG).why
    standin.behave()
    daemon.control.give_up()
    standin.forget()
    assert limits.hold(LOW, active(), at_most_seconds=LONG) == Fault()
    assert told(standin) == ["set_default_device_pinned_mem_limit 0 28000M"]


def test_while_a_slow_daemon_is_told_of_a_ceiling_that_has_fallen_no_container_may_start(
    gpu: Gpu, context: SupervisorContext, standin: StandIn
) -> None:
    supervisor = DaemonSupervisor(gpu, replace(context, timing=replace(QUICK, answer=1.0)))
    with running(supervisor):
        is_now(supervisor, "ready")
        standin.behave(slow=0.4)
        supervisor.ceiling = Fraction(1, 5)
        wait_until(lambda: supervisor.report.why == SLOW.why, timeout_seconds=60)
        assert supervisor.report.state == "failed"
        wait_until(lambda: supervisor.report.state == "ready", timeout_seconds=60)
        assert {"set_default_active_thread_percentage 20", "set_default_device_pinned_mem_limit 0 28728M"} <= {
            *told(standin)
        }
        standin.behave()
    assert len(standin.starts()) == 1
