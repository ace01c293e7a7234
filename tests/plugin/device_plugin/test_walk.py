"""Containers come and go on a simulated node, and what they hold is added up after each step."""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plugin.errors import AllocationError
from plugin.gpus.gpu import Pool
from plugin.shares.allocation import allocate
from plugin.shares.limits import limits
from plugin.shares.preference import AllocationPolicy, preferred_ids
from plugin.shares.strategy import Mps
from plugin.simulated.device_manager import (
    ContainerKind,
    DeviceManager,
    KnownDevice,
    PluginCallError,
    Received,
    Request,
    UnexpectedAdmissionError,
)
from plugin.simulated.gpus import simulated_gpus
from tests.plugin.device_plugin.walk import RandomNode

RESOURCE = "gpu-share.dev/vgpu"
POOL = Pool(gpus=simulated_gpus("3xH200"), vgpus_per_gpu=4)
MIB = 1024 * 1024


@dataclass(frozen=True)
class RulesAsPlugin:
    """The rules without gRPC between; a kubelet that ignores the preference asks nothing."""

    policy: AllocationPolicy = "pack"
    is_asked: bool = True

    def preferred(self, *, available: Collection[str], must_include: Collection[str], size: int) -> Collection[str]:
        if not self.is_asked:
            return ()
        return preferred_ids(
            available=list(available), must_include=list(must_include), size=size, pool=POOL, policy=self.policy
        )

    def allocate(self, device_ids: Sequence[str]) -> Received:
        try:
            environment = limits(allocate(device_ids, POOL), Mps("/tmp/nvidia-mps")).environment
        except AllocationError as error:
            raise PluginCallError(str(error)) from error
        return Received(device_ids=tuple(device_ids), environment=environment, mounts=())


def manager_with_devices(seed: int = 1) -> DeviceManager:
    manager = DeviceManager(Random(seed))  # noqa: S311 - the same devices in every run
    manager.update(
        RESOURCE,
        [
            KnownDevice(id=str(vgpu), healthy=True, numa_nodes=frozenset({gpu.numa_node or 0}))
            for vgpu, gpu in POOL.vgpus()
        ],
    )
    return manager


def request(pod: str, count: int, *, container: str = "main", kind: ContainerKind = "app") -> Request:
    return Request(pod=pod, container=container, resource=RESOURCE, count=count, kind=kind)


@settings(max_examples=150, deadline=None)
@given(
    steps=st.lists(st.tuples(st.integers(0, 5), st.integers(1, 12)), max_size=40),
    seed=st.integers(0, 2**16),
    plugin=st.builds(RulesAsPlugin, policy=st.sampled_from(["pack", "spread"]), is_asked=st.booleans()),
    numa=st.sampled_from([None, frozenset({0}), frozenset({1}), frozenset({0, 1})]),
)
def test_no_vgpu_is_handed_out_twice_and_no_gpu_is_promised_beyond_its_whole(
    steps: list[tuple[int, int]], seed: int, plugin: RulesAsPlugin, numa: frozenset[int] | None
) -> None:
    manager = manager_with_devices(seed)
    running: dict[str, Received] = {}
    for number, count in steps:
        pod = f"default/pod-{number}"
        if running.pop(pod, None):
            manager.free(pod)
            continue
        wanted = Request(pod=pod, container="main", resource=RESOURCE, count=count, numa_nodes=numa)
        try:
            running[pod] = manager.allocate(wanted, plugin)
        except UnexpectedAdmissionError:
            manager.free(pod)
        check_what_is_promised(list(running.values()))


def check_what_is_promised(running: list[Received]) -> None:
    held = Counter(device_id for received in running for device_id in received.device_ids)
    assert max(held.values(), default=0) <= 1
    promised_mib: Counter[str] = Counter()
    promised_percent: Counter[str] = Counter()
    for received in running:
        uuids = received.environment["NVIDIA_VISIBLE_DEVICES"].split(",")
        assert {device_id.split("::")[0] for device_id in received.device_ids} == set(uuids)
        for uuid in uuids:
            promised_mib[uuid] += int(received.environment["GPU_SHARE_MEMORY_MIB"])
            promised_percent[uuid] += int(received.environment.get("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", 100))
    for gpu in POOL.gpus:
        assert promised_mib[gpu.uuid] * MIB <= gpu.memory_bytes
        assert promised_percent[gpu.uuid] <= 100


def test_packing_leaves_a_gpu_free_for_one_that_needs_it_whole() -> None:
    manager = manager_with_devices()
    for number, count in enumerate([2, 1, 1, 3]):
        manager.allocate(request(f"default/{number}", count), RulesAsPlugin())
    assert len(manager.allocate(request("default/whole", 4), RulesAsPlugin()).device_ids) == 4


def test_an_app_container_gets_the_vgpus_of_the_init_container_before_it() -> None:
    manager = manager_with_devices()
    first = manager.allocate(request("default/pod", 2, container="init", kind="init"), RulesAsPlugin())
    second = manager.allocate(request("default/pod", 3), RulesAsPlugin())
    assert set(first.device_ids) < set(second.device_ids)
    assert len(manager.holders(RESOURCE)) == 3


def test_a_sidecar_keeps_its_vgpus() -> None:
    manager = manager_with_devices()
    sidecar = manager.allocate(request("default/pod", 2, container="side", kind="sidecar"), RulesAsPlugin())
    app = manager.allocate(request("default/pod", 2), RulesAsPlugin())
    assert not set(sidecar.device_ids) & set(app.device_ids)


def test_a_container_that_starts_again_gets_what_it_had() -> None:
    manager = manager_with_devices()
    assert manager.allocate(request("default/pod", 2), RulesAsPlugin()) is manager.allocate(
        request("default/pod", 2), RulesAsPlugin()
    )


def test_a_share_goes_to_the_numa_node_that_the_kubelet_aligned_it_with() -> None:
    far = POOL.gpus[-1]
    wanted = Request(
        pod="default/pod", container="main", resource=RESOURCE, count=2, numa_nodes=frozenset({far.numa_node or 0})
    )
    received = manager_with_devices().allocate(wanted, RulesAsPlugin())
    assert {device_id.split("::")[0] for device_id in received.device_ids} == {far.uuid}


def test_a_pod_that_finds_no_room_on_one_gpu_fails_with_the_plugins_reason() -> None:
    manager = manager_with_devices()
    for number in range(3):
        manager.allocate(request(f"default/{number}", 3), RulesAsPlugin())
    before = manager.holders(RESOURCE)
    with pytest.raises(UnexpectedAdmissionError, match=r"^Allocate failed due to .*must lie on one GPU"):
        manager.allocate(request("default/two", 2), RulesAsPlugin())
    assert manager.holders(RESOURCE) == before


def test_a_pod_that_asks_for_more_than_is_free_fails_without_a_call() -> None:
    with pytest.raises(UnexpectedAdmissionError, match="Requested: 13, Available: 12"):
        manager_with_devices().allocate(request("default/pod", 13), RulesAsPlugin())


@pytest.mark.parametrize("policy", ["pack", "spread"])
def test_pods_faults_and_restarts_in_any_order_break_no_promise(tmp_path: Path, policy: AllocationPolicy) -> None:
    pool = Pool(gpus=simulated_gpus("4xL4"), vgpus_per_gpu=10)
    node = RandomNode(pool=pool, random=Random(4), directory=tmp_path, policy=policy)  # noqa: S311 - the same steps in every run
    for _ in range(2500):
        node.step()
    assert min(node.steps[kind] for kind in ("allocation", "release", "rejection", "fault", "recovery")) > 50
    assert node.steps["restart of the plugin"] > 10
