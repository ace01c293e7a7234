"""`gpu-share mps` and GPUs that come, vanish, are reset or cannot be shared by MPS."""

import signal
import time

import pytest

from tests.plugin.mps.bench import A, B, Bench, Start
from tests.plugin.mps.isolated import needs_mounts
from tests.plugin.mps.standin import alive
from tests.plugin.waiting import wait_until


@needs_mounts
def test_one_gpu_that_cannot_be_shared_leaves_the_others_ready_and_its_state_says_what_to_do(
    bench: Bench, start: Start
) -> None:
    (bench.nvml / f"refuse-{B}").write_text("4")
    start()
    bench.is_now("ready", A)
    bench.is_now("failed", B, why="run gpu-share mps as root in a privileged container")
    assert bench.faults(A) == [None]
    assert {entry["gpu"] for entry in bench.standin.starts()} == {A}
    (bench.nvml / f"refuse-{B}").unlink()
    bench.is_now("ready", A, B)


@needs_mounts
def test_a_mode_that_is_lost_is_set_again_and_where_that_fails_no_container_may_start(
    bench: Bench, start: Start
) -> None:
    start()
    bench.is_now("ready", A, B)
    bench.mode(A, 0)  # a reset of the GPU
    wait_until(lambda: bench.mode(A) == 3)
    (bench.nvml / "down").write_text("9")
    bench.is_now("failed", A, B, why="load the NVIDIA driver")
    assert len(list(alive(bench.pipes))) == 2
    (bench.nvml / "down").unlink()
    bench.is_now("ready", A, B)
    assert len(bench.standin.starts()) == 2


@needs_mounts
def test_a_gpu_that_mps_cannot_share_has_no_daemon_and_keeps_its_mode(bench: Bench, start: Start) -> None:
    (bench.nvml / f"old-{B}").write_text("1")
    running = start()
    bench.is_now("ready", A)
    assert list(bench.state().gpus) == [A]
    assert bench.mode(B) == 0
    _, log, _ = running.ends(by=signal.SIGTERM)
    (skipped,) = [line for line in log if line["message"] == "GPU skipped"]
    assert f"{B} is older than Volta, and MPS limits nothing there: share it by time-slicing" in skipped["reason"]


@needs_mounts
def test_a_gpu_that_is_divided_too_finely_has_its_daemon_ready_for_the_number_that_is_put_right(
    bench: Bench, start: Start
) -> None:
    bench.cluster("vgpusPerGpu: 61\n")  # one more than MPS serves clients
    start()
    bench.is_now("ready", A, B)


@needs_mounts
def test_a_gpu_that_comes_later_gets_its_daemon(bench: Bench, start: Start) -> None:
    bench.has(A)
    start()
    bench.is_now("ready", A)
    assert list(bench.state().gpus) == [A]
    bench.has(A, B)
    bench.is_now("ready", A, B)


@needs_mounts
@pytest.mark.parametrize("offer", ["whole", "none", "time-slicing"])
def test_a_gpu_of_another_strategy_is_left_alone_when_it_takes_the_number_of_one_that_vanished(
    bench: Bench, start: Start, offer: str
) -> None:
    bench.cluster(f"nodes: [{{indexes: [1], offer: {offer}}}]\n")
    running = start()
    bench.is_now("ready", A)
    bench.has(B)
    wait_until(lambda: bench.state().gpus[A].state == "failed")
    time.sleep(0.5)  # a few looks at which GPUs there are
    assert (bench.mode(B), list(bench.state().gpus)) == (0, [A])
    bench.has(A, B)
    bench.is_now("ready", A)
    running.ends(by=signal.SIGTERM)
