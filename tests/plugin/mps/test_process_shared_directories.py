"""What tenants of a node share by MPS, and what is left of it: with a tmpfs that is mounted for real."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import which
from typing import Any

import pytest

from tests.plugin.mps.bench import A, B, Bench, Start
from tests.plugin.mps.conftest import close_to_a_user
from tests.plugin.mps.isolated import ISOLATED, ROOT, needs_mounts
from tests.plugin.mps.tenants import claimed, held, kubelet
from tests.plugin.waiting import wait_until

pytestmark = [
    pytest.mark.exhaustive,
    needs_mounts,
    pytest.mark.skipif(
        os.geteuid() != 0 or which("nsenter") is None or which("setpriv") is None,
        reason="needs root, nsenter and setpriv to be a tenant",
    ),
]
SEVERAL_LOOKS_SECONDS = 2.0

Shell = Callable[[str], "subprocess.CompletedProcess[str]"]


@contextmanager
def node() -> Iterator[tuple[str, ...]]:
    """Give what runs a program in a mount namespace that lasts."""
    process = subprocess.Popen([*ISOLATED, "sleep", "600"])
    try:
        wait_until(lambda: Path(f"/proc/{process.pid}/comm").read_text() == "sleep\n")
        yield ("nsenter", "--mount", f"--target={process.pid}")
    finally:
        process.kill()
        process.wait()


def shell(inside: tuple[str, ...], *, user: int = 0) -> Shell:
    before = ("setpriv", f"--reuid={user}", "--clear-groups") if user else ()

    def run(script: str) -> "subprocess.CompletedProcess[str]":
        command = [*inside, *before, "sh", "-c", script]
        return subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)

    return run


def removed(log: list[dict[str, Any]]) -> list[int]:
    wanted = "removed what ended containers left in the shared memory of MPS"
    return [line["bytes"] for line in log if line["message"] == wanted]


@pytest.mark.parametrize("holding", [held("team/a", A, vgpus=2), claimed("team/a", A, milli=200)], ids=["vgpus", "dra"])
def test_what_a_pod_leaves_in_the_shared_memory_goes_once_no_container_holds_a_share(
    bench: Bench, start: Start, holding: Any
) -> None:
    with kubelet(bench.root / "kubelet", holding) as listed, node() as inside:
        running = start(before=inside)
        bench.is_now("ready", A, B)
        shm = bench.pipes / "shm"
        killed = f"head -c 8M /dev/zero >{shm}/psm_1; mkdir -p {shm}/torch/d; echo >{shm}/torch/d/x; kill -9 $$"
        shell(inside, user=1000)(killed)
        time.sleep(SEVERAL_LOOKS_SECONDS)
        assert shell(inside)(f"ls {shm}").stdout.split() == ["psm_1", "torch"]
        listed.clear()
        wait_until(lambda: shell(inside)(f"ls {shm}").stdout == "")
        assert shell(inside, user=2000)(f"touch {shm}/mine").returncode == 0
        (freed,) = removed(running.ends(by=15)[1])
        assert freed >= 8 << 20


@pytest.mark.usefixtures("idle")
def test_nothing_is_removed_while_a_container_that_nobody_knows_of_has_the_shared_memory(
    bench: Bench, start: Start
) -> None:
    with node() as inside:
        start(before=inside)
        bench.is_now("ready", A, B)
        shm = bench.pipes / "shm"
        container = subprocess.Popen(
            [*inside, *ISOLATED, "sh", "-c", f"mount --bind {shm} /dev/shm && touch /dev/shm/x && echo made && read _"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert container.stdout is not None
        assert container.stdout.readline() == "made\n"
        time.sleep(SEVERAL_LOOKS_SECONDS)
        assert shell(inside)(f"ls {shm}").stdout.split() == ["x"]
        container.communicate("\n")
        wait_until(lambda: shell(inside)(f"ls {shm}").stdout == "")


@pytest.mark.parametrize("closed", ["chmod 700 {pipes}", "chown 1234:1234 {pipes}; chmod 700 {pipes}", "acl"])
def test_a_pipe_directory_that_root_in_a_container_closed_to_other_users_is_open_to_them_again(
    bench: Bench, start: Start, closed: str
) -> None:
    with kubelet(bench.root / "kubelet", held("team/a", A, vgpus=2)):
        running = start()
        bench.is_now("ready", A, B)
        if closed == "acl":
            close_to_a_user(bench.pipes)
        else:
            assert shell(())(closed.format(pipes=bench.pipes)).returncode == 0
        wait_until(lambda: shell((), user=1000)(f"ls {bench.pipes}").returncode == 0)
        status = bench.pipes.stat()
        assert (oct(status.st_mode), status.st_uid, os.listxattr(bench.pipes)) == ("0o40755", 0, [])
        assert "mps.pipeDirectory was closed to some users: opened again" in {
            line["message"] for line in running.ends(by=15)[1]
        }


@pytest.mark.parametrize("closed", ["chmod 755 {shm}", "chown 1000 {shm}", "acl"])
def test_shared_memory_that_root_in_a_container_closed_to_other_users_is_open_to_them_again(
    bench: Bench, start: Start, closed: str
) -> None:
    with kubelet(bench.root / "kubelet", held("team/a", A, vgpus=2)), node() as inside:
        running = start(before=inside)
        bench.is_now("ready", A, B)
        shm = bench.pipes / "shm"
        if closed == "acl":
            script = f"import sys; from tests.plugin.mps.conftest import close_to_a_user as f; f('{shm}')"
            subprocess.run([*inside, sys.executable, "-c", script], check=True, cwd=ROOT)
        else:
            assert shell(inside)(closed.format(shm=shm)).returncode == 0
        wait_until(lambda: shell(inside)(f"stat -c %a:%u:%A {shm}").stdout == "1777:0:drwxrwxrwt\n")
        wait_until(lambda: shell(inside, user=1000)(f"touch {shm}/x").returncode == 0)
        assert "the shared memory of MPS was closed to some users: opened again" in {
            line["message"] for line in running.ends(by=15)[1]
        }


def test_a_mount_of_any_name_keeps_no_daemon_from_starting(bench: Bench, start: Start, tmp_path: Path) -> None:
    (odd := tmp_path / "a\u2028b\rc").mkdir()
    start(before=(*ISOLATED, "sh", "-c", 'mount -t tmpfs tenant "$0" && exec "$@"', str(odd)))
    bench.is_now("ready", A, B)
