"""`gpu-share mps` as a process of its own, each in a mount namespace of its own."""

import shutil
import signal
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from plugin.mps.daemon import TIMING
from plugin.mps.mounts import mounts
from plugin.mps.state import STATE_FILE
from plugin.simulated.device_manager import Holding
from plugin.state_files import boot_id
from plugin.usage.record import GpuUse, read_use
from tests.plugin.mps.bench import A, B, Bench, Running, Start
from tests.plugin.mps.conftest import names
from tests.plugin.mps.isolated import ISOLATED, needs_mounts
from tests.plugin.mps.standin import alive
from tests.plugin.mps.tenants import Claimed, claimed, held, kubelet
from tests.plugin.waiting import wait_until


@needs_mounts
@pytest.mark.usefixtures("idle")
def test_the_real_command_keeps_a_daemon_for_each_gpu_and_leaves_nothing_at_its_end(bench: Bench) -> None:
    bench.mode(B, 2)
    options = {
        "policies": bench.policies,
        "state-dir": bench.state_dir,
        "log-dir": bench.logs,
        "control": bench.standin.program,
        "pod-resources": bench.root / "kubelet",
    }
    arguments = [f"--{name}={value}" for name, value in options.items()]
    closed = ("sh", "-c", 'umask 077; exec "$0" "$@"')
    running = Running(bench, "-m", "gpu_share", "mps", *arguments, before=(*ISOLATED, *closed))
    try:
        bench.is_now("ready", A, B)
        assert bench.faults(A, B) == [None, None]
        assert (bench.mode(A), bench.mode(B)) == (3, 3)
        assert {path.stat().st_mode & 0o777 for path in (bench.state_dir, bench.pipes / A)} == {0o755}
        assert (bench.state_dir / STATE_FILE).stat().st_mode & 0o777 == 0o644
        assert sorted(one.directory for one in alive(bench.pipes)) == [f"{bench.pipes}/{uuid}" for uuid in (A, B)]
        code, log, other = running.ends(by=signal.SIGTERM)
    finally:
        running.close()
    assert (code, other) == (0, "")
    assert [line["message"] for line in log if line["level"] == "error"] == []
    assert (bench.mode(A), bench.mode(B)) == (0, 2)
    assert [gpu.state for gpu in bench.state().gpus.values()] == ["stopped", "stopped"]
    assert list(alive(bench.pipes)) == []
    measured = {"use.json", ".use.json.reserve"}  # if it ran for long enough
    left = {path.name for path in bench.state_dir.iterdir()}
    assert left - measured == {"mps.json", ".mps.json.reserve", "mps.lock"}
    assert names(bench.logs) == [A, B]
    assert [names(bench.pipes / uuid) for uuid in (A, B)] == [[], []]


@needs_mounts
@pytest.mark.usefixtures("idle")
def test_what_a_killed_run_left_is_cleaned_up_by_the_next(bench: Bench, start: Start) -> None:
    bench.standin.behave(litter=True, orphan=True)
    bench.mode(A, 2)
    first = start()
    bench.is_now("ready", A, B)
    wait_until(lambda: len(list(alive(bench.pipes))) == 4)
    first.process.kill()
    first.process.wait()
    left = {one.pid for one in alive(bench.pipes)}
    assert len(left) == 4
    bench.standin.behave()
    bench.cluster("nodes: [{indexes: [1], offer: whole}]\n")  # the second GPU is no longer ours
    second = start()
    wait_until(lambda: list(bench.state().gpus) == [A])
    bench.is_now("ready", A)
    wait_until(lambda: {one.pid for one in alive(bench.pipes)}.isdisjoint(left))
    wait_until(lambda: (bench.mode(A), bench.mode(B)) == (3, 0))
    assert names(bench.pipes / B) == []
    assert second.ends(by=signal.SIGTERM)[0] == 0
    assert bench.mode(A) == 2


@needs_mounts
@pytest.mark.usefixtures("idle")
@pytest.mark.skipif(shutil.which("nsenter") is None, reason="needs nsenter to look at the mounts")
def test_the_shared_memory_of_a_killed_run_is_used_by_the_next_and_goes_with_it(bench: Bench, start: Start) -> None:
    with ExitStack() as stack:
        node = stack.enter_context(subprocess.Popen([*ISOLATED, "sleep", "600"]))
        stack.callback(node.kill)
        wait_until(lambda: Path(f"/proc/{node.pid}/comm").read_text() == "sleep\n")  # in its own namespace by then
        inside = ("nsenter", "--mount", f"--target={node.pid}")

        def mounted() -> list[int]:
            listed = mounts(Path(f"/proc/{node.pid}/mountinfo"))
            return [one.id for one in listed if one.point == f"{bench.pipes}/shm"]

        first = start(before=inside)
        bench.is_now("ready", A, B)
        before = mounted()
        assert len(before) == 1
        first.process.kill()
        first.process.wait()
        (bench.state_dir / STATE_FILE).unlink()
        second = start(before=inside)
        bench.is_now("ready", A, B)
        assert mounted() == before
        assert second.ends(by=signal.SIGTERM)[0] == 0
        assert mounted() == []


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


@needs_mounts
@pytest.mark.parametrize("holding", [held("team/a", A, vgpus=5), claimed("team/a", A, milli=500)], ids=["vgpus", "dra"])
def test_a_gpu_that_somebody_holds_a_share_of_stays_exclusive_at_the_end(
    bench: Bench, start: Start, holding: Holding | Claimed
) -> None:
    bench.holds(A, vgpus=5)
    with kubelet(bench.root / "kubelet", holding) as tenants:
        first = start()
        bench.is_now("ready", A, B)
        code, log, _ = first.ends(by=signal.SIGTERM)
        assert (code, bench.mode(A), bench.mode(B)) == (0, 3, 0)
        (kept,) = [line for line in log if line["message"].startswith("compute mode stays exclusive")]
        assert (kept["gpu"], kept["tenants"]) == (A, ["team/a/main"])
        tenants.clear()
        second = start()
        bench.is_now("ready", A, B)
        assert second.ends(by=signal.SIGTERM)[0] == 0
    assert (bench.mode(A), bench.mode(B)) == (0, 0)


def test_an_end_has_the_time_for_a_daemon_that_hangs_as_it_starts() -> None:
    pod_seconds = 60
    assert TIMING.start + TIMING.quit + 2 * TIMING.kill < TIMING.end < pod_seconds - 2 * TIMING.answer


@needs_mounts
def test_the_ceiling_follows_the_policies_and_what_tenants_hold(bench: Bench, start: Start) -> None:
    (bench.policies / "_default.yaml").write_text('share: {maximum: "0.2"}\n')
    with kubelet(bench.root / "kubelet", held("team/a", A, vgpus=5)) as tenants:
        start()
        wait_until(lambda: "set_default_active_thread_percentage 50" in bench.standin.commands(gpu=A))
        wait_until(lambda: "set_default_active_thread_percentage 20" in bench.standin.commands(gpu=B))
        tenants.clear()
        wait_until(lambda: "set_default_active_thread_percentage 20" in bench.standin.commands(gpu=A))
        (bench.policies / "_default.yaml").write_text('share: {maximum: "0.7"}\n')
        wait_until(lambda: "set_default_active_thread_percentage 70" in bench.standin.commands(gpu=A))


@needs_mounts
def test_policies_that_break_while_it_runs_are_said_once_and_change_nothing(bench: Bench, start: Start) -> None:
    running = start()
    bench.is_now("ready", A, B)
    (bench.policies / "_default.yaml").write_text("nonsense: 1\n")
    looks = len(bench.standin.commands())
    wait_until(lambda: len(bench.standin.commands()) > looks + 8)
    assert bench.faults(A, B) == [None, None]
    _, log, _ = running.ends(by=signal.SIGINT)
    (said,) = [line for line in log if line["message"] == "policy file broken"]
    assert (said["file"], said["line"], said["field"]) == (f"{bench.policies}/_default.yaml", 1, "nonsense")


@needs_mounts
def test_a_node_without_gpus_for_mps_says_so_once_and_idles(bench: Bench, start: Start) -> None:
    running = start(strategy="time-slicing")
    wait_until(lambda: bench.state().boot_id == boot_id())
    assert bench.state().gpus == {}
    (bench.state_dir / STATE_FILE).unlink()
    wait_until((bench.state_dir / STATE_FILE).exists)
    assert bench.faults(A) == [
        "gpu-share mps runs no daemon for this GPU: does it have the same policies and --strategy as the plugin?"
    ]
    code, log, other = running.ends(by=signal.SIGTERM)
    assert (code, other) == (0, "")
    said = [line["message"] for line in log]
    assert said.count("no GPU of this node is shared by MPS: there is nothing to do until one comes") == 1
    assert not (bench.pipes / "shm").exists()


def test_what_containers_take_of_the_gpus_is_measured(bench: Bench, start: Start) -> None:
    (bench.nvml / f"compute-{A}").write_text("4294967294 1048576\n")  # which has ended
    (bench.nvml / f"clients-{A}").touch()
    (bench.root / "containers").mkdir()
    start()
    bench.is_now("ready", A)
    wait_until(lambda: read_use(bench.state_dir, boot_id=boot_id()) is not None)
    use = read_use(bench.state_dir, boot_id=boot_id())
    assert use is not None
    assert use.gpus == {A: GpuUse(complete=True), B: GpuUse(complete=False)}
