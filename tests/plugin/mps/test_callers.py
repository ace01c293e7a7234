"""Who has made a connection to an MPS control daemon: one name for all processes of a container."""

from pathlib import Path

from plugin.mps.callers import GONE, UNTOLD, caller
from plugin.usage.cgroups import ContainerId
from tests.plugin.usage.links import UID
from tests.plugin.usage.tasks import ENDED, RUNS, has_thread

ID = "a1" * 32
MINE = f"8:pids:/kubepods/burstable/pod{UID}/{ID}\n"


def test_all_processes_of_a_container_have_one_name_also_without_their_main_threads(tmp_path: Path) -> None:
    has_thread(tmp_path, 7, 7, MINE, RUNS)
    has_thread(tmp_path, 8, 8, "8:pids:/\n", ENDED)
    has_thread(tmp_path, 8, 9, MINE, RUNS)
    assert caller(7, tmp_path) == caller(8, tmp_path) == ContainerId(UID, ID)


def test_all_processes_of_which_nobody_tells_the_container_have_one_name(tmp_path: Path) -> None:
    for pid in (7, 8):
        has_thread(tmp_path, pid, pid, "8:pids:/\n", ENDED)
    (tmp_path / "9" / "cgroup").mkdir(parents=True)  # cannot be read
    has_thread(tmp_path, 10, 10, "8:pids:/kubepods/a-shape-of-tomorrow\n", RUNS)
    assert {caller(pid, tmp_path) for pid in (7, 8, 9, 10)} == {UNTOLD}


def test_all_processes_of_a_pod_whose_containers_are_not_recognised_have_one_name(tmp_path: Path) -> None:
    for pid in (7, 8):
        has_thread(tmp_path, pid, pid, f"0::/kubepods/pod{UID}/a-runtime-of-tomorrow-{pid}\n", RUNS)
    assert caller(7, tmp_path) == caller(8, tmp_path) == f"a container of the pod {UID}"


def test_a_process_of_the_node_has_a_name_of_its_own_and_one_that_has_ended_none(tmp_path: Path) -> None:
    has_thread(tmp_path, 7, 7, "8:pids:/system.slice/a.service\n", RUNS)
    assert (caller(7, tmp_path), caller(8, tmp_path)) == ("process 7", GONE)
