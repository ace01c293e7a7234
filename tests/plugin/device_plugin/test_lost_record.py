"""What is free where the record of what is held was lost, and the kubelet alone knows it."""

from pathlib import Path

import pytest

from plugin.device_plugin.checkpoint import Checkpoint
from plugin.device_plugin.devices import Devices
from plugin.device_plugin.held import HeldVgpus
from plugin.device_plugin.holdings import Holdings
from plugin.gpus.gpu import Pool, VGpuId
from plugin.pod_resources.tenants import Tenant
from plugin.simulated.gpus import simulated_gpus

GPUS = simulated_gpus("2xH200")
SHARES, WHOLE = "gpu-share.dev/vgpu", "gpu-share.dev/gpu"


def whole_gpus(directory: Path, *tenants: Tenant) -> Devices:
    """Give the devices of a node that has just been told to hand out whole GPUs."""
    (directory / "vgpus.json").write_text("{")
    (directory / "kubelet_internal_checkpoint").write_text("{")
    checkpoint = Checkpoint(state_dir=directory, kubelet_dir=directory, boot_id="this")
    now = [0.0]
    holdings = Holdings(
        lambda: tenants, kubelet=directory / "kubelet.sock", checkpoint=checkpoint, clock=lambda: now[0]
    )
    held = HeldVgpus(holdings)
    devices = Devices(Pool(gpus=GPUS, vgpus_per_gpu=1), resource=WHOLE, binds_late=False)
    held.follow(devices, are_divided=False)
    held.refresh()
    now[0] = 60.0
    held.refresh()
    return devices


def tenant(resource: str, *vgpus: VGpuId) -> Tenant:
    return Tenant(namespace="t", pod="a", container="c", vgpus=vgpus, resources=dict.fromkeys(vgpus, resource))


def healthy(devices: Devices) -> list[str]:
    return [device.gpu_uuid for device in next(iter(devices.watch())) if device.healthy]


def test_no_gpu_is_advertised_whole_while_nobody_knows_on_which_a_share_is(tmp_path: Path) -> None:
    shares = (VGpuId(GPUS[0].uuid, index) for index in range(3))
    assert healthy(whole_gpus(tmp_path, tenant(SHARES, *shares))) == []


@pytest.mark.parametrize("held", [(), (VGpuId(GPUS[0].uuid, 0),)])
def test_whole_gpus_are_where_their_ids_say(tmp_path: Path, held: tuple[VGpuId, ...]) -> None:
    devices = whole_gpus(tmp_path, *([tenant(WHOLE, *held)] if held else []))
    assert healthy(devices) == [gpu.uuid for gpu in GPUS]
    assert [devices.left(gpu)[0] for gpu in GPUS] == [1 - len(held), 1]
