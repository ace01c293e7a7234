"""No GPU of which a container may hold a share gets back a compute mode with which programs come past MPS."""

import signal
import time
from collections.abc import Iterator

import pytest

from plugin.gpus.gpu import label_of
from plugin.simulated.device_manager import Holding
from tests.plugin.mps.bench import A, B, Bench, Start
from tests.plugin.mps.isolated import needs_mounts
from tests.plugin.mps.standin import alive
from tests.plugin.mps.tenants import Claimed, claimed, held, kubelet
from tests.plugin.waiting import wait_until

Listed = list[Holding | Claimed]

pytestmark = [needs_mounts, pytest.mark.exhaustive]


@pytest.fixture(autouse=True)
def listed(bench: Bench) -> Iterator[Listed]:
    bench.holds(A, vgpus=5)
    with kubelet(bench.root / "kubelet", held("team/a", A, vgpus=5)) as listed:
        yield listed


def ended(bench: Bench, start: Start, by: int) -> None:
    running = start()
    bench.is_now("ready", A, B)
    running.ends(by=by)
    assert bench.mode(A) == 3


@pytest.mark.parametrize("by", [signal.SIGTERM, signal.SIGKILL])
def test_a_run_that_can_start_no_daemon_takes_no_mode(bench: Bench, start: Start, by: int) -> None:
    ended(bench, start, by)
    bench.standin.program.rename(bench.root / "elsewhere")
    assert start().ends()[0] == 1
    assert (bench.mode(A), bench.mode(B)) == (3, 0)


def test_a_gpu_that_this_run_leaves_out_keeps_its_mode(bench: Bench, start: Start) -> None:
    ended(bench, start, signal.SIGTERM)
    bench.has(B)
    running = start()
    bench.is_now("ready", B)
    bench.has(A, B)
    running.ends(by=signal.SIGTERM)
    assert (bench.mode(A), bench.mode(B)) == (3, 0)


@pytest.mark.parametrize("resource", ["example.com/before", "gpu-share.dev/vgpu-model-l4"])
def test_a_gpu_that_is_held_as_a_resource_of_another_name_keeps_its_mode_and_its_ceiling(
    bench: Bench, start: Start, listed: Listed, resource: str
) -> None:
    bench.holds(A, vgpus=5, resource=resource)
    listed[:] = [held("team/a", A, vgpus=5, resource=resource), held("team/others", B, vgpus=1, resource="other.com/x")]
    bench.cluster("resourceNames: {mps: example.com/now}\n")
    (bench.policies / "_default.yaml").write_text('share: {maximum: "0.2"}\n')
    running = start()
    bench.is_now("ready", A, B)
    wait_until(lambda: "set_default_active_thread_percentage 50" in bench.standin.commands(gpu=A))
    wait_until(lambda: "set_default_active_thread_percentage 20" in bench.standin.commands(gpu=B))
    running.ends(by=signal.SIGTERM)
    assert (bench.mode(A), bench.mode(B)) == (3, 0)


def test_those_who_share_a_gpu_another_way_by_now_keep_it_from_no_mode(
    bench: Bench, start: Start, listed: Listed
) -> None:
    ended(bench, start, signal.SIGTERM)
    resource = "gpu-share.dev/vgpu-timesliced"
    bench.holds(A, vgpus=5, resource=resource)
    listed[:] = [held("team/a", A, vgpus=5, resource=resource)]
    bench.cluster("nodes: [{indexes: [0], offer: time-slicing}]\n")
    start()
    bench.is_now("ready", B)
    wait_until(lambda: bench.mode(A) == 0)


def test_those_who_have_devices_of_dra_another_way_by_now_keep_it_from_no_mode(
    bench: Bench, start: Start, listed: Listed
) -> None:
    ended(bench, start, signal.SIGTERM)
    whole, in_turn = (f"{label_of(A)}-{kind}-0" for kind in ("1000m-whole", "500m-timesliced"))
    listed[:] = [Claimed("team/a", whole), Claimed("team/b", in_turn), claimed("team/c", A, milli=500)]
    bench.cluster("nodes: [{indexes: [0], offer: time-slicing}]\n")
    start()
    bench.is_now("ready", B)
    time.sleep(1)  # ten looks
    assert bench.mode(A) == 3
    listed.pop()
    wait_until(lambda: bench.mode(A) == 0)


def test_a_gpu_that_left_mps_gets_its_mode_back_once_its_last_tenant_has_ended(
    bench: Bench, start: Start, listed: Listed
) -> None:
    ended(bench, start, signal.SIGTERM)
    bench.cluster("nodes: [{indexes: [0], offer: time-slicing}]\n")
    running = start()
    bench.is_now("ready", B)
    time.sleep(1)  # ten looks
    assert bench.mode(A) == 3
    listed.clear()
    wait_until(lambda: bench.mode(A) == 0)
    _, log, _ = running.ends(by=signal.SIGTERM)
    assert len([line for line in log if line["message"].startswith("compute mode stays exclusive")]) == 1


def test_a_mode_that_cannot_be_put_back_is_told_of_once_beside_a_gpu_that_stays_exclusive(
    bench: Bench, start: Start
) -> None:
    ended(bench, start, signal.SIGKILL)
    bench.cluster("nodes: [{indexes: [0], offer: time-slicing}]\n")
    bench.has(A)  # B has fallen off the bus, and nobody held a share of it
    running = start()
    # What the killed run left is ended first.
    wait_until(lambda: not any(one.directory.endswith(B) for one in alive(bench.pipes)), timeout_seconds=20)
    time.sleep(1)  # ten looks
    _, log, _ = running.ends(by=signal.SIGTERM)
    told = [line for line in log if line["level"] == "warning" and "gpu" in line]
    assert [(line["message"].partition(":")[0], line["gpu"]) for line in told] == [
        ("compute mode stays exclusive while containers hold shares", A),
        ("compute mode not restored", B),
        ("compute mode stays exclusive while containers hold shares", A),  # at the end
    ]
    assert (bench.mode(A), bench.mode(B)) == (3, 3)


def test_a_gpu_that_an_init_container_may_hold_keeps_its_mode(bench: Bench, start: Start) -> None:
    bench.holds(B, vgpus=5, named=False)
    running = start()
    bench.is_now("ready", A, B)
    running.ends(by=signal.SIGTERM)
    assert bench.mode(B) == 3


def test_a_gpu_that_an_init_container_had_before_another_one_got_its_share_elsewhere_keeps_its_mode(
    bench: Bench, start: Start
) -> None:
    bench.holds(A, vgpus=5, also=B)
    running = start()
    bench.is_now("ready", A, B)
    running.ends(by=signal.SIGTERM)
    assert bench.mode(B) == 3


@pytest.mark.parametrize("what", ["lost", "broken", "of nobody"])
def test_where_nobody_knows_on_which_gpu_a_share_is_all_keep_theirs(bench: Bench, start: Start, what: str) -> None:
    if what == "of nobody":
        bench.holds(A, vgpus=5, gpu=None)
    elif what == "broken":
        (bench.state_dir / "vgpus.json").write_text("{")
    else:
        (bench.state_dir / "vgpus.json").unlink()
    running = start()
    bench.is_now("ready", A, B)
    _, log, _ = running.ends(by=signal.SIGTERM)
    assert (bench.mode(A), bench.mode(B)) == (3, 3)
    assert any(line["message"] == "compute modes stay exclusive: nobody knows where shares are" for line in log)


@pytest.mark.parametrize(("words", "mode"), [([], 0), (["unlisted"], 3)], ids=["its pods", "those from files alone"])
def test_a_kubelet_that_has_not_heard_of_its_pods_says_of_no_gpu_that_it_is_free(
    bench: Bench, start: Start, listed: Listed, words: list[str], mode: int
) -> None:
    listed.clear()
    running = start(*words)
    bench.is_now("ready", A, B)
    running.ends(by=signal.SIGTERM)
    assert bench.mode(A) == mode
