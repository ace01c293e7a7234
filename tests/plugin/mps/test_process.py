"""`gpu-share mps` as a process of its own, each in a mount namespace of its own."""

import shutil
import signal
import subprocess
from contextlib import ExitStack
from pathlib import Path

import pytest

from plugin.mps.mounts import mounts
from plugin.mps.state import STATE_FILE
from plugin.mps.timing import TIMING
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
        "lib-dir": bench.root / "lib",
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
def test_a_node_without_gpus_for_mps_says_so_once_and_idles(bench: Bench, start: Start) -> None:
    running = start(strategy="time-slicing")
    wait_until(lambda: bench.state().boot_id == boot_id())
    assert bench.state().gpus == {}
    (bench.state_dir / STATE_FILE).unlink()
    wait_until((bench.state_dir / STATE_FILE).exists)
    (why,) = bench.faults(A)
    assert why is not None
    assert why.startswith("gpu-share mps runs no daemon for this GPU: it looks for new ones twice a minute")
    assert why.endswith("does it have the same policies and --strategy as the plugin?")
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
