"""No answer that is no hang: a daemon whose socket is gone lives on with the contexts that programs have by it."""

import os
import shutil
import signal
import time
from dataclasses import replace
from pathlib import Path

import pytest

from plugin.gpus.gpu import Gpu
from plugin.mps import daemon as daemon_module
from plugin.mps.daemon import Daemon
from plugin.mps.daemon_supervisor import DaemonSupervisor, SupervisorContext
from plugin.mps.seen import Blocked, Gone, Seen
from tests.plugin.mps.bench import A, B, Bench, Start
from tests.plugin.mps.conftest import UUID
from tests.plugin.mps.isolated import needs_mounts
from tests.plugin.mps.kept_socket import kept_socket
from tests.plugin.mps.standin import StandIn
from tests.plugin.mps.supervised import is_now, running
from tests.plugin.mps.tenants import held, kubelet
from tests.plugin.mps.test_process_removed import pids
from tests.plugin.mps.test_restart_policy import FINE, LEFT, SILENT, USELESS, Looks, watched
from tests.plugin.waiting import wait_until

pytestmark = pytest.mark.exhaustive


def test_a_daemon_whose_socket_is_gone_is_not_good_and_lives_for_as_long_as_it_is_in_use() -> None:
    looks: Looks = [(0, Gone()), (1, FINE), *((now, LEFT) for now in range(2, 100))]
    watch, actions = watched(*looks)
    assert "kill" not in actions
    assert (watch.state, watch.why, watch.running) == ("failed", "its socket is gone", True)
    assert watched(*looks, *((now, USELESS) for now in range(100, 105)))[1][-5:] == ["wait"] * 4 + ["kill"]


def test_questions_without_an_answer_count_in_a_row_alone() -> None:
    looks: Looks = [(0, Gone()), (1, FINE), *((now, SILENT) for now in range(2, 6))]
    looks += [(6, Blocked("clients keep it waiting")), *((now, SILENT) for now in range(7, 11))]
    _, actions = watched(*looks)
    assert "kill" not in actions
    assert watched(*looks, (11, SILENT))[1][-1] == "kill"


def test_a_daemon_whose_socket_is_gone_is_ended_while_it_is_held_once_its_server_has_died(
    supervisor: DaemonSupervisor, standin: StandIn, pipes: Path
) -> None:
    with running(supervisor):  # no kubelet says that nobody holds a share
        is_now(supervisor, "ready")
        (server,) = supervisor._daemon._serving
        (pipes / UUID / "control").unlink()
        is_now(supervisor, "failed", "somebody removed the socket of the daemon")
        time.sleep(1)  # of twenty looks
        assert len(standin.starts()) == 1
        os.kill(server, signal.SIGKILL)
        is_now(supervisor, "ready")
    assert len(standin.starts()) == 2


def test_a_daemon_whose_socket_is_gone_is_asked_one_question_at_a_time(
    daemon: Daemon, standin: StandIn, pipes: Path
) -> None:
    standin.behave(hang=["get_server_list"])
    (pipes / UUID / "control").unlink()
    daemon.look()
    waiting = daemon.control.waiting
    assert waiting
    daemon.look()
    assert daemon.control.waiting == waiting


@needs_mounts
def test_a_daemon_whose_own_directory_was_removed_is_started_anew_once_nobody_holds_its_gpu(
    bench: Bench, start: Start
) -> None:
    bench.holds(B, vgpus=5)
    with kubelet(bench.root / "kubelet", held("team/a", A, vgpus=5), held("team/b", B, vgpus=5)) as listed:
        start()
        bench.is_now("ready", A, B)
        served = pids(bench)
        shutil.rmtree(bench.pipes / A, ignore_errors=True)
        bench.is_now(
            "failed", A, why=f"{A}/control: somebody removed the socket of the daemon; programs that run go on"
        )
        time.sleep(3)  # of thirty looks
        bench.is_now("failed", A, why="until it is started anew, once no container holds a share of this GPU")
        bench.is_now("ready", B)
        assert pids(bench) == served
        listed.pop(0)
        bench.is_now("ready", A, B)
        assert (pids(bench)[B], pids(bench)[A] == served[A]) == (served[B], False)


@pytest.mark.parametrize("renamed", [True, False])
def test_a_ceiling_that_a_tenant_raises_is_set_again_although_he_has_taken_the_socket_away(
    bench: Bench, start: Start, *, renamed: bool
) -> None:
    with kept_socket(bench, start) as kept:
        served, control = pids(bench), kept.control
        if renamed:
            control.rename(control.with_name("mine"))
        else:
            control.unlink()
            bench.is_now("failed", A, why="somebody removed the socket of the daemon; programs that run go on")
        kept.raises_the_ceiling()
        kept.sees_it_set_again()
        bench.is_now("ready" if renamed else "failed", A)
        wait_until(lambda: control.exists() == renamed)
        assert pids(bench) == served


@pytest.mark.parametrize("name", ["control", "control_privileged"])
def test_a_daemon_of_a_gpu_that_is_held_lives_on_whichever_socket_the_program_connects_to(
    bench: Bench, start: Start, name: str
) -> None:
    bench.standin.begins_with(f"os.environ['STANDIN_SOCKET'] = '{name}'")
    listens = "control, _ = listen" if name == "control" else "_, control = listen"
    daemon = bench.standin.daemon
    daemon.write_text(daemon.read_text().replace("control, _ = listen", listens))
    with kubelet(bench.root / "kubelet", held("team/a", A, vgpus=2)):
        start()
        bench.is_now("ready", A, B)
        served = pids(bench)
        (bench.pipes / A / name).unlink()
        bench.is_now("failed", A, why=f"{A}/{name}: somebody removed the socket of the daemon")
        time.sleep(2)  # of twenty looks
        assert pids(bench) == served


@pytest.mark.parametrize("code", [0, 1])
def test_a_daemon_lives_on_where_the_program_does_not_ask_by_links_to_its_sockets(
    bench: Bench, start: Start, code: int
) -> None:
    bench.standin.begins_with(f"if '/sockets' in os.environ['CUDA_MPS_PIPE_DIRECTORY']: sys.exit({code})")
    with kubelet(bench.root / "kubelet", held("team/a", A, vgpus=2)):
        start()
        bench.is_now("ready", A, B)
        served = pids(bench)
        (bench.pipes / A / "control").unlink()
        unknown = "the daemon is not asked meanwhile, and whether its limits still hold is not known; "
        bench.is_now("failed", A, why=f"removed the socket of the daemon; {unknown}programs that run go on")
        time.sleep(2)  # of twenty looks
        assert pids(bench)[A] == served[A]  # nobody holds B, whose daemon is started anew where it is slow


def test_a_daemon_that_cannot_be_killed_is_said_to_be_one_and_not_looked_at_without_a_pause(
    gpu: Gpu, context: SupervisorContext, pipes: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    supervisor = DaemonSupervisor(gpu, replace(context, timing=replace(context.timing, kill=0.1, look=0.5)))
    looks: list[float] = []
    seen = daemon_module.Daemon.look

    def look(daemon: daemon_module.Daemon) -> Seen:
        looks.append(time.monotonic())
        return seen(daemon)

    monkeypatch.setattr(daemon_module.Daemon, "look", look)
    with kubelet(root / "no-kubelet") as listed, running(supervisor):
        is_now(supervisor, "ready")
        with monkeypatch.context() as hung:
            hung.setattr(daemon_module, "send", lambda *_, **__: None)
            (pipes / UUID / "control").unlink()
            is_now(supervisor, "failed", "cannot be killed")
            assert supervisor.runs
            listed.append(held("team/a", UUID, vgpus=1))
            looks.clear()
            time.sleep(2)
            assert len(looks) <= 5
            assert "cannot be killed, they hang in the driver: reset the GPU, or reboot" in supervisor.report.why
        is_now(supervisor, "ready")


def test_a_daemon_that_is_killed_since_nobody_holds_its_gpu_is_not_said_to_be_left_to_programs(
    supervisor: DaemonSupervisor, pipes: Path, root: Path
) -> None:
    with kubelet(root / "no-kubelet"), running(supervisor):
        is_now(supervisor, "ready")
        (pipes / UUID / "control").unlink()
        is_now(supervisor, "failed", "somebody removed the socket of the daemon, seen 5 times in a row; the next start")


def test_a_daemon_that_makes_its_socket_late_has_lost_none(
    gpu: Gpu, context: SupervisorContext, standin: StandIn
) -> None:
    standin.behave(late=2)
    supervisor = DaemonSupervisor(gpu, replace(context, timing=replace(context.timing, answer=0.3, look=0.6)))
    with running(supervisor):
        is_now(supervisor, "failed", "get_server_list: failed with 1: 'Cannot find MPS control daemon process'")
        is_now(supervisor, "ready")
    assert len(standin.starts()) == 1
