"""What `gpu-share mps` does where a directory of the node is removed behind its mount."""

import os
import shutil
import signal
import time
from pathlib import Path

import pytest
from msgspec.structs import replace

from plugin.gpus.gpu import VGpuId
from plugin.mps.state import PROGRAM
from plugin.presence import lives
from plugin.shares.parts_file import Held, parts, write_parts
from plugin.state_files import boot_id
from tests.plugin.mps.bench import A, B, Bench, Start
from tests.plugin.mps.isolated import mounted, needs_mounts
from tests.plugin.mps.standin import alive
from tests.plugin.mps.tenants import RESOURCE, held, kubelet
from tests.plugin.waiting import wait_until

pytestmark = pytest.mark.exhaustive


def is_removed(directory: Path) -> bool:
    shutil.rmtree(directory, ignore_errors=True)  # the program writes there all the time
    return not directory.exists()


def pids(bench: Bench) -> dict[str, int]:
    """Name the daemons that live, by the GPU of each."""
    return {Path(one.directory).name: one.pid for one in alive(bench.pipes) if one.role == "daemon"}


def pipes_behind_a_mount(bench: Bench) -> Path:
    """Let the program have its pipe directory where a directory of the node is to be mounted, and give that."""
    host, bench.pipes = bench.root / "host", bench.root / "mount"
    for one in (host, bench.pipes):
        one.mkdir()
    bench.cluster()
    return host


@needs_mounts
def test_where_the_nodes_directory_was_removed_it_ends_once_nobody_holds_a_share(bench: Bench, start: Start) -> None:
    host, bench.state_dir = bench.state_dir, bench.root / "mount"
    host.mkdir()
    bench.state_dir.mkdir()
    with kubelet(bench.root / "kubelet", held("team/a", A, vgpus=5)) as listed:
        running = start(before=mounted(host, bench.state_dir))
        bench.state_dir = host
        bench.is_now("ready", A, B)
        wait_until(lambda: is_removed(host))
        host.mkdir()
        time.sleep(0.5)
        assert running.process.poll() is None
        assert len(list(alive(bench.pipes))) > 0
        listed.clear()
        code, log, other = running.ends()
    assert code == 1
    assert [one["reason"] for one in log if one["message"].startswith("a directory was removed: this ends")]
    assert "somebody removed the directory on the node" in other
    assert (bench.mode(A), bench.mode(B), list(alive(bench.pipes))) == (0, 0, [])


def had(*, init: int, app: int, resource: str) -> bytes:
    one = Held(resource=resource, of=10, pod=1)
    of_init = [(VGpuId(A, index), one) for index in range(app, app + init)]
    return parts([*of_init, *_named(one, app)], vgpus_per_gpu=10, boot_id=boot_id())


def _named(one: Held, count: int) -> list[tuple[VGpuId, Held]]:
    return [(VGpuId(A, index), replace(one, named=True)) for index in range(count)]


@needs_mounts
@pytest.mark.parametrize(
    ("init", "app", "resource"), [(5, 0, RESOURCE), (0, 5, "example.com/earlier"), (3, 2, "example.com/earlier")]
)
def test_where_the_nodes_directory_was_removed_what_was_held_last_is_believed(
    bench: Bench, start: Start, init: int, app: int, resource: str
) -> None:
    host, bench.state_dir = bench.state_dir, bench.root / "mount"
    host.mkdir()
    bench.state_dir.mkdir()
    write_parts(host, had(init=init, app=app, resource=resource))
    listed = [held("team/a", A, vgpus=app, resource=resource)] if app else []
    with kubelet(bench.root / "kubelet", *listed, held("team/b", B, vgpus=1, resource="other.com/x")) as named:
        running = start(before=mounted(host, bench.state_dir))
        bench.state_dir = host
        bench.is_now("ready", A, B)
        time.sleep(0.5)
        wait_until(lambda: is_removed(host))
        host.mkdir()
        time.sleep(0.5)
        assert running.process.poll() is None
        assert (bench.mode(A), len(list(alive(bench.pipes)))) == (3, 2)
        if app:
            named.pop(0)
            assert running.ends()[0] == 1
            assert bench.mode(A) == 0
        else:  # nobody hears when an init container ends: somebody deletes the pod of mps
            running.ends(by=signal.SIGTERM)
            assert bench.mode(A) == 3


@needs_mounts
def test_where_the_nodes_directory_was_removed_it_waits_for_no_gpus(bench: Bench, start: Start) -> None:
    host, bench.state_dir = bench.state_dir, bench.root / "mount"
    host.mkdir()
    bench.state_dir.mkdir()
    bench.has()
    running = start("wait", before=mounted(host, bench.state_dir))
    wait_until(lambda: lives(host, PROGRAM) is True)
    wait_until(lambda: is_removed(host))
    code, _, other = running.ends()
    assert code == 1
    assert "somebody removed the directory on the node" in other


@needs_mounts
def test_where_the_pipe_directory_was_removed_it_ends_once_nobody_holds_a_share(bench: Bench, start: Start) -> None:
    host = pipes_behind_a_mount(bench)
    with kubelet(bench.root / "kubelet", held("team/a", A, vgpus=5)) as listed:
        running = start(before=mounted(host, bench.pipes))
        bench.is_now("ready", A, B)
        served = pids(bench)
        wait_until(lambda: is_removed(host))
        host.mkdir()
        bench.is_now("failed", A, B, why=f"mps.pipeDirectory {bench.pipes}: somebody removed the directory on the node")
        time.sleep(3)  # of thirty looks
        bench.is_now("failed", A, B, why="programs that run go on, and new ones do not find MPS until it is started")
        assert (running.process.poll(), pids(bench)) == (None, served)
        listed.clear()
        code, log, other = running.ends()
        assert code == 1
        assert f"mps.pipeDirectory {bench.pipes}: somebody removed the directory on the node" in other
        assert (bench.mode(A), bench.mode(B), pids(bench)) == (0, 0, {})
        start(before=mounted(host, bench.pipes))  # as the next container
        bench.is_now("ready", A, B)
    assert "in a row" not in str(log)


@needs_mounts
def test_where_the_pipe_directory_was_removed_it_ends_once_no_daemon_of_what_is_held_is_left(
    bench: Bench, start: Start
) -> None:
    host = pipes_behind_a_mount(bench)
    with kubelet(bench.root / "kubelet", held("team/a", A, vgpus=5), held("team/b", B, vgpus=1)):
        running = start(before=mounted(host, bench.pipes))
        bench.is_now("ready", A, B)
        wait_until(lambda: is_removed(host))
        bench.is_now("failed", A, B, why="somebody removed the directory on the node")
        os.kill(pids(bench)[A], signal.SIGKILL)
        bench.is_now("failed", A, why="; the next start is after a pause of")
        time.sleep(1)
        assert (running.process.poll(), list(pids(bench))) == (None, [B])
        os.kill(pids(bench)[B], signal.SIGKILL)
        code, log, _ = running.ends()
    said = [one["reason"] for one in log if one["message"].startswith("a directory was removed: this ends")]
    assert code == 1
    served = [one.partition("served by a daemon: ")[2] for one in said]
    assert {f"{A}, {B}", B} <= {*served}, served  # on a busy machine a daemon may be seen later than the other


@needs_mounts
def test_where_the_directory_of_logs_was_removed_daemons_that_are_in_use_live_on(bench: Bench, start: Start) -> None:
    host = bench.root / "host"
    for one in (host, bench.logs):
        one.mkdir()
    with kubelet(bench.root / "kubelet", held("team/a", A, vgpus=5)) as listed:
        running = start(before=mounted(host, bench.logs))
        bench.is_now("ready", A, B)
        served = pids(bench)
        wait_until(lambda: is_removed(host))
        time.sleep(2)
        assert (running.process.poll(), pids(bench)) == (None, served)
        bench.is_now("ready", A, B)
        listed.clear()
        code, _, other = running.ends()
    assert code == 1
    assert f"--log-dir {bench.logs}: somebody removed the directory on the node" in other


@needs_mounts
def test_where_the_kubelets_socket_is_in_a_removed_directory_it_stays_and_says_once_what_to_do(
    bench: Bench, start: Start
) -> None:
    host, mount = bench.root / "host", bench.root / "mount"
    for one in (host, mount):
        one.mkdir()
    bench.tenants = mount / "kubelet"
    with kubelet(host / "kubelet", held("team/a", A, vgpus=5)):
        running = start(before=mounted(host, mount))
        bench.is_now("ready", A, B)
        shutil.rmtree(host)
        time.sleep(0.5)
        code, log, _ = running.ends(by=signal.SIGTERM)
    said = [one["reason"] for one in log if "delete this pod" in one["message"]]
    assert code == 0
    assert len(said) == 1
    assert f"--pod-resources {mount}: somebody removed the directory on the node" in said[0]
