"""
MPS on a MIG instance, which NVIDIA says little about: each test is one question to a real one, and what is counted on.

They need a GPU in MIG mode with an instance: nvidia-smi -mig 1, nvidia-smi mig -cgi 1g.10gb -C.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from plugin.gpus.gpu import Gpu
from plugin.gpus.nvml import load_nvml
from policies.contract import MPS_PIPE_DIRECTORY
from tests.gpu.conftest import _directory
from tests.gpu.node import EVERYTHING_MIB, Node, running, runs, said, vgpus_of

DEVICE_UNAVAILABLE = 46
EXCLUSIVE_PROCESS = 3
CONTEXT_MIB = 1024


@pytest.fixture(scope="module")
def node(instance: Gpu) -> Iterator[Node]:
    """Give an instance with an MPS daemon of its own."""
    with _directory() as path, running(instance, path) as node:
        yield node


def test_the_kernel_lists_the_capabilities_of_an_instance_and_their_nodes_are_there(instance: Gpu) -> None:
    assert instance.instance is not None
    assert len(instance.instance.capabilities) == 2
    assert all(Path(f"/dev/nvidia-caps/nvidia-cap{number}").exists() for number in instance.instance.capabilities)


def test_a_share_of_an_instance_holds_a_process_to_its_memory(node: Node) -> None:
    answer = node.ask("allocate", str(EVERYTHING_MIB), environment=node.environment(1))
    share_mib = node.gpu.memory_bytes // vgpus_of(node.gpu) // (1 << 20)
    assert answer["error"] == 2
    assert share_mib - CONTEXT_MIB <= answer["allocated_mib"] <= share_mib


def test_a_share_of_an_instance_holds_a_process_to_its_threads(node: Node) -> None:
    whole = node.ask("info", environment=node.environment(vgpus_of(node.gpu)))["multiprocessors"]
    part = node.ask("info", environment=node.environment(vgpus_of(node.gpu) // 2))["multiprocessors"]
    assert 0 < part <= whole / 2


def test_an_instance_serves_as_many_clients_as_it_has_vgpus(node: Node) -> None:
    clients = [node.start("hold", environment=node.environment(1)) for _ in range(vgpus_of(node.gpu))]
    for client in clients:
        runs(client)
    assert [said(client).get("error") for client in clients] == [0] * len(clients)


def test_a_process_without_its_pipe_directory_finds_the_instance_taken_where_the_driver_can_do_that(node: Node) -> None:
    nvml = load_nvml()
    nvml.nvmlInit()
    try:
        mode = nvml.nvmlDeviceGetComputeMode(nvml.nvmlDeviceGetHandleByUUID(node.gpu.uuid))
    except nvml.NVMLError as error:
        pytest.skip(f"this driver has no compute mode of instances: {error}: docs/security.md says what that means")
    finally:
        nvml.nvmlShutdown()
    if mode != EXCLUSIVE_PROCESS:
        pytest.skip("this driver does not set the compute mode of instances: docs/security.md says what that means")
    environment = {**node.environment(1), MPS_PIPE_DIRECTORY: "/nowhere"}
    assert node.ask("info", environment=environment)["error"] == DEVICE_UNAVAILABLE
