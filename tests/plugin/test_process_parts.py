"""What the plugin's process is put together from: where its GPUs come from, and what its reconciler begins with."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from plugin.earlier import expected_gpus, restored_inventory
from plugin.errors import SimulationError
from plugin.gpu_source import gpu_source
from plugin.gpus.gpu import MigInstance
from plugin.health.gpu_state import Moment
from plugin.health.reports import Look, Probe
from plugin.health.state import Fault, GpuHealth, NodeHealth, write_node_health
from plugin.settings import Settings
from plugin.simulated.gpus import simulated_gpus
from plugin.state_files import boot_id
from policies.cluster import Cluster
from tests.plugin.health.watched_node import SETTINGS, strategies_of

GPUS = simulated_gpus("2xH200")


def settings(**changed: Any) -> Settings:
    return Settings(**{**SETTINGS, **changed})


def test_a_simulated_node_has_no_bus_and_simulated_mps_daemons(tmp_path: Path) -> None:
    file = tmp_path / "node.yaml"
    file.write_text("gpus:\n- {model: L4}\nfaults:\n- {at: 0, gpu: 0, mps: dead}\n")
    node = gpu_source(str(file), Path("/nowhere"), pipe_directory="")
    assert node.sysfs is None
    assert list(node.mps_faults(["any"]).values()) == ["dead"]
    with pytest.raises(SimulationError):
        gpu_source("2xH999", Path("/nowhere"), pipe_directory="")


def test_a_real_node_takes_its_mps_daemons_from_their_supervisor(tmp_path: Path) -> None:
    node = gpu_source(None, tmp_path, pipe_directory="")
    assert "is gpu-share mps running?" in node.mps_faults(["GPU-0"])["GPU-0"]


def remember(directory: Path, boot: str) -> None:
    fault = Fault(source="xid", why="XID 79", since="then", comes_back="never", xid=79)
    gpu = GpuHealth(uuid=GPUS[0].uuid, index=0, model="H200", resource="r", since="then", faults=(fault,))
    write_node_health(directory, NodeHealth(boot_id=boot, heartbeat_seconds=0, pid=1, driver="", gpus=(gpu,)))


@pytest.mark.parametrize(
    ("same_start", "simulate", "why"),
    [(True, None, "XID 79"), (False, None, ""), (True, "2xH200", "")],  # simulated GPUs are new ones each time
)
def test_the_plugin_goes_on_with_what_was_known_since_this_start_of_the_machine(
    tmp_path: Path, *, same_start: bool, simulate: str | None, why: str
) -> None:
    directory = tmp_path / "made" / "by us"
    directory.mkdir(parents=True)
    remember(directory, boot_id() if same_start else "an earlier one")
    chosen = settings(state_dir=directory, simulate=simulate)
    inventory = restored_inventory(chosen, strategies_of(chosen, Cluster()), held=lambda _: ())
    looks = {gpu.uuid: Look() for gpu in GPUS}
    probe = Probe(seconds=1, generation=1, looks=looks, gpus=GPUS, skipped=(), driver="")
    inventory.take(probe, Moment(1, "now"))
    assert inventory.entries[0].why == why
    assert expected_gpus(chosen) == ({GPUS[0].uuid} if why else frozenset())


def test_the_gpu_of_a_mig_instance_is_expected_where_a_plugin_of_this_start_knew_the_instance(tmp_path: Path) -> None:
    parted = MigInstance(profile="1g.10gb", parent_uuid="GPU-cut", gpu_instance=3, compute_instance=0)
    known = GpuHealth(uuid="MIG-1", index=0, model="H200", resource="r", since="then")
    for reached in ({}, {"MIG-1": replace(GPUS[0], uuid="MIG-1", instance=parted)}):
        health = NodeHealth(boot_id=boot_id(), heartbeat_seconds=0, pid=1, driver="", gpus=(known,), reached=reached)
        write_node_health(tmp_path, health)
        assert expected_gpus(settings(state_dir=tmp_path)) == ({"GPU-cut"} if reached else frozenset())
