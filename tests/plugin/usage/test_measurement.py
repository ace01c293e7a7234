"""What containers take of the GPUs, measured over the real bindings, and added up by container."""

import time
from pathlib import Path

import pytest

from plugin.usage.record import ContainerUse, GpuUse
from tests.plugin.mps.bench import A, B
from tests.plugin.usage.links import UID, linked
from tests.plugin.usage.measured_node import Node
from tests.plugin.usage.tasks import ENDED, RUNS, has_thread

MIB = 2**20


def used(pod: str, memory: int | None, *, busy: float | None = None, processes: int = 1) -> ContainerUse:
    return ContainerUse(
        namespace="team-a", pod=pod, container="main", processes=processes, memory_bytes=memory, sm_ratio=busy
    )


def now(seconds_ago: float = 0) -> int:
    return int((time.time() - seconds_ago) * 1_000_000)


def test_memory_and_utilisation_are_added_up_by_container_and_gpu(node: Node, library: Path) -> None:
    node.has("resnet", 11, 12)
    node.has("bert", 21)
    node.says("compute", A, f"11 {100 * MIB}", f"12 {50 * MIB}", f"21 {7 * MIB}")
    node.says("compute", B, f"21 {9 * MIB}")
    node.says("busy", A, f"11 30 {now()}", f"12 25 {now()}", f"21 10 {now(3)}", f"21 40 {now(1)}")
    gpus = node.measured(library)
    assert gpus[A] == GpuUse(
        containers=(used("bert", 7 * MIB, busy=0.4), used("resnet", 150 * MIB, busy=0.55, processes=2)), complete=True
    )
    assert gpus[B] == GpuUse(containers=(used("bert", 9 * MIB),), complete=True)


def test_clients_of_mps_count_once_in_whichever_list_they_are_and_the_server_is_nobodys(
    node: Node, library: Path
) -> None:
    node.has("resnet", 11, 12)
    node.has_own(99)
    node.says("compute", A, f"99 {30 * MIB}", f"11 {100 * MIB}")
    node.says("clients", A, f"11 {100 * MIB}", f"12 {50 * MIB}")
    assert node.measured(library)[A] == GpuUse(containers=(used("resnet", 150 * MIB, processes=2),), complete=True)


def test_the_time_of_clients_is_theirs_only_where_the_server_has_none(node: Node, library: Path) -> None:
    node.has("resnet", 11)
    node.has_own(99)
    node.says("compute", A, f"99 {66 * MIB}", f"11 {100 * MIB}")
    node.says("clients", A, f"11 {100 * MIB}")
    node.says("busy", A, f"99 79 {now()}", f"11 1 {now()}")  # as driver 580 has it for a client that computes always
    assert node.measured(library)[A].containers == (used("resnet", 100 * MIB),)
    node.says("busy", A, f"11 79 {now()}")
    assert node.measured(library)[A].containers == (used("resnet", 100 * MIB, busy=0.79),)


def test_a_driver_that_may_not_list_clients_of_mps_leaves_it_open_who_takes_nothing(node: Node, library: Path) -> None:
    (node.nvml / f"clients-{A}").unlink()
    gpus = node.measured(library)
    assert (gpus[A].complete, gpus[B].complete) == (False, True)


def test_a_sum_of_which_one_part_is_not_available_is_not_known(node: Node, library: Path) -> None:
    node.has("resnet", 11, 12)
    node.says("compute", A, f"11 {100 * MIB}", "12 -1")
    assert node.measured(library)[A].containers == (used("resnet", None, processes=2),)


@pytest.mark.parametrize(
    ("pid", "percent", "seconds_ago"), [(11, 30, 60), (11, 30, 10**9), (11, 101, 0), (0, 30, 0), (12, 30, 0)]
)
def test_a_sample_that_says_nothing_of_now_is_no_utilisation(
    node: Node, library: Path, pid: int, percent: int, seconds_ago: float
) -> None:
    node.has("resnet", 11)
    node.says("compute", A, f"11 {MIB}")
    node.says("busy", A, f"{pid} {percent} {now(seconds_ago)}")
    assert node.measured(library)[A].containers == (used("resnet", MIB),)


def test_a_sample_of_before_the_clock_was_set_back_is_no_utilisation(node: Node, library: Path) -> None:
    node.has("resnet", 11)
    node.says("compute", A, f"11 {MIB}")
    node.says("busy", A, f"11 95 {now(-3600)}", f"11 3 {now(1)}")
    assert node.measured(library)[A].containers == (used("resnet", MIB, busy=0.03),)


def test_several_processes_never_keep_a_gpu_busy_for_more_than_all_the_time(node: Node, library: Path) -> None:
    node.has("resnet", 11, 12)
    node.says("compute", A, f"11 {MIB}", f"12 {MIB}")
    node.says("busy", A, f"11 70 {now()}", f"12 70 {now()}")
    assert node.measured(library)[A].containers[0].sm_ratio == 1.0


def test_a_process_that_has_ended_takes_nothing_any_more(node: Node, library: Path) -> None:
    node.says("compute", A, f"11 {MIB}")
    assert node.measured(library)[A] == GpuUse(complete=True)


@pytest.mark.parametrize("unknown", ["no link", "another PID namespace"])
def test_a_process_whose_container_is_not_known_leaves_it_open_who_takes_nothing(
    node: Node, library: Path, unknown: str
) -> None:
    node.has("resnet", 11, logged=unknown != "no link")
    node.says("compute", A, f"{11 if unknown == 'no link' else 0} {MIB}")
    assert node.measured(library)[A] == GpuUse(complete=False)


def test_a_process_that_is_there_and_may_not_be_seen_leaves_it_open_who_takes_nothing(
    node: Node, library: Path
) -> None:
    (node.proc / "11" / "cgroup").mkdir(parents=True)  # cannot be read
    node.says("compute", A, f"11 {MIB}")
    assert node.measured(library)[A] == GpuUse(complete=False)


def test_what_a_container_takes_without_its_main_thread_is_its_own_or_leaves_it_open_who_takes_nothing(
    node: Node, library: Path
) -> None:
    node.has("resnet", 11)
    told = (node.proc / "11" / "cgroup").read_text().replace("0::", "8:pids:")
    has_thread(node.proc, 11, 11, "8:pids:/\n", ENDED)
    node.says("compute", A, f"11 {70 << 30}")
    assert node.measured(library)[A] == GpuUse(complete=False)
    has_thread(node.proc, 11, 12, told, RUNS)
    assert node.measured(library)[A] == GpuUse(containers=(used("resnet", 70 << 30),), complete=True)


def test_what_a_container_takes_is_known_whatever_its_name(node: Node, library: Path) -> None:
    linked(node.logs, "p" * 122, "c" * 63, "a", uid=UID)
    (node.proc / "7").mkdir()
    (node.proc / "7" / "cgroup").write_text(f"0::/kubepods/burstable/pod{UID}/{'a' * 64}\n")
    node.says("clients", A, f"7 {64 << 30}")
    (one,) = node.measured(library)[A].containers
    assert (one.pod, one.container, one.memory_bytes) == ("p" * 122, "c" * 63, 64 << 30)


def test_a_gpu_whose_uuid_is_no_text_hides_no_other_one(node: Node, library: Path) -> None:
    (node.nvml / "gpus").write_bytes(b"\xff" + A.encode()[1:] + b"\n" + B.encode() + b"\n")
    node.has("one", 7)
    node.says("clients", B, "7 100")
    assert set(node.measured(library)) == {B}


def test_a_driver_that_fails_writes_nothing_and_is_logged(
    node: Node, library: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (node.nvml / "down").write_text("9")
    assert node.measured(library) == {}
    assert "Driver Not Loaded" in vars(caplog.records[0])["reason"]
