"""A daemon that answers, with a server that serves nobody, or in words that nobody reads."""

from typing import Any

import pytest

from tests.plugin.mps.bench import A, B, Bench, Start
from tests.plugin.mps.tenants import held, kubelet
from tests.plugin.mps.test_process_removed import pids
from tests.plugin.waiting import wait_until

pytestmark = pytest.mark.exhaustive

UNKNOWN = "its server reports an unknown state"


@pytest.mark.parametrize(
    ("behaviour", "state", "why"),
    [
        ({"status": "WEDGED"}, "failed", UNKNOWN),
        ({"status": "FAULT"}, "fault", "once all of them are gone"),
        ({"lie": {"get_server_status": "Server is Active"}}, "failed", "got 'Server is Active'"),
        ({"lie": {"get_server_list": "servers: 1"}}, "failed", "got 'servers: 1'"),
    ],
)
def test_it_is_started_anew_where_no_container_holds_a_share_and_lives_on_where_one_does(
    bench: Bench, start: Start, behaviour: dict[str, Any], state: str, why: str
) -> None:
    bench.holds(A, vgpus=2)
    with kubelet(bench.root / "kubelet", held("team/a", A, vgpus=2)):
        start()
        bench.is_now("ready", A, B)
        served = pids(bench)
        bench.standin.behave(**behaviour)
        bench.is_now(state, A, B, why=why)
        wait_until(lambda: pids(bench).get(B, served[B]) != served[B])
        bench.standin.behave()
        bench.is_now("ready", A, B)
        assert pids(bench)[A] == served[A]


def test_a_control_program_that_fails_at_once_ends_no_daemon_of_which_a_container_holds_a_share(
    bench: Bench, start: Start
) -> None:
    bench.holds(A, vgpus=2)
    failing = bench.root / "failing"
    bench.standin.begins_with(f"if os.path.exists('{failing}'): print('Failed to allocate memory'); sys.exit(1)")
    with kubelet(bench.root / "kubelet", held("team/a", A, vgpus=2)):
        start()
        bench.is_now("ready", A, B)
        served = pids(bench)
        failing.touch()
        bench.is_now("failed", A, why="failed with 1: 'Failed to allocate memory'; it may serve those who use it")
        wait_until(lambda: pids(bench).get(B, served[B]) != served[B])
        failing.unlink()
        bench.is_now("ready", A, B)
        assert pids(bench)[A] == served[A]
