from dataclasses import replace
from pathlib import Path

import pytest

from plugin.gpus.gpu import Gpu, MigInstance
from plugin.shares.handover import common_nodes, nodes


def gpu(minor: int | None) -> Gpu:
    return Gpu(uuid=f"GPU-{minor}", index=0, minor=minor, model="H200", memory_bytes=1 << 37, numa_node=None)


@pytest.mark.parametrize(
    ("there", "listed"),
    [
        ([], ["/dev/nvidiactl", "/dev/nvidia-uvm"]),
        (["nvidia-uvm-tools"], ["/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools"]),
        (["nvidia-modeset"], ["/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-modeset"]),
        (
            ["nvidia0", "nvidia-modeset", "nvidia-uvm-tools", "nvidiactl"],
            ["/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidia-modeset"],
        ),
    ],
)
def test_the_optional_nodes_are_listed_only_where_they_are_there(
    tmp_path: Path, there: list[str], listed: list[str]
) -> None:
    for name in there:
        (tmp_path / name).touch()
    assert list(common_nodes(tmp_path)) == listed


def test_a_container_gets_the_nodes_of_its_own_gpus_and_of_no_other() -> None:
    assert nodes([gpu(3)], ("/dev/nvidiactl",)) == ("/dev/nvidiactl", "/dev/nvidia3")
    assert nodes([gpu(0), gpu(12)], ("/dev/nvidiactl",)) == ("/dev/nvidiactl", "/dev/nvidia0", "/dev/nvidia12")


def test_gpus_without_a_node_get_none_at_all() -> None:
    # A node that is not there would keep the container from starting.
    assert nodes([gpu(None)], ("/dev/nvidiactl",)) == ()
    assert nodes([gpu(0), gpu(None)], ("/dev/nvidiactl",)) == ()


def test_a_mig_instance_has_the_node_of_its_gpu_and_those_of_its_own_capabilities() -> None:
    placed = MigInstance(
        profile="1g.10gb", parent_uuid="GPU-3", gpu_instance=1, compute_instance=0, capabilities=(12, 13)
    )
    own = ("/dev/nvidia3", "/dev/nvidia-caps/nvidia-cap12", "/dev/nvidia-caps/nvidia-cap13")
    assert nodes([replace(gpu(3), instance=placed)], ("/dev/nvidiactl",)) == ("/dev/nvidiactl", *own)
    # The node of its GPU alone opens no instance, and would be all that a program finds.
    assert nodes([replace(gpu(3), instance=replace(placed, capabilities=()))], ("/dev/nvidiactl",)) == ()
