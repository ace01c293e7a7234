"""The resources of this node: each appears with its first GPU, and stays."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol, assert_never

from plugin.device_plugin.devices import Devices
from plugin.device_plugin.service import Resource
from plugin.gpus.gpu import Gpu, Pool
from plugin.settings import Settings
from plugin.shares.handover import prepare
from plugin.shares.limits import Mps, Sharing, TimeSlicing, Whole
from policies.cluster import Cluster
from policies.contract import WHOLE, SharingStrategy


class Offered(Protocol):
    """A GPU and how it is."""

    @property
    def gpu(self) -> Gpu: ...  # noqa: D102
    @property
    def offer(self) -> SharingStrategy: ...  # noqa: D102 - what it is handed out as
    @property
    def why(self) -> str: ...  # noqa: D102 - it is unhealthy; empty if it is healthy


class Offers:
    """Gives each resource that appears to *serve*. One thread at a time calls."""

    def __init__(self, settings: Settings, cluster: Cluster, *, serve: Callable[[Resource], None]) -> None:
        self._settings = settings
        self._cluster = cluster
        self._serve = serve
        self._resources: dict[SharingStrategy, Resource] = {}
        self._faults: dict[str, str] = {}

    @property
    def names(self) -> Mapping[SharingStrategy, str]:
        """The extended resource of each kind of offer."""
        return self._cluster.resource_names

    @property
    def offered(self) -> tuple[str, ...]:
        """The extended resources that this node has."""
        return tuple(resource.name for resource in self._resources.values())

    def resource_of(self, gpu: Gpu) -> str | None:
        """Say as which resource a GPU is handed out; None if it is left to others."""
        offer = self.offer(gpu)
        return self.names[offer] if offer else None

    def offer(self, gpu: Gpu) -> SharingStrategy | None:
        """Say what a GPU is handed out as; None if it is left to others."""
        return self._cluster.strategy(
            node=self._settings.node_name, model=gpu.model, index=gpu.index, otherwise=self._settings.strategy
        )

    def publish(self, offered: Sequence[Offered]) -> None:
        """
        Tell the kubelet how the GPUs are; those that are new are offered from now on.

        Raises:
            PluginError: If one that is new cannot be; it is tried again the next time.
        """
        faults = {one.gpu.uuid: one.why for one in offered if one.why}
        if faults != self._faults:
            self._faults = faults
            for resource in self._resources.values():
                resource.devices.set_faults(faults)
        for offer in dict.fromkeys(one.offer for one in offered):
            self._offer_more(offer, tuple(one.gpu for one in offered if one.offer == offer))

    def _offer_more(self, offer: SharingStrategy, gpus: tuple[Gpu, ...]) -> None:
        resource = self._resources.get(offer)
        if resource is None:
            pool = Pool(gpus=gpus, vgpus_per_gpu=1 if offer == WHOLE else self._cluster.vgpus_per_gpu)
            resource = self._made(offer, pool)
            self._serve(resource)
            self._resources[offer] = resource
        elif gpus != resource.devices.pool.gpus:
            # Before the kubelet hears of those that are new: it may hand one out at once.
            self._made(offer, replace(resource.devices.pool, gpus=gpus))
            resource.devices.set_gpus(gpus)

    def _made(self, offer: SharingStrategy, pool: Pool) -> Resource:
        name, sharing = self.names[offer], self._sharing(offer)
        return Resource(
            name=name,
            devices=Devices(pool, faults=self._faults),
            sharing=sharing,
            allocation_policy=self._settings.allocation_policy,
            delivery=prepare(self._settings, name, pool, sharing),
        )

    def _sharing(self, offer: SharingStrategy) -> Sharing:
        match offer:
            case "mps":
                return Mps(self._cluster.mps.pipe_directory)
            case "time-slicing":
                return TimeSlicing()
            case "whole":
                return Whole()
            case _:
                assert_never(offer)
