"""Calls that the kubelet gives up, because the pod was deleted: they take nothing, and block nobody."""

import signal
from pathlib import Path
from threading import Event, Thread

import grpc
import pytest

from plugin.dra.calls import Calls
from plugin.dra.checkpoint import read_checkpoint
from plugin.errors import ClaimError
from plugin.simulated.api_server import Object
from policies.contract import DRIVER
from tests.plugin.dra.node import DraNode, gpu_of, share
from tests.plugin.dra.prepared import device, made, prepare
from tests.plugin.waiting import wait_until

pytestmark = pytest.mark.exhaustive


def holders(node: DraNode) -> set[str]:
    """Name the claims that hold something, by UID."""
    return {*read_checkpoint(node.directory / "p" / DRIVER).claims}


def uid(claim: Object) -> str:
    return str(claim["metadata"]["uid"])


def freed_early(node: DraNode, pod: str) -> Object:
    """Run a container on a whole GPU that the scheduler gives to the next one while it still runs."""
    claim = node.schedule(pod, share(1000))
    node.run(claim)
    node.scheduler.release(claim)
    return claim


@pytest.mark.parametrize("is_cancelled", [True, False])
def test_a_pod_that_is_deleted_while_its_claim_waits_holds_nothing(node: DraNode, *, is_cancelled: bool) -> None:
    node.start("1xH200", devices=27)
    running = freed_early(node, "running")
    deleted, other = node.schedule("deleted", share(900)), node.schedule("deleted", share(100))
    call = node.kubelet.begin_to_prepare(deleted, other)
    with pytest.raises(grpc.FutureTimeoutError):
        call.result(timeout=1)
    if is_cancelled:
        call.cancel()
    node.end(deleted)
    node.end(other)
    if not is_cancelled:
        assert "given this call up" in call.result(timeout=5).claims[uid(deleted)].error
    node.kubelet.unprepare(running)
    assert gpu_of(node.run(node.schedule("next", share(1000))))  # after what is held back for 10 s
    assert len(holders(node)) == 1


def test_a_plugin_that_ends_tells_who_waits_and_gives_it_nothing(node: DraNode) -> None:
    plugin = node.start("1xH200", devices=27)
    running, waiting = freed_early(node, "running"), node.schedule("waiting", share(1000))
    call = node.kubelet.begin_to_prepare(waiting)
    with pytest.raises(grpc.FutureTimeoutError):
        call.result(timeout=1)
    assert plugin.ends(by=signal.SIGTERM)[0] == 0
    assert "containers still run of default/running" in call.result(timeout=5).claims[uid(waiting)].error
    assert holders(node) == {uid(running)}


def test_calls_that_wait_keep_nobody_else_from_a_thread(node: DraNode) -> None:
    node.start("2xH200")
    running = freed_early(node, "running")
    waiting = node.schedule("waiting", share(1000))
    calls = [node.kubelet.begin_to_prepare(waiting) for _ in range(200)]
    beside = node.schedule("beside", share(300))
    assert gpu_of(node.run(beside))
    node.end(beside)
    assert holders(node) == {uid(running)}
    wait_until(lambda: sum(call.done() for call in calls) == 72)  # told at once why, and the kubelet tries again
    told = {call.result().claims[uid(waiting)].error for call in calls if call.done()}
    assert all("containers still run of" in one and "default/running" in one for one in told)  # of the other pod, too
    for call in calls:
        call.cancel()
    assert holders(node) == {uid(running)}


def test_who_waits_ends_as_soon_as_the_kubelet_has_given_the_call_up(tmp_path: Path) -> None:
    on, calls, gone = made(tmp_path), Calls(), Event()
    prepare(on, "old", device(1000, "GPU-0"))
    errors: list[str] = []

    def wait() -> None:
        with calls.begin(lambda: not gone.is_set()) as call, pytest.raises(ClaimError) as error:
            prepare(on, "new", device(100, "GPU-0"), wait_seconds=60, call=call)
        errors.append(str(error.value))

    waiting = Thread(target=wait)
    waiting.start()
    gone.set()
    on.look_again()
    waiting.join(timeout=10)
    assert "given this call up" in errors[0]


def test_a_call_that_begins_after_its_claim_was_unprepared_is_another_one(tmp_path: Path) -> None:
    on, calls = made(tmp_path), Calls()
    with calls.begin(lambda: True) as earlier:
        calls.void("u")
        with pytest.raises(ClaimError, match="given this call up"):
            prepare(on, "u", device(100, "GPU-0"), call=earlier)
        assert not any(path.is_file() for path in tmp_path.rglob("*"))
        prepare(on, "other", device(100, "GPU-1"), call=earlier)
        with calls.begin(lambda: True) as later:
            prepare(on, "u", device(100, "GPU-0"), call=later)
    assert len(on.kept()) == 2
