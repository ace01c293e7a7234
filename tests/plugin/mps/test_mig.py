"""The MPS daemon of a MIG instance: its own, with the memory of the instance and the parts of its profile."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from plugin.gpus.gpu import Gpu, MigInstance
from plugin.mps.compute_mode import ComputeModes
from plugin.mps.daemon_supervisor import DaemonSupervisor, SupervisorContext
from plugin.mps.supervisor import Supervisor
from plugin.pod_resources.tenancy import Tenancy
from tests.plugin.mps.fake_modes import FakeModes, FakeNvmlError
from tests.plugin.mps.standin import StandIn
from tests.plugin.mps.supervised import is_now, running, said
from tests.plugin.mps.tenants import RESOURCE, held, kubelet
from tests.policies.pods import policies

INSTANCE = "MIG-00000000-0000-0000-0000-000000000001"
PLACED = MigInstance(profile="1g.10gb", parent_uuid="GPU-0", gpu_instance=1, compute_instance=0)


@pytest.fixture
def instance(gpu: Gpu) -> Gpu:
    return replace(gpu, uuid=INSTANCE, memory_bytes=9728 << 20, instance=PLACED)


@pytest.fixture
def parted(context: SupervisorContext, nvml: FakeModes) -> SupervisorContext:
    nvml.modes[INSTANCE] = 0
    return context


def test_a_daemon_is_of_its_instance_alone(
    instance: Gpu, parted: SupervisorContext, nvml: FakeModes, standin: StandIn, pipes: Path
) -> None:
    supervisor = DaemonSupervisor(instance, parted)
    supervisor.ceiling = Fraction(2, 6)
    with running(supervisor):
        is_now(supervisor, "ready")
        assert (pipes / INSTANCE / "control").exists()
        assert nvml.modes[INSTANCE] == 3
    asked = [one for one in standin.commands(gpu=INSTANCE) if one.startswith("set_default")]
    assert asked == [
        "set_default_active_thread_percentage 33",
        f"set_default_device_pinned_mem_limit 0 {(9728 - 128) * 2 // 6}M",
    ]
    assert standin.commands() == standin.commands(gpu=INSTANCE)


@pytest.mark.parametrize("error", [2, 3, 13])
def test_a_driver_without_compute_modes_of_instances_is_told_of_and_leaves_the_daemon_ready(
    instance: Gpu, parted: SupervisorContext, nvml: FakeModes, error: int, caplog: pytest.LogCaptureFixture
) -> None:
    nvml.refuses[INSTANCE] = FakeNvmlError(error, "Not Supported")
    supervisor = DaemonSupervisor(instance, parted)
    with running(supervisor):
        is_now(supervisor, "ready")
    assert parted.modes.hold([INSTANCE]) == {}
    assert len(said(caplog, "no EXCLUSIVE_PROCESS: programs can bypass MPS on the instance")) == 1
    assert not (parted.state_dir / "compute-modes.json").exists()  # there is nothing to put back


def test_a_driver_that_ignores_a_mode_of_instances_has_none(root: Path, caplog: pytest.LogCaptureFixture) -> None:
    nvml = FakeModes({INSTANCE: 0})
    nvml.ignores.add(INSTANCE)
    held = ComputeModes(lambda: nvml, record=root / "modes.json", boot_id="this")
    assert held.hold([INSTANCE]) == held.hold([INSTANCE]) == {}
    assert len(said(caplog, "no EXCLUSIVE_PROCESS: programs can bypass MPS on the instance")) == 1


@pytest.mark.parametrize("error", [4, 6, 15, 999])
def test_any_other_error_is_a_fault_of_the_instance(root: Path, error: int) -> None:
    nvml = FakeModes({INSTANCE: 0})
    nvml.refuses[INSTANCE] = FakeNvmlError(error, "failed")
    held = ComputeModes(lambda: nvml, record=root / "modes.json", boot_id="this")
    assert "the compute mode cannot be changed" in held.hold([INSTANCE])[INSTANCE]


def test_a_gpu_that_has_no_such_mode_is_not_shared_as_before(root: Path) -> None:
    nvml = FakeModes({"GPU-a": 0})
    nvml.refuses["GPU-a"] = FakeNvmlError(3, "Not Supported")
    held = ComputeModes(lambda: nvml, record=root / "modes.json", boot_id="this")
    assert "this GPU cannot be shared by MPS" in held.hold(["GPU-a"])["GPU-a"]


def test_the_ceiling_of_an_instance_is_in_parts_of_its_profile(instance: Gpu, parted: SupervisorContext) -> None:
    node = Supervisor(parted)
    supervisor = node._supervisors[INSTANCE] = DaemonSupervisor(instance, parted)
    supervisor.ceiling = Fraction(1, 6)
    by = policies("devices: [mig-1g.10gb]\nshare: {maximum: '0.5'}", "vgpusPerInstance: {1g.10gb: 6}")
    node.set_ceilings(by)
    assert supervisor.ceiling == Fraction(3, 6)


def test_what_tenants_hold_of_an_instance_is_in_its_own_parts(
    instance: Gpu, parted: SupervisorContext, root: Path
) -> None:
    node = Supervisor(replace(parted, tenancy=Tenancy(root / "kubelet", lambda: [RESOURCE])))
    supervisor = node._supervisors[INSTANCE] = DaemonSupervisor(instance, parted)
    by = policies("devices: [mig-1g.10gb]\nshare: {maximum: '0.2'}", "vgpusPerInstance: {1g.10gb: 6}")
    with kubelet(root / "kubelet", held("team/a", INSTANCE, vgpus=4)):
        node.set_ceilings(by)
    assert supervisor.ceiling == Fraction(4, 6)


def test_an_instance_that_is_made_anew_has_the_limits_of_the_new_one(instance: Gpu, parted: SupervisorContext) -> None:
    node = Supervisor(parted)
    supervisor = node._supervisors[INSTANCE] = DaemonSupervisor(instance, parted)
    node.adopt([replace(instance, memory_bytes=1 << 30)])
    assert supervisor.gpu.memory_bytes == 1 << 30


def test_the_ceiling_of_a_device_is_in_its_own_parts(gpu: Gpu, context: SupervisorContext) -> None:
    node = Supervisor(context)
    supervisor = node._supervisors[gpu.uuid] = DaemonSupervisor(gpu, context)
    supervisor.ceiling = Fraction(1, 4)
    by = policies("devices: [t4]\nshare: {maximum: '0.5'}", "nodes: [{device: t4, vgpusPerGpu: 4}]")
    node.set_ceilings(by)
    assert supervisor.ceiling == Fraction(2, 4)
