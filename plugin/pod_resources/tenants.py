"""Who holds which vGPUs, as the kubelet says it on its PodResources socket."""

import re
from collections.abc import Callable, Collection, Container, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Final

import grpc

from plugin.errors import TenantsError
from plugin.gpus.gpu import VGpuId, label_of
from plugin.pod_resources.answer import LARGEST_BYTES, parsed
from plugin.pod_resources.claimed import claimed, claims
from plugin.pod_resources.v1 import api_pb2
from plugin.rpc import channel
from policies.contract import MILLI_PER_GPU

# What stands behind a GPU's label in the name of a device of DRA: its size in thousandths, and a number.
_SIZE = re.compile(r"([1-9][0-9]{0,4})m(?:-(?:timesliced|whole))?-[0-9]+", re.ASCII)

_NOT_BY_MPS = re.compile(r"-[0-9]{1,5}m-(?:timesliced|whole)(?:-|$)", re.ASCII)

_LIST: Final = "/v1.PodResourcesLister/List"

_NOTHING: Mapping[VGpuId, str] = MappingProxyType({})
_NO_CLAIMS: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Tenant:
    """A container and the vGPUs that it holds. The kubelet leaves init containers out, unless they are sidecars."""

    namespace: str
    pod: str
    container: str
    vgpus: tuple[VGpuId, ...]
    devices: tuple[str, ...] = ()  # of DRA, by name, which begins with the GPU's label where it is on one GPU
    resources: Mapping[VGpuId, str] = field(default_factory=lambda: _NOTHING)  # as which it holds each vGPU
    elsewhere: Mapping[VGpuId, str] = field(
        default_factory=lambda: _NOTHING
    )  # UUID of each vGPU on another GPU than its ID says
    given_by: frozenset[str] = _NO_CLAIMS  # claims, or numbers of our answers, where somebody has said it
    together: Collection[str] = ()  # UUIDs of the GPUs of its devices of DRA, where somebody has said it

    @property
    def name(self) -> str:
        """How logs call it: namespace/pod/container."""
        return f"{self.namespace}/{self.pod}/{self.container}"

    def gpu_of(self, vgpu: VGpuId) -> str:
        """Name the GPU that one of its vGPUs is on, by its UUID."""
        return self.elsewhere.get(vgpu, vgpu.gpu_uuid)

    def vgpus_on(self, gpu_uuid: str) -> tuple[VGpuId, ...]:
        """List its vGPUs that are on one GPU."""
        return tuple(vgpu for vgpu in self.vgpus if self.gpu_of(vgpu) == gpu_uuid)

    def is_on(self, gpu_uuid: str) -> bool:
        """Whether it holds something of one GPU, a device of DRA or vGPUs."""
        return bool(self.sizes_on(gpu_uuid) or self.vgpus_on(gpu_uuid) or gpu_uuid in self.together)

    def has_share_by_mps_of(self, gpu_uuid: str) -> bool:
        """Whether it holds vGPUs of one GPU, or a device of DRA by MPS."""
        label = f"{label_of(gpu_uuid)}-"
        by_dra = any(one.startswith(label) and _NOT_BY_MPS.search(one) is None for one in self.devices)
        return by_dra or bool(self.vgpus_on(gpu_uuid)) or gpu_uuid in self.together

    @property
    def has_share_by_mps(self) -> bool:
        """Whether it holds vGPUs of any GPU, or a device of DRA by MPS."""
        return bool(self.vgpus) or any(_NOT_BY_MPS.search(one) is None for one in self.devices)

    def sizes_on(self, gpu_uuid: str) -> tuple[int, ...]:
        """List the sizes of its devices of DRA on one GPU, in thousandths; all of it where a name says none."""
        label = f"{label_of(gpu_uuid)}-"
        named = (_SIZE.fullmatch(one.removeprefix(label)) for one in self.devices if one.startswith(label))
        return tuple(int(match[1]) if match else MILLI_PER_GPU for match in named)

    def is_given_another(self, earlier: "Tenant") -> bool:
        """Whether it has its share by another allocation than *earlier* one of its name."""
        is_known = bool(self.given_by and earlier.given_by)
        is_same_share = (self.vgpus, self.devices) == (earlier.vgpus, earlier.devices)
        return not is_same_share or (is_known and self.given_by.isdisjoint(earlier.given_by))

    def located(self, gpu_of: Callable[[VGpuId], str]) -> "Tenant":
        """Give the same container, with its vGPUs on the GPUs that *gpu_of* says."""
        elsewhere = {vgpu: gpu for vgpu in self.vgpus if (gpu := gpu_of(vgpu)) != vgpu.gpu_uuid}
        return replace(self, elsewhere=elsewhere)


class OurResources(Container[str]):
    """
    The resources that are ours, by whatever name: by `_cluster.yaml` now, or as long as something is held by it.

    A rule says the former, *by_cluster*: those of MIG instances are not known before there is one. *held_as* names the
    latter, and is asked once, when a name comes that the rule does not know: after the kubelet has said it.
    """

    def __init__(self, by_cluster: Callable[[str], bool], held_as: Callable[[], Collection[str]]) -> None:
        self._by_cluster = by_cluster
        self._ask = held_as

    def __contains__(self, resource: object) -> bool:
        return isinstance(resource, str) and (self._by_cluster(resource) or resource in self._held_as)

    @cached_property
    def _held_as(self) -> Collection[str]:
        return self._ask()


def read_tenants(
    socket: Path,
    resources: Container[str],
    *,
    own_pod: str = "",
    timeout_seconds: float = 2.0,
    everyone: bool = False,
) -> tuple[Tenant, ...]:
    """
    Ask the kubelet which containers hold vGPUs of *resources*, such as gpu-share.dev/vgpu, or which there are.

    *own_pod* is the name of the pod that asks. As long as the kubelet does not list that, it has not heard of the pods
    which the API server has for its node, and lists none, or those alone that it starts from files.

    Raises:
        TenantsError: If nobody answers in time, or with something else, or does not know the pods yet.
    """
    with channel(socket, ("grpc.max_receive_message_length", LARGEST_BYTES)) as dialled:
        ask: grpc.UnaryUnaryMultiCallable[bytes, bytes] = dialled.unary_unary(_LIST)
        try:
            written = ask(api_pb2.ListPodResourcesRequest().SerializeToString(), timeout=timeout_seconds)
        except grpc.RpcError as error:
            reason = " ".join(f"{error.code().name}: {error.details()}".split())
            raise TenantsError(f"{socket}: the kubelet did not list pod resources: {reason}") from error
    answer = parsed(written, socket)
    # It serves before it knows a pod, for as long as the container runtime or the API server is not there.
    if not answer.pod_resources or (own_pod and all(pod.name != own_pod for pod in answer.pod_resources)):
        this = f"this pod, {own_pod}" if own_pod else "any pod, not even this one"
        raise TenantsError(f"{socket}: the kubelet does not list {this}: it has not heard of its pods yet")
    return tuple(
        tenant
        for pod in answer.pod_resources
        for tenant in _of_pod(pod, resources)
        if everyone or tenant.vgpus or tenant.devices
    )


def _of_pod(pod: api_pb2.PodResources, resources: Container[str]) -> Iterator[Tenant]:
    """List a pod's containers; a node can have tens of thousands, so they share what is the same of them all."""
    namespace, name = pod.namespace, pod.name
    for container, devices in zip(pod.containers, claimed(pod.containers), strict=True):
        vgpus = _vgpus(container, resources)
        yield Tenant(
            namespace=namespace,
            pod=name,
            container=container.name,
            vgpus=tuple(sorted(vgpus)),
            devices=devices,
            resources=vgpus or _NOTHING,
            given_by=claims(container) if devices else _NO_CLAIMS,
        )


def _vgpus(container: api_pb2.ContainerResources, resources: Container[str]) -> dict[VGpuId, str]:
    """Say of each vGPU of a container as which resource it has it."""
    ours = (devices for devices in container.devices if devices.resource_name in resources)
    named = ((VGpuId.parse(text), devices.resource_name) for devices in ours for text in devices.device_ids)
    return {vgpu: resource for vgpu, resource in named if vgpu}
