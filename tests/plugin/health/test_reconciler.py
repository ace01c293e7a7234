import json
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any

import pytest

from plugin.errors import HandoverError
from plugin.health.reports import Report
from plugin.health.state import HEARTBEAT_SECONDS, NODE_FILE, read_node_health
from policies.cluster import Cluster
from policies.nodes import NodeRule
from tests.plugin.health.reconciler_bench import FIRST, SECOND, THIRD, Bench, Lines
from tests.plugin.waiting import wait_until


def test_the_first_look_advertises_no_vgpu_whose_mps_daemon_is_not_good(bench: Bench) -> None:
    bench.mps[SECOND] = "no daemon"
    bench.look(bench.probe())
    (resource,) = bench.resources
    assert bench.faults() == {SECOND: "no daemon"}
    assert [device.healthy for device in next(iter(resource.devices.watch()))] == [True] * 10 + [False] * 10


def test_a_daemon_that_fails_and_comes_back_is_followed_without_news_of_nvml(bench: Bench) -> None:
    bench.look(bench.probe())
    bench.mps[FIRST] = "it hangs"
    bench.look()
    assert bench.faults() == {FIRST: "it hangs"}
    bench.mps.clear()
    bench.look()
    assert bench.faults() == {}


def test_a_gpu_with_more_vgpus_than_mps_serves_clients_is_as_unhealthy_in_its_state_as_to_the_kubelet(
    bench: Bench,
) -> None:
    bench.look(bench.probe(mps_clients=9))
    why = f"vgpusPerGpu 10 is more than the 9 clients that MPS serves on {FIRST}"
    assert bench.faults()[FIRST].startswith(why)
    known = read_node_health(bench.directory)
    assert known is not None
    assert [[(one.source, one.why) for one in gpu.faults] for gpu in known.gpus] == [
        [("division", bench.faults()[uuid])] for uuid in (FIRST, SECOND)
    ]
    bench.look(bench.probe(mps_clients=10))
    assert bench.faults() == {}


def test_each_change_is_one_line(bench: Bench, lines: Lines) -> None:
    bench.look(bench.probe())
    assert lines() == []
    for seconds in range(3):
        bench.mps[FIRST] = f"nobody has looked at it for {seconds} s"
        bench.look(bench.xid(SECOND, 79), after_seconds=0)
    assert lines() == [("GPU unhealthy", FIRST), ("GPU unhealthy", SECOND)]
    bench.mps.clear()
    bench.look()
    bench.look()
    assert lines() == [("GPU unhealthy", FIRST), ("GPU unhealthy", SECOND), ("GPU healthy again", FIRST)]


def test_a_fault_that_ends_beside_another_is_no_line(bench: Bench, lines: Lines) -> None:
    bench.look(bench.probe())
    bench.mps[FIRST] = "it hangs"
    bench.look(bench.xid(FIRST, 79))
    bench.mps.clear()
    bench.look()
    assert list(bench.faults()) == [FIRST]
    assert lines() == [("GPU unhealthy", FIRST)]


def test_a_report_waits_for_no_other(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    waited_seconds = list[float]()

    class Waiting(SimpleQueue[Report | None]):
        def get(self, block: bool = True, timeout: float | None = None) -> Report | None:  # noqa: FBT001, FBT002
            waited_seconds.append(timeout or 0)
            return super().get(block, timeout)

    queue = Waiting()
    monkeypatch.setattr(bench.reconciler, "_reports", queue)
    for _ in range(3):
        queue.put(bench.probe())
    queue.put(None)
    assert len(bench.reconciler._arrived()) == 3
    assert waited_seconds == [1, 0, 0, 0]


def test_one_more_fault_of_an_unhealthy_gpu_is_told_with_all_of_them(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.look(bench.probe())
    bench.look(bench.xid(FIRST, 79))
    bench.mps[FIRST] = "it hangs"
    bench.look()
    last = vars(caplog.records[-1])
    assert (last["why"], len(last["comes_back"])) == ("the driver reported XID 79; it hangs", 2)
    assert (last["index"], last["resource"]) == (0, "gpu-share.dev/vgpu")


def written(bench: Bench) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((bench.directory / NODE_FILE).read_text())
    return found


def test_the_state_says_how_many_gpus_are_left_to_others(tmp_path: Path) -> None:
    bench = Bench(tmp_path, cluster=Cluster(nodes=(NodeRule(indexes=(1,), strategy="none"),)))
    bench.look(bench.probe())
    assert (len(written(bench)["gpus"]), written(bench)["left_to_others"]) == (1, 1)


def test_the_state_is_written_when_it_changes_and_as_a_heartbeat(bench: Bench) -> None:
    bench.look(bench.probe())
    assert (written(bench)["heartbeat_seconds"], written(bench)["boot_id"]) == (bench.seconds, "boot")
    first = bench.seconds
    bench.look(after_seconds=HEARTBEAT_SECONDS - 1)
    assert written(bench)["heartbeat_seconds"] == first
    bench.look()
    assert written(bench)["heartbeat_seconds"] == bench.seconds
    bench.look(bench.xid(FIRST, 79))
    assert written(bench)["heartbeat_seconds"] == bench.seconds
    assert written(bench)["gpus"][0]["faults"][0]["xid"] == 79


def test_a_directory_that_cannot_be_written_to_is_said_once_and_stops_nothing(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.directory.joinpath(NODE_FILE).mkdir()
    bench.look(bench.probe())
    bench.look(bench.xid(FIRST, 79))
    assert list(bench.faults()) == [FIRST]
    messages = [record.message for record in caplog.records]
    assert messages == ["the state of the GPUs cannot be written", "GPU unhealthy"]
    assert vars(caplog.records[0])["reason"].startswith(
        f"--state-dir {bench.directory}: Is a directory: the GPUs are served"
    )


def unadvertised(bench: Bench) -> dict[str, str]:
    gpus = written(bench)["gpus"]
    return {gpu["uuid"]: one["why"] for gpu in gpus for one in gpu["faults"] if one["source"] == "advertised"}


def test_a_gpu_that_cannot_be_shared_is_said_once_and_hides_no_other_news(
    bench: Bench, lines: Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.look(bench.probe())

    def rejected(*_: object) -> None:
        raise HandoverError("the directory is full")

    monkeypatch.setattr("plugin.shares.specifications.Specifications.advertise", rejected)
    running = Thread(target=bench.reconciler.run)
    running.start()
    for number in (79, 48):
        bench.reports.put(bench.probe(count=3))
        bench.reports.put(bench.xid(FIRST, number))
    wait_until(lambda: list(bench.faults()) == [FIRST])
    assert len(bench.resources[0].devices.pool.gpus) == 2
    wait_until(lambda: unadvertised(bench) == {THIRD: "it cannot be advertised: the directory is full"})
    monkeypatch.undo()
    wait_until(lambda: len(bench.resources[0].devices.pool.gpus) == 3)
    wait_until(lambda: unadvertised(bench) == {} and THIRD not in bench.faults())
    bench.reconciler.stop()
    running.join()
    assert lines().count(("a GPU that appeared is not shared", "the directory is full")) == 1
