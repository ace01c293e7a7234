"""Mounts for real, each test in a mount namespace of its own; skipped where making one is not permitted."""

import os
import subprocess
import sys
from pathlib import Path

from tests.plugin.mps.bench import Bench, Start, ready_in_a_container
from tests.plugin.mps.isolated import ISOLATED, ROOT, needs_mounts
from tests.plugin.mps.standin import alive

START = """
import logging, os, subprocess, sys
from pathlib import Path
from plugin.mps.mounts import BIND, NOSUID, REMOUNT, mount
from plugin.mps.no_links import follow_no_links
logging.basicConfig(format="%(message)s: %(reason)s", stream=sys.stdout)
pipes = Path(sys.argv[1])
"""


def isolated(pipes: Path, program: str) -> str:
    command = [*ISOLATED, sys.executable, "-W", "error", "-c", START + program, str(pipes)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=30, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@needs_mounts
def test_a_link_in_the_place_of_a_pid_file_is_not_followed_and_what_else_the_mount_was_it_stays(pipes: Path) -> None:
    kept = pipes.parent / "kept"
    kept.write_text("the node's")
    (pipes / "GPU-a").mkdir()
    (pipes / "GPU-a" / "pid").symlink_to(kept)
    said = isolated(
        pipes,
        """
mount(str(pipes), str(pipes), flags=BIND)
mount("", str(pipes), flags=REMOUNT | BIND | NOSUID)
follow_no_links(pipes)
follow_no_links(pipes)
print(subprocess.run(["sh", "-c", f"echo 1 > {pipes}/GPU-a/pid"], stderr=subprocess.PIPE, text=True).stderr)
print(next(line.split()[5] for line in open("/proc/self/mountinfo") if f" {pipes} " in line))
""",
    )
    assert "Too many levels of symbolic links" in said
    assert said.splitlines()[-1] == "rw,nosuid,relatime,nosymfollow"
    assert kept.read_text() == "the node's"
    (pipes / "GPU-a" / "pid").write_text("ours")  # elsewhere nothing has changed
    assert kept.read_text() == "ours"


@needs_mounts
def test_where_the_directory_is_no_mount_or_cannot_be_one_a_warning_says_so(pipes: Path) -> None:
    said = isolated(pipes, "follow_no_links(pipes)\n")
    assert said.startswith(
        "links that tenants put into pipe directories are followed: it is not a mount of its own: run"
    )
    said = isolated(
        pipes,
        """
from plugin.mps import mounts
mount(str(pipes), str(pipes), flags=BIND)
mounts.NOSYMFOLLOW = 0  # as a kernel takes it that does not know it
follow_no_links(pipes)
os.setuid(65534)
follow_no_links(pipes)
""",
    )
    assert [line.partition(": ")[2] for line in said.splitlines()] == [
        "the kernel cannot do it: have Linux 5.10 or later",
        "Operation not permitted",
    ]


@needs_mounts
def test_its_daemons_follow_no_link_in_their_directories(bench: Bench, start: Start) -> None:
    on_node = ready_in_a_container(bench, start)
    for one in alive(bench.pipes):
        (line,) = (
            line for line in Path(f"/proc/{one.pid}/mountinfo").read_text().splitlines() if f" {bench.pipes} " in line
        )
        assert "nosymfollow" in line.split()[5]
    assert not os.statvfs(on_node).f_flag & 0x2000
