"""After a restart of the machine the kubelet rejects pods whose vGPUs no plugin lists any more: nobody holds those."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from plugin.device_plugin.checkpoint import Checkpoint
from plugin.device_plugin.devices import Devices
from plugin.device_plugin.held import HeldVgpus
from plugin.device_plugin.holdings import Holdings
from plugin.gpus.gpu import Pool, VGpuId
from plugin.pod_resources.occupancy import NodeOccupancy, write_occupancy
from plugin.pod_resources.tenants import Tenant
from plugin.shares.parts_file import FILE, parts, write_parts
from plugin.simulated.gpus import simulated_gpus
from tests.plugin.device_plugin.kubelet_file import entry, replace_checkpoint, write_checkpoint
from tests.plugin.device_plugin.test_kubelet_checkpoint import answer
from tests.plugin.device_plugin.walk import NAME

GPU, LOST = simulated_gpus("2xL4")
EARLIER = "example.com/earlier"


class Machine:
    """One that has just restarted, and what its kubelet has from before: what an init container had, and an app."""

    def __init__(self, directory: Path, *, resource: str = EARLIER, names: str = GPU.uuid, on: str = GPU.uuid) -> None:
        self.directory, self.resource, self.now = directory, resource, 0.0
        self.init, self.app = VGpuId(names, 0), VGpuId(names, 1)
        given = answer(on)
        had = [entry(resource, [str(self.init)], given, container="init"), entry(resource, [str(self.app)], given)]
        write_checkpoint(directory, had)

    def start_plugin(self, *, names: Sequence[VGpuId] = (), resource: str = NAME) -> Devices:
        """Start a plugin that advertises *resource*, and to which the kubelet names who has *names*."""
        tenant = Tenant(
            namespace="t", pod="a", container="c", vgpus=tuple(names), resources=dict.fromkeys(names, self.resource)
        )
        checkpoint = Checkpoint(vgpus_per_gpu=10, state_dir=self.directory, kubelet_dir=self.directory, boot_id="this")
        self.held = HeldVgpus(
            Holdings(
                lambda: (tenant,) if names else (),
                kubelet=self.directory / "kubelet.sock",
                checkpoint=checkpoint,
                clock=lambda: self.now,
            )
        )
        devices = Devices(Pool(gpus=(GPU,), vgpus_per_gpu=10), resource=resource)
        self.held.follow(devices, are_divided=True)
        self.held.refresh()
        return devices

    def wait(self) -> None:
        """Wait until the kubelet has named all pods that it has admitted again."""
        self.now += 31
        self.held.refresh()


@pytest.mark.parametrize(("resource", "names"), [(EARLIER, GPU.uuid), (NAME, LOST.uuid)])
@pytest.mark.parametrize("starts", [1, 2])
def test_what_no_plugin_lists_is_free_once_the_kubelet_has_named_all_pods_and_has_it_for_none(
    tmp_path: Path, resource: str, names: str, starts: int
) -> None:
    machine = Machine(tmp_path, resource=resource, names=names)
    for _ in range(starts - 1):
        machine.start_plugin()
    devices = machine.start_plugin()
    assert devices.room() == {GPU.uuid: 8}
    machine.wait()
    assert devices.room() == {GPU.uuid: 8}, "it may be yet to come to that pod"
    replace_checkpoint(tmp_path, [])
    machine.wait()
    assert devices.room() == {GPU.uuid: 10}


def test_what_init_containers_hold_of_a_gpu_that_comes_late_is_held(tmp_path: Path) -> None:
    machine = Machine(tmp_path, resource=NAME, names=LOST.uuid, on=LOST.uuid)
    devices = machine.start_plugin()
    machine.wait()
    machine.held.set_gpus(devices, (GPU, LOST))
    machine.wait()
    assert devices.room() == {GPU.uuid: 10, LOST.uuid: 8}


def test_what_the_plugin_lists_may_be_an_init_containers(tmp_path: Path) -> None:
    machine = Machine(tmp_path, resource=NAME)
    devices = machine.start_plugin()
    machine.wait()
    assert devices.room() == {GPU.uuid: 8}


def test_what_was_listed_when_its_pod_was_admitted_stays_held_under_the_next_name(tmp_path: Path) -> None:
    machine = Machine(tmp_path, resource=NAME)
    machine.start_plugin()
    machine.wait()
    devices = machine.start_plugin(resource="example.com/next")
    machine.wait()
    assert devices.room() == {GPU.uuid: 8}


def test_a_pod_that_the_kubelet_names_has_what_its_init_containers_had_too(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    devices = machine.start_plugin(names=[machine.app])
    machine.wait()
    assert devices.room() == {GPU.uuid: 8}


def test_by_the_id_of_a_gpu_that_is_gone_what_a_pod_has_is_listed_once_the_kubelet_names_it(tmp_path: Path) -> None:
    machine = Machine(tmp_path, resource=NAME, names=LOST.uuid)
    assert not machine.start_plugin().seen & {str(machine.init), str(machine.app)}
    devices = machine.start_plugin(names=[machine.app])
    assert str(machine.app) in devices.seen
    machine.wait()
    assert {str(machine.init), str(machine.app)} < devices.seen
    assert len(devices.seen) == 10


def lose_the_file(directory: Path) -> None:
    write_occupancy(directory, NodeOccupancy(boot_id="this"))


def write_nonsense(directory: Path) -> None:
    (directory / FILE).write_text("{")


def write_what_is_incomplete(directory: Path) -> None:
    write_parts(directory, parts([], vgpus_per_gpu=10))


@pytest.mark.parametrize("was", [lose_the_file, write_nonsense, write_what_is_incomplete])
def test_where_the_machine_may_not_have_restarted_containers_run_with_what_no_plugin_lists(
    tmp_path: Path, was: Callable[[Path], None]
) -> None:
    machine = Machine(tmp_path)
    was(tmp_path)
    devices = machine.start_plugin()
    machine.wait()
    assert devices.room() == {GPU.uuid: 8}
