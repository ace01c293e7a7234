"""A daemon that says how its servers are, and does not do what it is told: it gets no limits, or starts no server."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from plugin.gpus.gpu import Gpu
from plugin.mps.daemon_supervisor import DaemonSupervisor, SupervisorContext
from plugin.mps.restart_policy import DaemonStatus, is_last
from plugin.mps.seen import Answered, Gone, NoAnswer, Seen
from plugin.mps.state import MpsState, fault
from plugin.mps.timing import Timing
from plugin.pod_resources.tenancy import Tenancy
from plugin.state_files import boot_seconds
from tests.plugin.mps.conftest import QUICK, UUID
from tests.plugin.mps.standin import StandIn, kill_all
from tests.plugin.mps.supervised import is_now, running
from tests.plugin.mps.tenants import held, kubelet
from tests.plugin.mps.test_restart_policy import ACTIVE, UNSERVED, Looks, watched
from tests.plugin.waiting import wait_until

pytestmark = pytest.mark.exhaustive

IMPATIENT = replace(QUICK, answer=0.5, patience=20.0, start=0.5, quit=0.2, kill=0.3)
QUESTIONS = (
    "get_default_active_thread_percentage",
    "set_default_device_pinned_mem_limit",
    "get_device_pinned_mem_limit",
)
UNLIMITED = Answered({1: "ACTIVE"}, fault="no answer", in_vain=True, in_use=False)
UNSTARTED = Answered({}, fault="no server", in_vain=True, in_use=False)
UNUSED = Answered({}, in_use=False)
STARTS: list[Seen] = [UNUSED, UNSTARTED]  # a look, and what came of the start of a server


def one_a_second(*looks: Seen) -> Looks:
    return [(float(second), seen) for second, seen in enumerate([Gone(), *looks])]


def after(*looks: Seen) -> DaemonStatus:
    return watched(*one_a_second(*looks))[0]


@pytest.mark.parametrize("looks", [[UNLIMITED] * 5, STARTS * 5, [*STARTS * 3, UNLIMITED, UNLIMITED]])
def test_five_looks_in_a_row_are_its_end_where_no_container_holds_a_share(looks: list[Seen]) -> None:
    status, actions = watched(*one_a_second(*looks))
    assert actions[-1] == "kill"
    assert "kill" not in actions[:-1]
    assert "and no container holds a share of the GPU, seen 5 times in a row; the next start is after" in status.why
    assert (status.state, status.running) == ("failed", False)


@pytest.mark.parametrize("between", [ACTIVE, replace(UNLIMITED, in_vain=False), replace(UNSTARTED, in_vain=False)])
def test_what_it_does_or_answers_wrongly_begins_the_count_anew(between: Seen) -> None:
    for looks in ([UNLIMITED] * 4, STARTS * 4):
        assert "kill" not in watched(*one_a_second(*looks, between, *looks))[1]


def test_each_start_that_helps_nothing_makes_the_next_pause_longer() -> None:
    looks, pauses, now_seconds = list[tuple[float, Seen]](), list[float](), 0.0
    for _ in range(8):
        looks += [(now_seconds, Gone()), *((now_seconds, UNLIMITED) for _ in range(5))]
        status, actions = watched(*looks)
        assert actions[-6:] == ["start", *["wait"] * 4, "kill"]
        pauses.append(status.due_seconds - now_seconds)
        now_seconds = status.due_seconds
    assert pauses == [1, 2, 4, 8, 16, 32, 60, 60]


@pytest.mark.parametrize(
    ("bad", "remedy"),
    [(UNLIMITED, "it may serve those who use it, so it is started anew"), (UNSTARTED, "it is started anew once no")],
)
def test_where_one_may_it_is_left_alone_and_each_fifth_look_may_take_its_time(bad: Answered, remedy: str) -> None:
    used = replace(bad, in_use=True)
    for count in range(1, 30):
        looks = [used] * count
        status, actions = watched(*one_a_second(*looks))
        assert "kill" not in actions
        assert f"{bad.fault}; {remedy}" in status.why
        assert "delete the pods that do" in status.why
        assert is_last(status) == (count % 5 == 4)
        assert not is_last(after(*looks, ACTIVE))


def test_looks_at_which_it_did_not_do_what_it_was_told_are_no_evidence_against_its_tenants_daemon() -> None:
    used = [replace(UNLIMITED, in_use=True)] * 4
    assert "kill" not in watched(*one_a_second(*used, *[NoAnswer("")] * 4))[1]
    assert "kill" not in watched(*one_a_second(*[NoAnswer("")] * 4, UNSERVED, NoAnswer("")))[1]


@pytest.fixture
def impatient(gpu: Gpu, root: Path, context: SupervisorContext) -> DaemonSupervisor:
    return supervised(gpu, root, context)


def supervised(gpu: Gpu, root: Path, context: SupervisorContext, timing: Timing = IMPATIENT) -> DaemonSupervisor:
    tenancy = Tenancy(root / "kubelet", lambda: ["gpu-share.dev/vgpu"])
    return DaemonSupervisor(gpu, replace(context, timing=timing, tenancy=tenancy))


@contextmanager
def with_a_tenant(root: Path, supervisor: DaemonSupervisor) -> Iterator[None]:
    with kubelet(root / "kubelet", held("team/a", UUID, vgpus=2)), running(supervisor):
        yield


@contextmanager
def released(root: Path, standin: StandIn) -> Iterator[None]:
    """End what hangs at the end, or it is waited for."""
    try:
        yield
    finally:
        standin.behave()
        kill_all(root)


@pytest.mark.parametrize("command", [*QUESTIONS, "start_server"])
def test_one_that_hangs_at_a_command_is_started_anew_where_no_container_holds_a_share(
    impatient: DaemonSupervisor, root: Path, standin: StandIn, command: str
) -> None:
    standin.behave(hang=[command])
    with kubelet(root / "kubelet"), running(impatient):
        is_now(impatient, "failed", "no container holds a share of the GPU, seen 5 times in a row; the next start is")
        assert f"{command} " in f"{impatient.report.why} ".replace(":", " ")
        wait_until(lambda: len(standin.starts()) == 2)
        standin.behave()
        is_now(impatient, "ready")


def test_a_control_program_that_fails_at_limits_alone_is_as_much_a_reason(
    impatient: DaemonSupervisor, root: Path, standin: StandIn
) -> None:
    standin.begins_with("if b'pinned' in os.pread(0, 100, 0): sys.exit('out of memory')")
    with kubelet(root / "kubelet"), running(impatient):
        is_now(impatient, "failed", "failed with 1: 'out of memory', and no container holds a share of the GPU, seen 5")
        wait_until(lambda: len(standin.starts()) >= 2)


def test_a_control_program_that_the_node_does_not_run_at_limits_is_none(
    impatient: DaemonSupervisor, root: Path, standin: StandIn
) -> None:
    standin.begins_with("if b'pinned' in os.pread(0, 100, 0): os.kill(os.getpid(), 9)")
    with kubelet(root / "kubelet"), running(impatient):
        is_now(impatient, "failed", "its limits cannot be set: ")
        wait_until(lambda: standin.commands().count("get_server_list") > 10)
    assert len(standin.starts()) == 1


@pytest.mark.parametrize("command", [*QUESTIONS, "start_server"])
def test_with_the_work_of_a_tenant_it_lives_on_and_says_what_to_do(
    gpu: Gpu, root: Path, context: SupervisorContext, standin: StandIn, command: str
) -> None:
    supervisor = supervised(gpu, root, context, replace(IMPATIENT, patience=0.6))
    standin.behave(hang=[command])
    with with_a_tenant(root, supervisor):
        is_now(supervisor, "failed", "no container holds a share of the GPU: delete the pods that do if this lasts")
        wait_until(lambda: standin.commands().count("get_server_list") > 12)
        standin.behave()
        is_now(supervisor, "ready")
    assert len(standin.starts()) == 1


def test_a_tenants_daemon_that_takes_long_for_a_limit_is_given_the_time(
    impatient: DaemonSupervisor, root: Path, standin: StandIn
) -> None:
    standin.begins_with("if b'get_device_pinned' in os.pread(0, 100, 0): import time; time.sleep(1.5)")
    with with_a_tenant(root, impatient):
        is_now(impatient, "failed", "get_device_pinned_mem_limit")
        is_now(impatient, "ready")
    assert len(standin.starts()) == 1


def test_a_client_that_keeps_it_from_hearing_of_its_limits_is_not_held_against_it(
    impatient: DaemonSupervisor, root: Path, standin: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = iter(range(0, 10**9, 1000))
    always = property(lambda _: next(kept), lambda *_: None)
    monkeypatch.setattr(type(impatient._callers), "kept_seconds", always, raising=False)
    standin.behave(hang=["get_default_active_thread_percentage"])
    with kubelet(root / "kubelet"), running(impatient):
        is_now(impatient, "failed", "clients that say nothing keep it from all others")
        wait_until(lambda: standin.commands().count("get_server_list") > 7)
    assert len(standin.starts()) == 1


def test_while_a_start_is_waited_for_what_is_said_of_the_daemon_holds(
    gpu: Gpu, root: Path, context: SupervisorContext, standin: StandIn
) -> None:
    supervisor = supervised(gpu, root, context, replace(IMPATIENT, start=600.0))
    standin.behave(hang=["start_server"])
    with with_a_tenant(root, supervisor), released(root, standin):
        wait_until(lambda: "start_server -uid 0" in standin.commands())
        first = supervisor.report.checked_seconds
        wait_until(lambda: supervisor.report.checked_seconds > first)
        state = MpsState(boot_id="this boot", gpus={UUID: supervisor.report})
        said = fault(state, UUID, now_seconds=boot_seconds(), boot_id="this boot")
        assert said == "MPS daemon starting: the daemon is being started"
