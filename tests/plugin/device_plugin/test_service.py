"""The service that the kubelet calls: what it lists, what it answers, and what it logs."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from threading import Event
from typing import Any, cast

import grpc
import pytest

from plugin.device_plugin.devices import Devices
from plugin.device_plugin.service import Resource
from plugin.device_plugin.session import Session
from plugin.device_plugin.v1beta1 import api_pb2, api_pb2_grpc
from plugin.gpus.gpu import Pool
from plugin.shares.handover import Delivery
from plugin.shares.strategy import TimeSlicing
from plugin.simulated.device_manager import Request, UnexpectedAdmissionError
from plugin.simulated.gpus import simulated_gpus
from plugin.simulated.kubelet import SimulatedKubelet
from plugin.sockets import target
from policies.contract import Handover
from program.log import line_of

KIND = "gpu-share.dev/vgpu"
NODES = ("/dev/nvidiactl", "/dev/nvidia-uvm")
WAYS: tuple[Handover, ...] = ("envvar", "cdi", "devices")
DELIVERIES = [
    Delivery(
        ways=frozenset(ways), cdi_kind=KIND if "cdi" in ways else "", common_nodes=NODES if "devices" in ways else ()
    )
    for size in (1, 2, 3)
    for ways in combinations(WAYS, size)
]


@pytest.fixture
def stub(directory: Path, resource: Resource) -> Iterator[api_pb2_grpc.DevicePluginStub]:
    with served(directory, resource) as stub:
        yield stub


@contextmanager
def served(directory: Path, resource: Resource) -> Iterator[api_pb2_grpc.DevicePluginStub]:
    socket = directory / "plugin.sock"
    with Session(resource, socket, wake=Event()), grpc.insecure_channel(target(socket)) as channel:
        yield api_pb2_grpc.DevicePluginStub(channel)


def allocate_request(*containers: list[str]) -> api_pb2.AllocateRequest:
    return api_pb2.AllocateRequest(
        container_requests=[api_pb2.ContainerAllocateRequest(devices_ids=ids) for ids in containers]
    )


def ids(pool: Pool, gpu: int, *indices: int) -> list[str]:
    return [f"{pool.gpus[gpu].uuid}::{index}" for index in indices]


def own_line(caplog: pytest.LogCaptureFixture) -> dict[str, Any]:
    """Return what the service has logged, and not the registration."""
    (record,) = [one for one in caplog.records if one.name == "plugin.device_plugin.service"]
    line: dict[str, Any] = json.loads(line_of(record))
    return line


def test_the_options_ask_for_preferences_and_for_nothing_before_a_start(stub: api_pb2_grpc.DevicePluginStub) -> None:
    options = stub.GetDevicePluginOptions(api_pb2.Empty())
    assert options.get_preferred_allocation_available
    assert not options.pre_start_required


def test_all_vgpus_are_listed_at_once_with_their_numa_node(stub: api_pb2_grpc.DevicePluginStub, pool: Pool) -> None:
    stream = stub.ListAndWatch(api_pb2.Empty())
    devices = next(stream).devices
    assert [device.ID for device in devices] == [str(vgpu) for vgpu, _ in pool.vgpus()]
    assert {device.health for device in devices} == {"Healthy"}
    assert [node.ID for device in devices for node in device.topology.nodes] == [0] * 10 + [1] * 10
    stream.cancel()


def test_a_gpu_without_numa_node_has_no_topology(directory: Path, resource: Resource, pool: Pool) -> None:
    gpus = tuple(replace(gpu, numa_node=None) for gpu in pool.gpus)

    bare = replace(resource, devices=Devices(Pool(gpus=gpus, vgpus_per_gpu=10)))
    with served(directory, bare) as stub:
        stream = stub.ListAndWatch(api_pb2.Empty())
        assert not any(device.HasField("topology") for device in next(stream).devices)
        stream.cancel()


def test_a_gpus_fault_marks_all_its_vgpus_and_they_recover(
    registered: SimulatedKubelet, resource: Resource, pool: Pool
) -> None:
    resource.devices.set_faults({pool.gpus[0].uuid: "XID 79"})
    registered.wait_until(lambda: registered.allocatable(resource.name) == 10)
    assert {device.id for device in registered.devices(resource.name) if not device.healthy} == set(
        ids(pool, 0, *range(10))
    )
    assert registered.capacity(resource.name) == 20
    resource.devices.set_faults({})
    registered.wait_until(lambda: registered.allocatable(resource.name) == 20)


def test_nothing_is_sent_where_nothing_changed(stub: api_pb2_grpc.DevicePluginStub, resource: Resource) -> None:
    stream = stub.ListAndWatch(api_pb2.Empty(), timeout=0.5)
    next(stream)
    resource.devices.set_faults({})  # as it is already
    with pytest.raises(grpc.RpcError) as ended:
        next(stream)
    assert ended.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED


def test_streams_that_were_cancelled_hold_no_thread(stub: api_pb2_grpc.DevicePluginStub) -> None:
    for _ in range(40):
        stream = stub.ListAndWatch(api_pb2.Empty(), timeout=5)
        next(stream)
        stream.cancel()
    assert stub.GetDevicePluginOptions(api_pb2.Empty(), timeout=5).get_preferred_allocation_available


def test_many_gpus_of_many_vgpus_fit_into_one_message(directory: Path, resource: Resource) -> None:

    large = Pool(gpus=simulated_gpus("64xH200"), vgpus_per_gpu=100)
    with served(directory, replace(resource, devices=Devices(large))) as stub:
        stream = stub.ListAndWatch(api_pb2.Empty())
        assert len(next(stream).devices) == 6400
        stream.cancel()


def test_each_container_of_a_request_gets_its_own_answer(stub: api_pb2_grpc.DevicePluginStub, pool: Pool) -> None:
    answer = stub.Allocate(allocate_request(ids(pool, 0, 3), ids(pool, 1, 0, 1)))
    first, second = answer.container_responses
    assert (first.envs["NVIDIA_VISIBLE_DEVICES"], first.envs["GPU_SHARE_FRACTION"]) == (pool.gpus[0].uuid, "0.1")
    assert (second.envs["NVIDIA_VISIBLE_DEVICES"], second.envs["GPU_SHARE_FRACTION"]) == (pool.gpus[1].uuid, "0.2")
    assert [mount.host_path for mount in first.mounts] == [
        f"/tmp/nvidia-mps/{pool.gpus[0].uuid}",
        "/tmp/nvidia-mps/shm",
    ]
    assert [mount.container_path for mount in first.mounts] == [f"/tmp/nvidia-mps/{pool.gpus[0].uuid}", "/dev/shm"]
    assert (list(first.devices), list(first.cdi_devices)) == ([], [])  # by variable alone


def test_a_time_sliced_resource_mounts_nothing(directory: Path, resource: Resource, pool: Pool) -> None:
    with served(directory, replace(resource, sharing=TimeSlicing())) as stub:
        (answer,) = stub.Allocate(allocate_request(ids(pool, 0, 3))).container_responses
    assert not answer.mounts
    assert set(answer.envs) == {"NVIDIA_VISIBLE_DEVICES", "GPU_SHARE_FRACTION", "GPU_SHARE_MEMORY_MIB"}


@pytest.mark.parametrize("delivery", DELIVERIES, ids=lambda delivery: "+".join(sorted(delivery.ways)))
def test_the_pipes_of_the_own_gpu_alone_are_mounted_by_every_way_to_hand_it_over(
    directory: Path, resource: Resource, pool: Pool, delivery: Delivery
) -> None:
    with served(directory, replace(resource, delivery=lambda: delivery)) as stub:
        (answer,) = stub.Allocate(allocate_request(ids(pool, 1, 3))).container_responses
    own = f"/tmp/nvidia-mps/{pool.gpus[1].uuid}"
    mounts = {(mount.host_path, mount.container_path, mount.read_only) for mount in answer.mounts}
    by_cdi_alone = delivery.ways == {"cdi"}  # its specification brings the mounts
    assert mounts == (set() if by_cdi_alone else {(own, own, False), ("/tmp/nvidia-mps/shm", "/dev/shm", False)})


def test_device_nodes_may_be_read_and_written_and_not_made(directory: Path, resource: Resource, pool: Pool) -> None:
    real = Pool(gpus=tuple(replace(gpu, minor=gpu.index) for gpu in pool.gpus), vgpus_per_gpu=10)
    delivery = Delivery(ways=frozenset({"devices"}), common_nodes=NODES)
    with served(directory, replace(resource, devices=Devices(real), delivery=lambda: delivery)) as stub:
        (answer,) = stub.Allocate(allocate_request(ids(real, 1, 3))).container_responses
    assert [(node.host_path, node.container_path, node.permissions) for node in answer.devices] == [
        (path, path, "rw") for path in (*NODES, "/dev/nvidia1")
    ]
    assert not answer.cdi_devices


def test_each_container_gets_the_cdi_device_of_its_share(directory: Path, resource: Resource, pool: Pool) -> None:
    delivery = Delivery(ways=frozenset({"cdi"}), cdi_kind=KIND)
    with served(directory, replace(resource, delivery=lambda: delivery)) as stub:
        answers = stub.Allocate(allocate_request(ids(pool, 0, 3), ids(pool, 1, *range(10)))).container_responses
    assert [[device.name for device in answer.cdi_devices] for answer in answers] == [
        [f"{KIND}={pool.gpus[0].uuid}-1of10"],
        [f"{KIND}={pool.gpus[1].uuid}-10of10"],
    ]
    assert set(answers[0].envs) == {"NVIDIA_VISIBLE_DEVICES", "GPU_SHARE_FRACTION", "GPU_SHARE_MEMORY_MIB"}
    assert not any(answer.devices for answer in answers)


def test_a_preference_is_given_for_each_container(stub: api_pb2_grpc.DevicePluginStub, pool: Pool) -> None:
    wanted = api_pb2.ContainerPreferredAllocationRequest(
        available_deviceIDs=[*ids(pool, 0, 1, 2), *ids(pool, 1, 5)],
        must_include_deviceIDs=ids(pool, 0, 2),
        allocation_size=2,
    )
    answer = stub.GetPreferredAllocation(api_pb2.PreferredAllocationRequest(container_requests=[wanted, wanted]))
    assert [list(each.deviceIDs) for each in answer.container_responses] == [ids(pool, 0, 2, 1)] * 2


def test_before_a_start_there_is_nothing_to_do(stub: api_pb2_grpc.DevicePluginStub) -> None:
    assert stub.PreStartContainer(api_pb2.PreStartContainerRequest()) == api_pb2.PreStartContainerResponse()


def test_a_rejection_is_a_failed_precondition_with_a_sentence(stub: api_pb2_grpc.DevicePluginStub, pool: Pool) -> None:
    with pytest.raises(grpc.RpcError) as rejection:
        stub.Allocate(allocate_request([*ids(pool, 0, *range(9)), *ids(pool, 1, *range(2))]))
    assert rejection.value.code() is grpc.StatusCode.FAILED_PRECONDITION
    assert "more than a GPU of this node has, and several can only be whole" in (rejection.value.details() or "")


def test_a_failure_of_ours_is_one_sentence_and_never_a_traceback(
    directory: Path, resource: Resource, pool: Pool, caplog: pytest.LogCaptureFixture
) -> None:
    with (
        served(directory, replace(resource, devices=cast("Devices", None))) as stub,
        pytest.raises(grpc.RpcError) as failure,
    ):
        stub.Allocate(allocate_request(ids(pool, 0, 3)))
    assert failure.value.code() is grpc.StatusCode.INTERNAL
    assert failure.value.details() == "gpu-share failed on this node: see the plugin's log there"
    assert "AttributeError" in own_line(caplog)["traceback"]


def test_an_allocation_is_one_log_line_with_ids_and_no_more(
    registered: SimulatedKubelet, resource: Resource, pool: Pool, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.clear()
    registered.allocate(Request(pod="secret/name", container="main", resource=resource.name, count=3))
    line = own_line(caplog)
    assert line.pop("time").endswith("Z")
    assert line == {
        "level": "info",
        "message": "vGPUs allocated",
        "resource": "gpu-share.dev/vgpu",
        "gpus": [pool.gpus[0].uuid],
        "vgpus": 3,
    }


def test_a_rejection_reaches_the_pod_as_the_kubelet_words_it(registered: SimulatedKubelet, resource: Resource) -> None:
    for number in range(3):
        registered.allocate(Request(pod=f"default/{number}", container="main", resource=resource.name, count=4))
    registered.allocate(Request(pod="default/3", container="main", resource=resource.name, count=3))
    with pytest.raises(
        UnexpectedAdmissionError,
        match=r"^Allocate failed due to rpc error: code = FailedPrecondition desc = 4 vGPUs .*, which is unexpected$",
    ):
        registered.allocate(Request(pod="default/5", container="main", resource=resource.name, count=4))
