"""The demo goes through the whole chain, and leaves nothing behind."""

import contextlib
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.in_terminal import in_terminal

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(scope="module")
def shown() -> str:
    with tempfile.TemporaryDirectory(prefix="gs-") as directory:
        ran = subprocess.run(
            [sys.executable, "-m", "gpu_share", "demo"],
            cwd=ROOT,
            env={**os.environ, "TMPDIR": directory},
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        assert ran.stderr == ""
        assert list(Path(directory).iterdir()) == []
        assert not any(directory in line for line in _command_lines())
    return ran.stdout


def _command_lines() -> list[str]:
    lines = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            lines.append(path.read_bytes().decode(errors="replace"))
    return lines


def test_every_example_is_shown_with_its_verdict(shown: str) -> None:
    for number, verdict in enumerate(["granted"] * 4 + ["denied"] * 3, start=1):
        section = shown.partition(f"\n{number}. ")[2].splitlines()
        assert section[1].startswith(verdict)


def test_what_a_container_receives_is_shown(shown: str) -> None:
    assert "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=20" in shown
    assert "GPU_SHARE_MEMORY_MIB=28728" in shown
    assert "+    - --per_process_gpu_memory_fraction=0.18" in shown


def test_a_share_by_dra_waits_until_a_gpu_has_room(shown: str) -> None:
    lines = shown.partition("By DRA, the scheduler chooses the GPU")[2].splitlines()[1:6]
    gpus = [line.rpartition(" on ")[2] for line in lines if " on " in line]
    assert gpus[0] == gpus[1] != gpus[2] == gpus[3]
    assert lines[3] == "  0.8: no GPU has that much left, the pod is Pending, and none fails"
    assert lines[4].startswith("  0.9 ends: 0.8 on GPU-")


def test_denials_say_code_and_fix(shown: str) -> None:
    for code in ("ShareAboveMaximum", "ShareMalformed", "ReservedEnvironment"):
        assert f"denied, 403 {code}" in shown
    assert 'Ask for "0.5" or less.' in shown


def test_the_node_is_drawn_at_the_end(shown: str) -> None:
    picture = shown.partition("The node")[2]
    assert "A  A  B  B  B  B  B  C  C  C   10 of 10 vGPUs" in picture
    assert "D  D  D  D ░░░░░░░░░░░░░░░░░░  4 of 10 vGPUs" in picture


def test_the_picture_of_the_readme_is_the_demos(shown: str) -> None:
    readme = (ROOT / "README.md").read_text()
    picture = [line.rstrip() for line in shown.partition("The node")[2].splitlines()[1:7]]
    assert "\n".join(picture) in readme


def test_a_gpu_that_fails_is_told_as_status_tells_it(shown: str) -> None:
    assert "10 of 20 vGPUs are left" in shown
    assert "cause: the driver reported XID 79" in shown
    assert "recovers once" in shown


def test_on_a_terminal_no_line_is_longer_and_no_word_is_broken(shown: str) -> None:
    written = in_terminal(80, "demo", NO_COLOR="1", TERM="xterm")
    assert [line for line in written if re.search(r"\x1b\[(\d+;)*[349][0-7]m", line)] == []  # a colour
    lines = [re.sub(r"\x1b\[[\d;]*m", "", line) for line in written]
    assert [line for line in lines if len(line) > 80 and len(line.split()) > 1] == []
    assert _words(lines) <= _words(shown.splitlines())


def _words(lines: list[str]) -> set[str]:
    """List the words, but for that of the demo's own temporary directory."""
    return {word for line in lines for word in re.findall(r"(?<!gpu-share-)\b[a-z]{4,}", line)}


@pytest.mark.exhaustive
def test_options_in_the_environment_do_not_change_what_the_demo_shows(shown: str) -> None:
    environment = os.environ | {"GPU_SHARE_STRATEGY": "whole", "GPU_SHARE_WORKERS": "nonsense"}
    ran = subprocess.run(
        [sys.executable, "-m", "gpu_share", "demo"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert len(ran.stdout.splitlines()) == len(shown.splitlines())


@pytest.mark.parametrize("length", [56, 62, 70])  # at the first of which the longest path has 108 bytes
def test_where_temporary_files_have_too_long_paths_for_sockets_nothing_is_started(length: int) -> None:
    with tempfile.TemporaryDirectory(prefix="gs-", dir="/tmp") as base:
        directory = Path(base, "d" * (length - len(base) - 1))
        directory.mkdir()
        ran = subprocess.run(
            [sys.executable, "-m", "gpu_share", "demo"],
            cwd=ROOT,
            env={**os.environ, "TMPDIR": str(directory)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert list(directory.iterdir()) == []
    assert (ran.returncode, ran.stdout, ran.stderr.count("\n")) == (1, "", 1)
    assert "a socket's path has at most 107 bytes, this has 1" in ran.stderr
    assert "set TMPDIR to a directory with a shorter path" in ran.stderr


@pytest.mark.exhaustive
def test_a_node_that_shares_nothing_ends_the_demo_with_one_line(tmp_path: Path) -> None:
    (tmp_path / "_cluster.yaml").write_text("nodes: [{offer: none}]\n")
    ran = subprocess.run(
        [sys.executable, "-m", "gpu_share", "demo", "--policies", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 1
    assert ran.stderr.count("\n") == 1
    assert "the plugin did not advertise gpu-share.dev/vgpu" in ran.stderr
