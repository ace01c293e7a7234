"""The real `gpu-share mps` measures who uses a GPU without a share, beside MPS servers that may."""

import os

import pytest

from plugin.pod_resources.occupancy import NodeOccupancy, write_occupancy
from plugin.state_files import boot_id, boot_seconds
from plugin.usage.cgroups import container_of
from plugin.usage.record import GpuUse, ProcessesUse, read_use
from tests.plugin.health.published import occupied
from tests.plugin.mps.bench import A, Bench, Start
from tests.plugin.mps.standin import alive
from tests.plugin.waiting import wait_until

MIB = 2**20


@pytest.mark.skipif(container_of(os.getpid()) is not None, reason="these tests run in a pod themselves")
def test_a_program_of_the_node_is_measured_and_the_mps_server_is_none(bench: Bench, start: Start) -> None:
    start()
    bench.is_now("ready", A)
    (bench.root / "containers").mkdir()
    servers = [one.pid for one in alive(bench.pipes)]
    (bench.nvml / f"clients-{A}").touch()
    listed = [*(f"{pid} {MIB}" for pid in servers), f"{os.getpid()} {2 * MIB}"]
    (bench.nvml / f"compute-{A}").write_text("\n".join(listed) + "\n")
    expected = GpuUse(complete=True, outsiders=(), of_node=ProcessesUse(processes=1, memory_bytes=2 * MIB))

    def measured() -> GpuUse | None:
        gpus, now = {A: occupied(all_named=True)}, boot_seconds()
        occupancy = NodeOccupancy(boot_id=boot_id(), asked_seconds=now, looked_seconds=now, gpus=gpus)
        write_occupancy(bench.state_dir, occupancy)
        use = read_use(bench.state_dir, boot_id=boot_id())
        return use.gpus[A] if use else None

    assert servers
    wait_until(lambda: measured() == expected, timeout_seconds=40)
