"""Who allocates each GPU of a node: the kubelet with the device plugin, or the scheduler by DRA. One of the two."""

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from plugin.dra.checkpoint import FILE, claimed_gpus
from plugin.errors import DraError
from plugin.gpus.gpu import Gpu
from plugin.gpus.numbers import NumberOf
from plugin.grid_checks import AllocationOf
from plugin.pod_resources.tenants import Tenant
from plugin.shares.division import Division
from plugin.shares.handover import HandoverSettings
from plugin.shares.strategy import SharedGpu
from plugin.state_files import boot_id
from policies.cluster import Cluster
from policies.contract import DEVICE_PLUGIN, DRA, DRIVER, Allocation
from program.log import WarnOnce

if TYPE_CHECKING:
    from plugin.dra.driver import DraDriver

_log = logging.getLogger(__name__)

Publish = Callable[[Sequence[SharedGpu]], None]
LookForDevices = Callable[[Sequence[SharedGpu], str], str]
Held = Callable[[], Mapping[Allocation, Collection[str]]]  # the GPUs, by UUID, of which containers hold something
ReadTenants = Callable[[], tuple[Tenant, ...]]


def allocations(cluster: Cluster, *, node_name: str, number_of: NumberOf, default: Allocation) -> AllocationOf:
    """Make the function that says who allocates a GPU; *default* holds where no entry of `nodes` says."""

    def allocation_of(gpu: Gpu) -> Allocation:
        return cluster.allocation(node=node_name, model=gpu.model, index=number_of(gpu), otherwise=default)

    return allocation_of


@dataclass(frozen=True, slots=True, kw_only=True)
class DraPlaces:
    """Where a driver of DRA meets its node."""

    node: str
    default: Allocation  # of its GPUs
    plugins_dir: Path  # of the kubelet
    registrar_dir: Path  # in which the kubelet looks for plugins
    service_account: Path  # directory of the token for the API server


def dra_driver(
    cluster: Cluster,
    division: Division,
    handover: HandoverSettings,
    places: DraPlaces,
    *,
    environment: Mapping[str, str],
) -> "DraDriver | None":
    """
    Make the driver of DRA, if a GPU of this node can be allocated by it, or containers still hold what was.

    Raises:
        PluginError: If it cannot be served here, or nobody knows who holds what.
    """
    is_asked_for = DRA in (places.default, *(rule.allocation for rule in cluster.nodes_of(places.node)))
    if not is_asked_for and not left_claimed(places):
        return None
    from plugin.dra.api_server import ApiServer  # noqa: PLC0415 - 5 MiB that most nodes do not need
    from plugin.dra.driver import DraDriver, DraSettings  # noqa: PLC0415 - likewise

    settings = DraSettings(
        node=places.node, plugins_dir=places.plugins_dir, registrar_dir=places.registrar_dir, handover=handover
    )
    try:
        api = ApiServer.from_environment(environment, credentials=places.service_account)
    except DraError as error:
        if is_asked_for:
            raise
        fix = (
            "or drain the node of pods with a share, delete by force those that stay Terminating since nobody takes "
            f"their claims back, and once none of their containers runs, remove {places.plugins_dir / DRIVER / FILE}"
        )
        fields = {"gpus": sorted(left_claimed(places)), "reason": f"{error}; {fix}"}
        _log.warning("GPUs of which claims hold something are shared by nobody", extra=fields)
        return None
    return DraDriver(settings, cluster, division, api, boot_id=boot_id())


def told_with_dra(look: LookForDevices, driver: "DraDriver | None") -> LookForDevices:
    """Let *look*, which says how containers get their GPU, say too whether the scheduler sees those of DRA."""
    if driver is None:
        return look
    return lambda gpus, version: f"{look(gpus, version)}; allocation by DRA: {driver.told}"


def located_with_dra(read: ReadTenants, driver: "DraDriver | None") -> ReadTenants:
    """Let *read*, which asks the kubelet who holds what, say too which GPUs a device of several is."""
    if driver is None:
        return read

    def located() -> tuple[Tenant, ...]:
        return tuple(
            replace(tenant, together=frozenset(uuid for device in tenant.devices for uuid in driver.parts_of(device)))
            for tenant in read()
        )

    return located


def left_claimed(places: DraPlaces) -> frozenset[str]:
    """
    Name the GPUs of which claims hold something, by UUID, as far as a file says it.

    Raises:
        DraError: If there is one that cannot be read.
    """
    return claimed_gpus(places.plugins_dir / DRIVER, boot_id=boot_id())


def held_of(of_device_plugin: Callable[[], Collection[str]], driver: "DraDriver | None", places: DraPlaces) -> Held:
    """
    Make the function that says of which GPUs containers hold something, and from whom they have it.

    Without a driver it reads what was held before: that ends when the time is over, or an administrator removes it.

    Raises:
        DraError: If there is no driver, and a file of one that cannot be read.
    """
    if driver is not None:
        return lambda: {DEVICE_PLUGIN: of_device_plugin(), DRA: driver.held_gpus()}
    left, warn = left_claimed(places), WarnOnce(_log)

    def held() -> Mapping[Allocation, Collection[str]]:
        nonlocal left
        try:
            left = left_claimed(places)
        except DraError as error:
            warn("what claims held before counts still", str(error))
        return {DEVICE_PLUGIN: of_device_plugin(), DRA: left}

    return held


class Allocators:
    """
    Gives each GPU to the one who allocates it.

    A plugin that starts can find other entries in `nodes`. So while containers hold something of a GPU, it is with whom
    they have it from, whatever these say.
    """

    def __init__(self, allocation_of: AllocationOf, *, held: Held, to_device_plugin: Publish, to_dra: Publish) -> None:
        self._allocation_of = allocation_of
        self._held = held
        self._to_device_plugin = to_device_plugin
        self._to_dra = to_dra
        self._allocations: dict[str, Allocation] = {}  # as `nodes` says
        self._kept: dict[str, Allocation] = {}  # otherwise
        self._published: dict[str, Allocation] = {}  # as both were told last

    def by_nodes(self, gpu: Gpu) -> Allocation:
        """Say who is to allocate a GPU, once nobody else holds anything of it."""
        return self._allocations.get(gpu.uuid) or self._allocation_of(gpu)

    def by_plugin(self, gpu: Gpu) -> bool:
        """Whether the kubelet allocates a GPU, with the device plugin."""
        return (self._kept.get(gpu.uuid) or self.by_nodes(gpu)) != DRA

    def publish(self, gpus: Sequence[SharedGpu]) -> None:
        """
        Tell both which GPUs there are, and how they are.

        Raises:
            PluginError: If one that is new cannot be advertised; it is tried again the next time.
        """
        self._look(gpus)
        if moved := {uuid for uuid, by in self._now(gpus).items() if self._published.get(uuid, by) != by}:
            # Nobody gives them away then; what was given away until now counts before another one may.
            self._tell([one for one in gpus if one.gpu.uuid not in moved])
            self._look(gpus)
        self._tell(gpus)
        self._published = self._now(gpus)

    def _look(self, gpus: Sequence[SharedGpu]) -> None:
        """See who is to have each GPU, by `nodes` and by what containers hold."""
        held = self._held()
        for one in gpus:
            if one.gpu.uuid not in self._allocations:
                self._allocations[one.gpu.uuid] = self._allocation_of(one.gpu)
            self._keep(one.gpu.uuid, [by for by, uuids in held.items() if one.gpu.uuid in uuids])

    def _now(self, gpus: Sequence[SharedGpu]) -> dict[str, Allocation]:
        return {one.gpu.uuid: DEVICE_PLUGIN if self.by_plugin(one.gpu) else DRA for one in gpus}

    def _tell(self, gpus: Sequence[SharedGpu]) -> None:
        self._to_dra([one for one in gpus if not self.by_plugin(one.gpu)])
        self._to_device_plugin([one for one in gpus if self.by_plugin(one.gpu)])

    def _keep(self, uuid: str, held_by: Sequence[Allocation]) -> None:
        wanted = self._allocations[uuid]
        if not held_by or wanted in held_by:
            self._kept.pop(uuid, None)
        elif uuid not in self._kept:
            self._kept[uuid] = held_by[0]
            reason = f"containers hold shares of it by {held_by[0]}, and by `nodes` it is one of {wanted} now"
            _log.warning("a GPU stays with who has allocated it", extra={"gpu": uuid, "reason": reason})
