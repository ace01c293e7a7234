from collections.abc import Callable
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest

from plugin.boot_clock import boot_id
from plugin.device_plugin.resources import Offers
from plugin.device_plugin.service import Resource
from plugin.errors import InventoryError, SimulationError
from plugin.gpus.gpu import Gpu
from plugin.health.inventory import SILENT_SECONDS
from plugin.health.reports import Event, Look, NvmlFailure, Probe, Report
from plugin.health.start import first_probe, judge_of, node_of
from plugin.health.state import Fault, GpuHealth, NodeHealth, write_node_health
from plugin.settings import Settings
from plugin.simulated.gpus import simulated_gpus
from policies.cluster import Cluster
from policies.contract import MPS, SharingStrategy
from tests.plugin.health.watched_node import SETTINGS

GPUS = simulated_gpus("2xH200")
FOUND = Probe(seconds=1, generation=1, looks={}, gpus=GPUS, skipped=(), driver="580")
NONE = Probe(seconds=1, generation=1, looks={}, gpus=(), skipped=(), driver="580")
BROKEN = Probe(seconds=1, generation=1, looks={}, gpus=(), skipped=("GPU 0 is lost", "so is GPU 1"), driver="580")
NO_DRIVER = NvmlFailure(seconds=1, why="NVML: no driver: load it")
EVENT = Event(seconds=1, gpu_uuid="GPU-0", what="XID 79", xid=79)


def settings(**changed: Any) -> Settings:
    return Settings(**{**SETTINGS, **changed})


def first(
    *reports: Report, wait: bool = False, offer: Callable[[Gpu], SharingStrategy | None] = lambda _: MPS
) -> Probe | None:
    """Take the reports, and end when there are none any more."""
    queue = SimpleQueue[Report | None]()
    for report in reports:
        queue.put(report)
    return first_probe(queue, offer, wait=wait, ended=lambda _: queue.empty())


def test_the_first_probe_that_shows_a_gpu_to_offer_is_given() -> None:
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
    with pytest.raises(InventoryError, match=sentence):
        first(report, FOUND)


def test_a_node_whose_gpus_are_left_to_others_has_nothing_to_offer() -> None:
    with pytest.raises(InventoryError, match=r"_cluster\.yaml leaves all 2 GPUs of this node to others"):
        first(FOUND, offer=lambda _: None)
    assert first(FOUND, offer=lambda gpu: MPS if gpu.index == 1 else None) is FOUND


def test_waiting_for_gpus_says_why_once_and_again_when_the_reason_changes(caplog: pytest.LogCaptureFixture) -> None:
    assert first(NO_DRIVER, NO_DRIVER, NONE, NONE, NO_DRIVER, FOUND, wait=True) is FOUND
    reasons = [vars(record)["reason"][:12] for record in caplog.records]
    assert reasons == ["NVML: no dri", "no GPU to sh", "NVML: no dri"]


def test_waiting_for_gpus_ends_when_told_to() -> None:
    assert first(wait=True) is None
    assert first() is None


def silence(*, wait: bool) -> Probe | None:
    """Hear nothing for twice as long as a driver may be silent."""
    seconds = 0.0

    def ended(waited_seconds: float) -> bool:
        nonlocal seconds
        seconds += waited_seconds
        return seconds > 2 * SILENT_SECONDS

    return first_probe(SimpleQueue(), lambda _: MPS, wait=wait, ended=ended, clock=lambda: seconds)


def test_a_driver_that_hangs_from_the_start_is_said(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(InventoryError, match="NVML has not answered"):
        silence(wait=False)
    assert silence(wait=True) is None
    assert ["NVML has not answered" in vars(record)["reason"] for record in caplog.records] == [True]


def test_a_simulated_node_has_no_bus_and_simulated_mps_daemons(tmp_path: Path) -> None:
    file = tmp_path / "node.yaml"
    file.write_text("gpus:\n- {model: L4}\nfaults:\n- {at: 0, gpu: 0, mps: dead}\n")
    node = node_of(settings(simulate=str(file)))
    assert node.sysfs is None
    assert list(node.mps_faults(["any"]).values()) == ["dead"]
    with pytest.raises(SimulationError):
        node_of(settings(simulate="2xH999"))


def test_a_real_node_takes_its_mps_daemons_from_their_supervisor(tmp_path: Path) -> None:
    node = node_of(settings(state_dir=tmp_path))
    assert "is gpu-share mps running?" in node.mps_faults(["GPU-0"])["GPU-0"]


def remember(folder: Path, boot: str) -> None:
    fault = Fault(source="xid", why="XID 79", since="then", comes_back="never", xid=79)
    gpu = GpuHealth(uuid=GPUS[0].uuid, index=0, model="H200", resource="r", since="then", faults=(fault,))
    write_node_health(folder, NodeHealth(boot_id=boot, heartbeat_seconds=0, pid=1, driver="", gpus=(gpu,)))


@pytest.mark.parametrize(
    ("same_start", "simulate", "why"),
    [(True, None, "XID 79"), (False, None, None), (True, "2xH200", None)],  # simulated GPUs are new ones each time
)
def test_the_judge_goes_on_with_what_was_known_since_this_start_of_the_machine(
    tmp_path: Path, *, same_start: bool, simulate: str | None, why: str | None
) -> None:
    folder = tmp_path / "made" / "by us"
    folder.mkdir(parents=True)
    remember(folder, boot_id() if same_start else "an earlier one")
    chosen = settings(state_dir=folder, simulate=simulate)
    resources = list[Resource]()
    offers = Offers(chosen, Cluster(), serve=resources.append)
    judge = judge_of(chosen, node_of(chosen), offers, SimpleQueue())
    judge.look(Probe(seconds=1, generation=1, looks=dict.fromkeys([gpu.uuid for gpu in GPUS], Look()), gpus=GPUS,
                     skipped=(), driver=""))  # fmt: skip
    assert resources[0].devices.fault(GPUS[0].uuid) == why


def test_the_folder_for_the_state_is_made(tmp_path: Path) -> None:
    chosen = settings(state_dir=tmp_path / "run" / "gpu-share", simulate="2xH200")
    judge_of(chosen, node_of(chosen), Offers(chosen, Cluster(), serve=lambda _: None), SimpleQueue())
    assert chosen.state_dir.is_dir()
