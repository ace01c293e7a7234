import tracemalloc
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import chain
from pathlib import Path

import grpc
import pytest

from plugin.errors import TenantsError
from plugin.gpus.gpu import VGpuId
from plugin.pod_resources.answer import MOST_CONTAINERS, parsed
from plugin.pod_resources.tenants import Tenant, read_tenants
from plugin.pod_resources.v1 import api_pb2, api_pb2_grpc
from plugin.sockets import target
from policies.contract import DRIVER

VGPU = "gpu-share.dev/vgpu"


class Lister(api_pb2_grpc.PodResourcesListerServicer):
    def __init__(self, answer: api_pb2.ListPodResourcesResponse | None) -> None:
        self._answer = answer

    def List(  # noqa: N802 - the protocol's name
        self,
        request: api_pb2.ListPodResourcesRequest,  # noqa: ARG002
        context: grpc.ServicerContext,
    ) -> api_pb2.ListPodResourcesResponse:
        if self._answer is None:
            context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "rejected by rate limit\nof the kubelet")
        return self._answer


@contextmanager
def kubelet(socket: Path, answer: api_pb2.ListPodResourcesResponse | None) -> Iterator[None]:
    with ThreadPoolExecutor(2) as threads:
        server = grpc.server(threads)
        api_pb2_grpc.add_PodResourcesListerServicer_to_server(Lister(answer), server)
        server.add_insecure_port(target(socket))
        server.start()
        yield
        server.stop(0).wait()


def pod(name: str, *devices: tuple[str, list[str]]) -> api_pb2.PodResources:
    held = [api_pb2.ContainerDevices(resource_name=resource, device_ids=ids) for resource, ids in devices]
    container = api_pb2.ContainerResources(name="main", devices=held)
    return api_pb2.PodResources(name=name, namespace="team", containers=[container])


def test_the_containers_that_hold_vgpus_are_named_with_them(directory: Path) -> None:
    answer = api_pb2.ListPodResourcesResponse(
        pod_resources=[
            pod("a", (VGPU, ["GPU-1::3"]), (VGPU, ["GPU-1::1", "GPU-2::0"])),
            pod("other", ("nvidia.com/gpu", ["GPU-1"])),
            pod("b", ("gpu-share.dev/gpu", ["GPU-3::0"])),
            pod("none"),
        ]
    )
    with kubelet(directory / "kubelet.sock", answer):
        first, second = read_tenants(directory / "kubelet.sock", {VGPU, "gpu-share.dev/gpu"})
    vgpus = (VGpuId("GPU-1", 1), VGpuId("GPU-1", 3), VGpuId("GPU-2", 0))
    held_as = dict.fromkeys(vgpus, VGPU)
    assert first == Tenant(namespace="team", pod="a", container="main", vgpus=vgpus, resources=held_as)
    assert second.resources == {VGpuId("GPU-3", 0): "gpu-share.dev/gpu"}
    assert (first.name, first.vgpus_on("GPU-1"), first.vgpus_on("GPU-9")) == ("team/a/main", vgpus[:2], ())
    moved = first.located({vgpus[0]: "GPU-9", vgpus[1]: "GPU-1", vgpus[2]: "GPU-2"}.__getitem__)
    assert (moved.vgpus_on("GPU-1"), moved.vgpus_on("GPU-9"), moved.is_on("GPU-9")) == (vgpus[1:2], vgpus[:1], True)
    assert second.name == "team/b/main"


def test_device_ids_that_are_not_ours_are_left_out(directory: Path) -> None:
    answer = api_pb2.ListPodResourcesResponse(pod_resources=[pod("a", (VGPU, ["nonsense", "GPU-1::01"]))])
    with kubelet(directory / "kubelet.sock", answer):
        assert read_tenants(directory / "kubelet.sock", {VGPU}) == ()


def test_a_kubelet_that_rejects_is_one_sentence(directory: Path) -> None:
    with (
        kubelet(directory / "kubelet.sock", None),
        pytest.raises(TenantsError, match=r"RESOURCE_EXHAUSTED: rejected by rate limit of the kubelet$"),
    ):
        read_tenants(directory / "kubelet.sock", {VGPU})


def test_a_kubelet_that_is_not_there_is_one_sentence(directory: Path) -> None:
    with pytest.raises(TenantsError, match=r"kubelet\.sock: the kubelet did not list pod resources: UNAVAILABLE"):
        read_tenants(directory / "kubelet.sock", {VGPU})


def test_who_holds_a_device_of_dra_is_on_its_gpu(directory: Path) -> None:
    ours = api_pb2.ClaimResource(driver_name="gpu-share.dev", pool_name="n", device_name="gpu-1-200m-0")
    others = api_pb2.ClaimResource(driver_name="example.com", pool_name="n", device_name="gpu-1-nic")
    both = api_pb2.DynamicResource(claim_resources=[ours, others])
    container = api_pb2.ContainerResources(name="main", dynamic_resources=[both])
    alone = api_pb2.ContainerResources(
        name="other", dynamic_resources=[api_pb2.DynamicResource(claim_resources=[others])]
    )
    answer = api_pb2.ListPodResourcesResponse(
        pod_resources=[api_pb2.PodResources(name="p", namespace="team", containers=[container, alone])]
    )
    with kubelet(directory / "kubelet.sock", answer):
        (tenant,) = read_tenants(directory / "kubelet.sock", {VGPU})
    assert (tenant.name, tenant.devices) == ("team/p/main", ("gpu-1-200m-0",))
    assert [tenant.is_on(uuid) for uuid in ("GPU-1", "GPU-11", "GPU-2")] == [True, False, False]
    assert [tenant.sizes_on(uuid) for uuid in ("GPU-1", "GPU-11")] == [(200,), ()]


def test_a_device_whose_name_says_no_size_counts_as_all_of_its_gpu() -> None:
    tenant = Tenant(namespace="team", pod="p", container="c", vgpus=(), devices=("gpu-1-x-0", "gpu-1-100m-whole-0"))
    assert tenant.sizes_on("GPU-1") == (1000, 100)


def test_a_kubelet_that_lists_no_pod_at_all_has_not_said_who_holds_what(directory: Path) -> None:
    nothing = api_pb2.ListPodResourcesResponse()
    with kubelet(directory / "kubelet.sock", nothing), pytest.raises(TenantsError, match="not even this one"):
        read_tenants(directory / "kubelet.sock", {VGPU})


def test_a_kubelet_that_lists_only_what_it_starts_from_files_has_not_said_who_holds_what(directory: Path) -> None:
    static = api_pb2.ListPodResourcesResponse(pod_resources=[pod("nginx-proxy-n", (VGPU, ["GPU-1::0"]))])
    with kubelet(directory / "kubelet.sock", static), pytest.raises(TenantsError, match="does not list this pod, own"):
        read_tenants(directory / "kubelet.sock", {VGPU}, own_pod="own")


def test_a_kubelet_that_lists_the_pod_that_asks_has_said_who_holds_what(directory: Path) -> None:
    both = api_pb2.ListPodResourcesResponse(pod_resources=[pod("a", (VGPU, ["GPU-1::0"])), pod("own")])
    with kubelet(directory / "kubelet.sock", both):
        (tenant,) = read_tenants(directory / "kubelet.sock", {VGPU}, own_pod="own")
    assert tenant.name == "team/a/main"


def claim(*requests: tuple[int, str], adds_up: bool) -> api_pb2.DynamicResource:
    """
    Make all of one claim, as the kubelet names it for each container: numbers of containers, and their devices.

    That of Kubernetes 1.36 *adds_up*: with each device it names the CDI devices of those before it.
    """
    own = [
        [
            api_pb2.CDIDevice(name="nvidia.com/gpu=GPU-1"),
            api_pb2.CDIDevice(name=f"gpu-share.dev/claim=claim-uid-container-{number}-request-0"),
        ]
        for number, _ in requests
    ]
    named = [list(chain.from_iterable(own[: place + 1])) if adds_up else one for place, one in enumerate(own)]
    return api_pb2.DynamicResource(
        claim_resources=[
            api_pb2.ClaimResource(driver_name="gpu-share.dev", device_name=device, cdi_devices=cdi_devices)
            for (_, device), cdi_devices in zip(requests, named, strict=True)
        ]
    )


@pytest.mark.parametrize("adds_up", [True, False])
@pytest.mark.parametrize(
    ("requests", "containers", "devices"),
    [
        ([(0, "gpu-1-100m-1"), (1, "gpu-1-400m-0")], "ab", [("gpu-1-100m-1",), ("gpu-1-400m-0",)]),
        ([(10, "gpu-1-100m-0"), (2, "gpu-1-400m-0")], "ab", [("gpu-1-400m-0",), ("gpu-1-100m-0",)]),
        (  # the first container is an init container, and is not listed
            [(2, "gpu-1-300m-0"), (1, "gpu-1-200m-0"), (0, "gpu-1-100m-0")],
            "bc",
            [("gpu-1-100m-0", "gpu-1-200m-0"), ("gpu-1-300m-0",)],
        ),
        ([(0, "gpu-1-100m-0"), (1, "gpu-1-200m-0")], "b", [("gpu-1-100m-0", "gpu-1-200m-0")]),
    ],
)
def test_each_container_has_its_device_of_the_claim_that_is_named_for_all(
    directory: Path, requests: list[tuple[int, str]], containers: str, devices: list[tuple[str, ...]], *, adds_up: bool
) -> None:
    whole = claim(*requests, adds_up=adds_up)
    listed = [api_pb2.ContainerResources(name=one, dynamic_resources=[whole]) for one in containers]
    listed.insert(1, api_pb2.ContainerResources(name="without"))
    pods = [api_pb2.PodResources(name="p", namespace="team", containers=listed)]
    with kubelet(directory / "kubelet.sock", api_pb2.ListPodResourcesResponse(pod_resources=pods)):
        tenants = read_tenants(directory / "kubelet.sock", {VGPU})
    assert [(one.container, one.devices) for one in tenants] == list(zip(containers, devices, strict=True))


def test_where_the_kubelet_names_no_requests_each_container_has_what_is_named_for_it(directory: Path) -> None:
    devices = [api_pb2.ClaimResource(driver_name="gpu-share.dev", device_name=f"gpu-1-100m-{one}") for one in range(2)]
    both = api_pb2.DynamicResource(claim_resources=devices)
    listed = [api_pb2.ContainerResources(name=one, dynamic_resources=[both]) for one in "ab"]
    pods = [api_pb2.PodResources(name="p", namespace="team", containers=listed)]
    with kubelet(directory / "kubelet.sock", api_pb2.ListPodResourcesResponse(pod_resources=pods)):
        tenants = read_tenants(directory / "kubelet.sock", {VGPU})
    assert [one.devices for one in tenants] == [("gpu-1-100m-0", "gpu-1-100m-1")] * 2


def test_containers_without_a_share_take_little_memory_however_long_their_names_are(directory: Path) -> None:
    many = [api_pb2.ContainerResources(name=f"{number:063}") for number in range(8000)]
    long = api_pb2.PodResources(name="p" * 253, namespace="n" * 63, containers=many)
    with kubelet(directory / "kubelet.sock", api_pb2.ListPodResourcesResponse(pod_resources=[long])):
        read_tenants(directory / "kubelet.sock", {VGPU}, everyone=True)
        tracemalloc.start()
        tenants = read_tenants(directory / "kubelet.sock", {VGPU}, everyone=True)
        taken, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert len(tenants) == 8000
    assert taken < 8000 * 300


@pytest.mark.parametrize("more", [0, 1])
def test_a_list_of_more_containers_than_fit_into_the_memory_of_the_plugin_is_not_taken(
    directory: Path, more: int
) -> None:
    pods = [
        api_pb2.PodResources(name=f"p{number}", containers=[api_pb2.ContainerResources(name="c")] * count)
        for number, count in enumerate([MOST_CONTAINERS // 2, MOST_CONTAINERS // 2 + more])
    ]
    with kubelet(directory / "kubelet.sock", api_pb2.ListPodResourcesResponse(pod_resources=pods)):
        if not more:
            read = read_tenants(directory / "kubelet.sock", {VGPU}, everyone=True)
            assert len(read) == MOST_CONTAINERS
            return
        with pytest.raises(TenantsError, match="more than 20000 containers on this node"):
            read_tenants(directory / "kubelet.sock", {VGPU}, everyone=True)


def test_a_list_that_a_later_kubelet_writes_with_more_fields_is_read() -> None:
    pod = api_pb2.PodResources(name="web-0", namespace="team", containers=[api_pb2.ContainerResources(name="main")])
    later = (
        b"\xa0\x06\x96\x01" + b"\xa9\x06" + bytes(8) + b"\xad\x06" + bytes(4) + b"\xb2\x06\x02ab"
    )  # fields 100 to 102
    part = pod.SerializeToString() + later
    (read,) = parsed(b"\x0a" + bytes([len(part)]) + part + later, Path("socket")).pod_resources
    assert (read.name, [one.name for one in read.containers]) == ("web-0", ["main"])


@pytest.mark.parametrize("answer", [b"\x0a", b"\x0a\x05\x1a", b"\xff" * 20, b"\x0b\x00", b"\x0a\x02\x0f\x00"])
def test_what_is_no_list_is_told(answer: bytes) -> None:
    with pytest.raises(TenantsError, match=r"^socket: the kubelet's list of pod resources cannot be read"):
        parsed(answer, Path("socket"))


def test_a_container_with_devices_of_dra_is_told_with_the_claim_that_gave_them(directory: Path) -> None:
    claim = api_pb2.DynamicResource(
        claim_name="web-0-x7k2p",
        claim_namespace="team",
        claim_resources=[api_pb2.ClaimResource(driver_name=DRIVER, device_name="gpu-1-200m-0")],
    )
    main = api_pb2.ContainerResources(name="main", dynamic_resources=[claim])
    web = api_pb2.PodResources(name="web-0", namespace="team", containers=[main])
    with kubelet(directory / "kubelet.sock", api_pb2.ListPodResourcesResponse(pod_resources=[web])):
        (tenant,) = read_tenants(directory / "kubelet.sock", {VGPU})
    assert tenant.given_by == {"team/web-0-x7k2p"}
