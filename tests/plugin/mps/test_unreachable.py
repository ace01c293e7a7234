"""No answer that is no hang: a daemon whose socket is gone lives on with the contexts that programs have by it."""

import os
import shutil
import signal
import time
from pathlib import Path

from plugin.mps.daemon_supervisor import DaemonSupervisor
from plugin.mps.restart_policy import Blocked, Gone
from tests.plugin.mps.bench import A, B, Bench, Start
from tests.plugin.mps.conftest import UUID
from tests.plugin.mps.isolated import needs_mounts
from tests.plugin.mps.standin import StandIn
from tests.plugin.mps.supervised import is_now, running
from tests.plugin.mps.tenants import held, kubelet
from tests.plugin.mps.test_process_removed import pids
from tests.plugin.mps.test_restart_policy import FINE, LEFT, SILENT, USELESS, Looks, watched


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
        (server,) = supervisor._active
        (pipes / UUID / "control").unlink()
        is_now(supervisor, "failed", "somebody removed the socket of the daemon")
        time.sleep(1)  # of twenty looks
        assert len(standin.starts()) == 1
        os.kill(server, signal.SIGKILL)
        is_now(supervisor, "ready")
    assert len(standin.starts()) == 2


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
