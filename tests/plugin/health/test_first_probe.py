from contextlib import nullcontext
from math import inf
from queue import SimpleQueue

import pytest

from plugin.errors import DiscoveryError
from plugin.health.reports import SILENT_SECONDS, Event, NvmlFailure, Probe, Report, first_probe
from plugin.shares.strategy import StrategyOf
from plugin.simulated.gpus import simulated_gpus
from policies.contract import MPS

GPUS = simulated_gpus("2xH200")
FOUND = Probe(seconds=1, generation=1, looks={}, gpus=GPUS, skipped=(), driver="580")
NONE = Probe(seconds=1, generation=1, looks={}, gpus=(), skipped=(), driver="580")
BROKEN = Probe(seconds=1, generation=1, looks={}, gpus=(), skipped=("GPU 0 is lost", "so is GPU 1"), driver="580")
NO_DRIVER = NvmlFailure(seconds=1, why="NVML: no driver: load it")
EVENT = Event(seconds=1, gpu_uuid="GPU-0", what="XID 79", xid=79)


def first(*reports: Report, wait_seconds: float = 0, strategy_of: StrategyOf = lambda _: MPS) -> Probe | None:
    """Take the reports, and end when there are none any more."""
    queue = SimpleQueue[Report | None]()
    for report in reports:
        queue.put(report)
    return first_probe(queue, strategy_of, wait_seconds=wait_seconds, ended=lambda *_: queue.empty())


def test_the_first_probe_that_shows_a_gpu_to_share_is_given() -> None:
    assert first(FOUND, NONE) is FOUND
    assert first(EVENT, FOUND) is FOUND


@pytest.mark.parametrize(
    ("report", "sentence"),
    [
        (NO_DRIVER, "NVML: no driver: load it"),
        (NONE, "no GPU to share: NVML sees no GPU"),
        (BROKEN, "no GPU to share: GPU 0 is lost; so is GPU 1"),
    ],
)
def test_without_a_gpu_there_is_one_sentence_that_says_why(report: Report, sentence: str) -> None:
    with pytest.raises(DiscoveryError, match=sentence):
        first(report, FOUND)


def test_a_node_whose_gpus_are_left_to_others_has_nothing_to_share() -> None:
    with pytest.raises(DiscoveryError, match=r"_cluster\.yaml leaves all 2 GPUs of this node to others"):
        first(FOUND, strategy_of=lambda _: None)
    assert first(FOUND, strategy_of=lambda gpu: MPS if gpu.index == 1 else None) is FOUND


def test_the_gpus_that_cannot_be_shared_are_named_beside_those_that_are_left_to_others() -> None:
    some = Probe(seconds=1, generation=1, looks={}, gpus=GPUS, skipped=("GPU 2 of 3 is older than Volta",), driver="1")
    with pytest.raises(DiscoveryError, match="leaves 2 GPUs of this node to others; GPU 2 of 3 is older than Volta"):
        first(some, strategy_of=lambda _: None)


def test_waiting_for_gpus_says_why_once_and_again_when_the_reason_changes(caplog: pytest.LogCaptureFixture) -> None:
    assert first(NO_DRIVER, NO_DRIVER, NONE, NONE, NO_DRIVER, FOUND, wait_seconds=inf) is FOUND
    reasons = [vars(record)["reason"][:12] for record in caplog.records]
    assert reasons == ["NVML: no dri", "no GPU to sh", "NVML: no dri"]


def test_waiting_for_gpus_ends_when_told_to() -> None:
    assert first(wait_seconds=inf) is None
    assert first() is None


def silence(*, wait_seconds: float) -> Probe | None:
    """Hear nothing for twice as long as a driver may be silent."""
    seconds = 0.0

    def ended(waited_seconds: float, _why: str) -> bool:
        nonlocal seconds
        seconds += waited_seconds
        return seconds > 2 * SILENT_SECONDS

    return first_probe(SimpleQueue(), lambda _: MPS, wait_seconds=wait_seconds, ended=ended, clock=lambda: seconds)


def test_a_driver_that_hangs_from_the_start_is_said(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(DiscoveryError, match="NVML has not answered"):
        silence(wait_seconds=0)
    assert silence(wait_seconds=inf) is None
    assert ["NVML has not answered" in vars(record)["reason"] for record in caplog.records] == [True]


@pytest.mark.parametrize(("wait_seconds", "is_over"), [(1.9 * SILENT_SECONDS, True), (inf, False)])
def test_who_waits_for_a_time_hears_why_when_it_is_over(wait_seconds: float, *, is_over: bool) -> None:
    with pytest.raises(DiscoveryError, match="NVML has not answered") if is_over else nullcontext():
        assert silence(wait_seconds=wait_seconds) is None
