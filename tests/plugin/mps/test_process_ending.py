"""How `gpu-share mps` ends, in order or because it cannot go on."""

import json
import os
import shutil
import signal
from pathlib import Path

import pytest

from plugin.mps.state import PROGRAM, PublishedMpsFaults
from plugin.presence import lives
from plugin.state_files import boot_id
from tests.plugin.mps.bench import A, B, Bench, Start
from tests.plugin.mps.isolated import ISOLATED, ISOLATED_IF_PERMITTED, needs_mounts
from tests.plugin.mps.standin import alive
from tests.plugin.mps.tenants import held, kubelet
from tests.plugin.waiting import wait_until


@needs_mounts
def test_two_on_one_node_do_not_end_each_others_daemons(bench: Bench, start: Start) -> None:
    start()
    bench.is_now("ready", A, B)
    code, _, other = start().ends()
    assert code == 1
    assert other.endswith("another gpu-share mps runs on this node: end it first")
    assert len(bench.standin.starts()) == 2


@needs_mounts
@pytest.mark.parametrize("removed", ["mps.lock", "."])
def test_one_whose_lock_was_removed_still_runs_for_others_and_is_the_only_one(
    bench: Bench, start: Start, removed: str
) -> None:
    start()
    bench.is_now("ready", A, B)
    (bench.state_dir / removed).rename(bench.root / "before")  # at once: the program writes there all the time
    look = PublishedMpsFaults(bench.state_dir, boot_id=boot_id())
    wait_until(lambda: lives(bench.state_dir, PROGRAM) is True and look([A, B]) == {})
    assert start().ends()[0] == 1
    assert len(bench.standin.starts()) == 2


@needs_mounts
def test_it_ends_while_it_waits_for_gpus(bench: Bench, start: Start) -> None:
    bench.has()
    running = start("wait")
    assert running.process.stderr is not None
    assert "NVML sees no GPU" in json.loads(running.process.stderr.readline())["reason"]
    assert running.ends(by=signal.SIGTERM) == (0, [], "")


@needs_mounts
def test_it_ends_while_nvml_hangs_at_the_start(bench: Bench, start: Start) -> None:
    (bench.nvml / "hangs").write_text("1")
    running = start()
    wait_until((bench.state_dir / "mps.lock").exists)
    wait_until(lambda: len(list(Path(f"/proc/{running.process.pid}/task").iterdir())) > 1)
    assert running.ends(by=signal.SIGTERM) == (0, [], "")
    assert bench.standin.starts() == []


@needs_mounts
def test_a_nvml_that_hangs_later_keeps_no_daemon_from_its_watch_and_the_process_from_no_end(
    bench: Bench, start: Start
) -> None:
    running = start()
    bench.is_now("ready", A, B)
    (bench.nvml / "hangs").write_text("1")
    for one in alive(bench.pipes):
        if one.directory.endswith(A):
            os.kill(one.pid, signal.SIGKILL)
    bench.is_now("starting", A)
    checked = bench.state().gpus[B].checked_seconds
    wait_until(lambda: bench.state().gpus[B].checked_seconds > checked + 0.5)
    assert bench.faults(B) == [None]
    with kubelet(bench.root / "kubelet"):
        code, log, _ = running.ends(by=signal.SIGTERM)
    assert code == 0
    assert log[-1]["message"].startswith("compute modes not restored: NVML does not answer")
    assert list(alive(bench.pipes)) == []


@needs_mounts
@pytest.mark.skipif(shutil.which("setpriv") is None, reason="needs setpriv to give a right up")
def test_without_the_right_to_mount_it_ends_with_one_line_and_changes_nothing(bench: Bench, start: Start) -> None:
    code, _, other = start(before=(*ISOLATED, "setpriv", "--bounding-set=-sys_admin")).ends()
    assert code == 1
    assert other.startswith("gpu-share mps: ")
    assert other.endswith("run gpu-share mps as root in a privileged container")
    assert (bench.mode(A), bench.standin.starts()) == (0, [])


def test_without_nvidias_program_it_ends_with_one_line(bench: Bench, start: Start) -> None:
    bench.standin.program.unlink()
    code, _, other = start(before=ISOLATED_IF_PERMITTED).ends()
    assert code == 1
    assert "nvidia-cuda-mps-control: not found: install the NVIDIA driver" in other


@pytest.mark.parametrize(
    ("wrong", "code", "sentence"),
    [
        ("no gpu", 1, "gpu-share mps: no GPU to share: NVML sees no GPU"),
        ("policies", 2, "gpu-share mps: "),
        ("state dir", 1, "not a directory that can be written to"),
    ],
)
def test_what_cannot_be_used_is_one_line(bench: Bench, start: Start, wrong: str, code: int, sentence: str) -> None:
    match wrong:
        case "no gpu":
            bench.has()
        case "policies":
            (bench.policies / "_cluster.yaml").write_text("mps: 1\n")
        case "state dir":
            bench.state_dir.write_text("")
    ended, _, other = start(before=ISOLATED_IF_PERMITTED).ends()
    assert ended == code
    assert sentence in other
    assert "\n" not in other
    assert list(alive(bench.pipes)) == []


@needs_mounts
def test_a_kubelet_that_is_down_at_the_end_is_no_reason_to_take_the_mode_from_those_it_named(
    bench: Bench, start: Start
) -> None:
    (bench.policies / "_default.yaml").write_text('share: {maximum: "0.2"}\n')
    bench.holds(A, vgpus=5)
    with kubelet(bench.root / "kubelet", held("team/a", A, vgpus=5)):
        running = start()
        bench.is_now("ready", A, B)
        wait_until(lambda: "set_default_active_thread_percentage 50" in bench.standin.commands(gpu=A))
    assert running.ends(by=signal.SIGTERM)[0] == 0
    assert (bench.mode(A), bench.mode(B)) == (3, 0)


@needs_mounts
def test_while_the_kubelet_has_never_said_who_holds_a_share_no_mode_is_taken(bench: Bench, start: Start) -> None:
    running = start()
    bench.is_now("ready", A, B)
    code, log, _ = running.ends(by=signal.SIGTERM)
    assert (code, bench.mode(A), bench.mode(B)) == (0, 3, 3)
    (kept,) = [line for line in log if line["message"].startswith("compute modes stay exclusive: the kubelet has not")]
    assert kept["gpus"] == [A, B]
    with kubelet(bench.root / "kubelet"):
        again = start()
        bench.is_now("ready", A, B)
        assert again.ends(by=signal.SIGTERM)[0] == 0
    assert (bench.mode(A), bench.mode(B)) == (0, 0)
