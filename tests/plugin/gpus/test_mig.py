"""What is read of MIG instances: their profile, their nodes, and how many clients MPS has on them."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from plugin.errors import DiscoveryError
from plugin.gpus.discovery import discover
from plugin.gpus.gpu import MigInstance
from plugin.gpus.mig import capabilities, list_instances
from plugin.gpus.nvml import NO_PERMISSION
from plugin.shares.strategy import check_of, strategies
from plugin.simulated.gpus import SimulatedNode, simulated_node
from plugin.simulated.nvml import SimulatedNvml
from plugin.simulated.nvml_errors import SimulatedNvmlError
from policies.cluster import Cluster
from policies.node_state import left_out
from policies.nodes import NodeRule

PLACED = MigInstance(profile="1g.10gb", parent_uuid="GPU-0", gpu_instance=3, compute_instance=1)
# As the kernel writes it: docs.nvidia.com/datacenter/tesla/mig-user-guide/device-nodes-and-capabilities.html
MINORS = """\
config 1
monitor 2
gpu0/gi0/access 3
gpu0/gi3/access 30
gpu0/gi3/ci1/access 32
gpu1/gi3/access 165
gpu1/gi3/ci1/access 167
nonsense
"""


def simulated(node: SimulatedNode, **replaced: Any) -> SimulatedNvml:
    nvml = SimulatedNvml(node, clock=lambda: 0.0)
    nvml.nvmlInit()
    vars(nvml).update(replaced)
    return nvml


@pytest.mark.parametrize(("minor", "nodes"), [(0, (30, 32)), (1, (165, 167)), (2, ()), (None, ())])
def test_the_nodes_of_an_instance_are_those_of_its_gpu_instance_and_compute_instance(
    tmp_path: Path, minor: int | None, nodes: tuple[int, ...]
) -> None:
    (tmp_path / "mig-minors").write_text(MINORS)
    assert capabilities(minor, PLACED, minors=tmp_path / "mig-minors") == nodes


def test_where_one_of_the_two_is_not_listed_there_is_none(tmp_path: Path) -> None:
    (tmp_path / "mig-minors").write_text(MINORS)
    assert capabilities(0, replace(PLACED, compute_instance=2), minors=tmp_path / "mig-minors") == ()
    assert capabilities(0, PLACED, minors=tmp_path / "missing") == ()
    (tmp_path / "mig-minors").write_bytes(b"\xff\n")
    assert capabilities(0, PLACED, minors=tmp_path / "mig-minors") == ()


@pytest.mark.parametrize(
    ("slices", "compute_slices", "memory_mib", "profile"),
    [
        (1, 1, 9728, "1g.10gb"),
        (2, 2, 19968, "2g.20gb"),
        (3, 3, 40448, "3g.40gb"),
        (7, 7, 81053, "7g.80gb"),
    ],
)
def test_without_a_name_the_slices_and_the_memory_are_the_profile(
    slices: int, compute_slices: int, memory_mib: int, profile: str
) -> None:
    attributes = SimpleNamespace(
        gpuInstanceSliceCount=slices, computeInstanceSliceCount=compute_slices, memorySizeMB=memory_mib
    )
    nvml = simulated(
        simulated_node("1xH100:1x1g.10gb"),
        nvmlDeviceGetName=lambda _handle: "NVIDIA H100",
        nvmlDeviceGetAttributes_v2=lambda _handle: attributes,
    )
    (one,) = list_instances(nvml, nvml.nvmlDeviceGetHandleByIndex(0)).listed
    assert one.profile == profile


@pytest.mark.parametrize("name", ["NVIDIA H100 80GB HBM3", "NVIDIA H100 80GB HBM3 MIG 1c.3g.40gb"])
def test_a_compute_instance_that_is_a_part_of_its_gpu_instance_is_not_shared(name: str) -> None:
    attributes = SimpleNamespace(gpuInstanceSliceCount=3, computeInstanceSliceCount=1, memorySizeMB=40448)
    nvml = simulated(
        simulated_node("1xH100:1x3g.40gb"),
        nvmlDeviceGetName=lambda _handle: name,
        nvmlDeviceGetAttributes_v2=lambda _handle: attributes,
    )
    with pytest.raises(
        DiscoveryError, match=r"the compute instance 1c\.3g\.40gb, .* \(nvidia-smi mig -cgi 3g\.40gb -C\)"
    ):
        discover(nvml)


@pytest.mark.parametrize("uuid", ["MIG-GPU-5c89852c-d268-c3f3-1b07-005d5ae1dc3f/7/0", "MIG-../../etc", "GPU-1", ""])
def test_a_uuid_that_cannot_be_a_directory_is_none_of_an_instance(uuid: str) -> None:
    nvml = simulated(simulated_node("1xH100:2x1g.10gb"), nvmlDeviceGetUUID=lambda _handle: uuid)
    found = list_instances(nvml, nvml._node.gpus[0])
    assert found.listed == ()
    assert len(found.problems) == 2


@pytest.mark.parametrize(
    ("gpu_clients", "profile", "clients"), [(48, "1g.10gb", 6), (60, "3g.40gb", 25), (48, "7g.80gb", 48)]
)
def test_mps_has_fewer_clients_on_an_instance_in_proportion_to_its_slices(
    gpu_clients: int, profile: str, clients: int
) -> None:
    nvml = simulated(
        simulated_node(f"1xH100:1x{profile}"),
        nvmlDeviceGetCudaComputeCapability=lambda _handle: (9, 0),
        nvmlSystemGetCudaDriverVersion_v2=lambda: 13010 if gpu_clients == 60 else 12080,
    )
    (one,) = discover(nvml).gpus
    assert one.mps_clients == clients


def test_gpus_in_mig_mode_are_their_instances_and_the_others_themselves(tmp_path: Path) -> None:
    file = tmp_path / "gpus.yaml"
    file.write_text("gpus:\n- {model: H100, mig: [1g.10gb, 1g.10gb+me]}\n- {model: H100, mig: []}\n- {model: T4}\n")
    found = discover(SimulatedNvml(simulated_node(str(file)), clock=lambda: 0.0))
    assert [(gpu.profile, gpu.index, gpu.model) for gpu in found.gpus] == [
        ("1g.10gb", 0, "H100"),
        ("1g.10gb.me", 0, "H100"),
        ("", 2, "T4"),
    ]
    assert len(found.skipped) == 1
    assert "GPU 1 of 3 cannot be shared" in found.skipped[0]
    assert "is in MIG mode and has no instance" in found.skipped[0]


@pytest.mark.parametrize(
    ("rule", "is_left_out"),
    [
        (None, False),
        (NodeRule(strategy="none", indexes=(0,)), False),
        (NodeRule(strategy="whole"), False),
        (NodeRule(mig="whole"), True),
        (NodeRule(mig="shared"), True),
    ],
)
@pytest.mark.parametrize("vgpus", [10, 100])  # the latter being more than MPS serves clients
def test_a_gpu_in_mig_mode_without_instances_is_left_out_only_where_they_are_to_be_shared(
    tmp_path: Path, rule: NodeRule | None, vgpus: int, *, is_left_out: bool
) -> None:
    file = tmp_path / "gpus.yaml"
    file.write_text("gpus:\n- {model: H100, mig: []}\n- {model: H100}\n")
    cluster = Cluster(nodes=(rule,) if rule else ())
    strategy_of = strategies(cluster, node_name="n", number_of=lambda gpu: gpu.index, default="time-slicing")
    check = check_of(strategy_of, lambda _gpu, _strategy: vgpus)
    found = discover(SimulatedNvml(simulated_node(str(file)), clock=lambda: 0.0), check=check)
    assert [gpu.index for gpu in found.gpus] == [1]
    (why,) = found.skipped
    assert "is in MIG mode and has no instance" in why
    assert bool(left_out(found.skipped)) is is_left_out
    assert ("create some" in why) is is_left_out


def test_instances_are_found_where_nvml_refuses_the_memory_of_their_gpu() -> None:
    nvml = simulated(simulated_node("1xH100:2x3g.40gb"))
    of_anything = nvml.nvmlDeviceGetMemoryInfo

    def of_instances(handle: Any, version: int | None = None) -> Any:
        if handle.instance is None:
            raise SimulatedNvmlError(NO_PERMISSION)
        return of_anything(handle, version=version)

    vars(nvml).update(nvmlDeviceGetMemoryInfo=of_instances)
    assert [gpu.memory_bytes // 2**30 for gpu in discover(nvml).gpus] == [29, 29]


@pytest.mark.parametrize("number", [2, 3, 13, 999])
def test_a_gpu_whose_instances_cannot_be_counted_does_not_count_as_one_without_any(number: int) -> None:
    def fail(_handle: Any) -> int:
        error = SimulatedNvmlError(1)
        error.value = number
        raise error

    nvml = simulated(simulated_node("2xH100:1x1g.10gb"), nvmlDeviceGetMaxMigDeviceCount=fail)
    with pytest.raises(DiscoveryError, match="how many MIG instances it can have is not told: Uninitialized"):
        discover(nvml)


@pytest.mark.parametrize("number", [15, 16])
def test_a_gpu_that_is_lost_while_its_instances_are_listed_is_lost(number: int) -> None:
    def fail(_handle: Any, _index: int) -> Any:
        error = SimulatedNvmlError(1)
        error.value = number
        raise error

    nvml = simulated(simulated_node("1xH100:1x1g.10gb"), nvmlDeviceGetMigDeviceHandleByIndex=fail)
    with pytest.raises(DiscoveryError, match="GPU 0 of 1 cannot be shared: Uninitialized"):
        discover(nvml)
