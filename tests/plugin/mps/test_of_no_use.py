"""A daemon that answers, with a server that serves nobody."""

from tests.plugin.mps.bench import A, B, Bench, Start
from tests.plugin.mps.tenants import held, kubelet
from tests.plugin.mps.test_process_removed import pids
from tests.plugin.waiting import wait_until


def test_it_is_started_anew_where_no_container_holds_a_share_and_lives_on_where_one_does(
    bench: Bench, start: Start
) -> None:
    bench.holds(A, vgpus=2)
    with kubelet(bench.root / "kubelet", held("team/a", A, vgpus=2)):
        start()
        bench.is_now("ready", A, B)
        served = pids(bench)
        bench.standin.behave(status="WEDGED")
        bench.is_now("failed", A, B, why="its server reports an unknown state")
        wait_until(lambda: pids(bench).get(B, served[B]) != served[B])
        bench.standin.behave()
        bench.is_now("ready", A, B)
        assert pids(bench)[A] == served[A]
