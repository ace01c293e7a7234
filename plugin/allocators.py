"""Who allocates each GPU of a node: the kubelet with the device plugin, or the scheduler by DRA. One of the two."""

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from plugin.dra.checkpoint import FILE, claimed_gpus
from plugin.errors import DraError
from plugin.gpus.gpu import Gpu
from plugin.gpus.numbers import NumberOf
from plugin.grid_checks import AllocationOf
from plugin.shares.division import Division
from plugin.shares.handover import HandoverSettings
from plugin.shares.strategy import SharedGpu
from plugin.state_files import boot_id
from plugin.usage.pod_cgroups import HasProcesses
from policies.cluster import Cluster
from policies.contract import DEVICE_PLUGIN, DRA, DRIVER, Allocation
from program.log import WarnOnce

if TYPE_CHECKING:
    from plugin.device_plugin.held import HeldVgpus
    from plugin.dra.driver import DraDriver

_log = logging.getLogger(__name__)

Publish = Callable[[Sequence[SharedGpu]], None]
LookForDevices = Callable[[Sequence[SharedGpu], str], str]
Withdraw = Callable[[Collection[str]], Collection[str]]  # of these GPUs, by UUID, those that are free
Held = Callable[[], Mapping[Allocation, Collection[str]]]  # the GPUs, by UUID, of which containers hold something


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
    has_processes: HasProcesses


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
    is_asked_for = asks_for_dra(cluster, places)
    if not is_asked_for and not left_claimed(places):
        return None
    from plugin.dra.api_server import ApiServer  # noqa: PLC0415 - 5 MiB that most nodes do not need
    from plugin.dra.driver import DraDriver, DraSettings  # noqa: PLC0415 - likewise

    settings = DraSettings(
        node=places.node,
        plugins_dir=places.plugins_dir,
        registrar_dir=places.registrar_dir,
        handover=handover,
        has_processes=places.has_processes,
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


def asks_for_dra(cluster: Cluster, places: DraPlaces) -> bool:
    """Whether a GPU of the node may be allocated by DRA."""
    return DRA in (places.default, *(rule.allocation for rule in cluster.nodes_of(places.node)))


def told_with_dra(look: LookForDevices, driver: "DraDriver | None") -> LookForDevices:
    """Let *look*, which says how containers get their GPU, say too whether the scheduler sees those of DRA."""
    if driver is None:
        return look
    return lambda gpus, driver_version: f"{look(gpus, driver_version)}; allocation by DRA: {driver.publisher.told}"


def slices_not_published(driver: "DraDriver | None") -> str:
    """Say why the scheduler does not see the GPUs of DRA as they are; empty if it does, or there is no *driver*."""
    return driver.publisher.not_published if driver is not None else ""


def unwritten_of(
    held: "HeldVgpus", driver: "DraDriver | None", *, by_plugin: Callable[[Gpu], bool]
) -> Callable[[SharedGpu], str]:
    """Make the function that says why it cannot be written who holds what of a GPU: vGPUs *by_plugin*, or claims."""
    by_dra = driver.unwritten if driver is not None else str
    return lambda one: held.unwritten if by_plugin(one.gpu) else by_dra()


def needing_variable(handover: HandoverSettings, held: "HeldVgpus", driver: "DraDriver | None") -> Callable[[], bool]:
    """Make the function that says whether NVIDIA_VISIBLE_DEVICES brings containers their GPU: new or earlier ones."""
    return lambda: handover.needs_variable or held.by_variable or (driver is not None and driver.by_variable())


def left_claimed(places: DraPlaces) -> frozenset[str]:
    """
    Name the GPUs of which claims hold something, by UUID, as far as a file says it.

    Raises:
        DraError: If there is one that cannot be read.
    """
    return claimed_gpus(places.plugins_dir / DRIVER, boot_id=boot_id(), has_processes=places.has_processes)


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


def left_to_nobody(held: Held, driver: "DraDriver | None") -> Callable[[], frozenset[str]]:
    """Make the function that names the GPUs, by UUID, of which claims *held* something, and no driver takes it back."""

    def left() -> frozenset[str]:
        now = held()
        return frozenset(now[DRA]).difference(now[DEVICE_PLUGIN])

    return left if driver is None else frozenset


def withdrawing(of_device_plugin: Withdraw, driver: "DraDriver | None") -> Mapping[Allocation, Withdraw]:
    """Make the functions that take GPUs back; without a driver nobody gives one away by DRA."""
    return {DEVICE_PLUGIN: of_device_plugin, DRA: driver.withdraw if driver is not None else lambda gpus: gpus}


class Allocators:
    """
    Gives each GPU to the one who allocates it.

    A plugin that starts can find other entries in `nodes`. So while containers hold something of a GPU, it is with whom
    they have it from, whatever these say. To see that they hold nothing, and to give nothing away from then on, is one
    step of whoever loses it: the other one is told of it after that.
    """

    def __init__(
        self,
        allocation_of: AllocationOf,
        *,
        held: Held,
        withdraw: Mapping[Allocation, Withdraw],
        to_device_plugin: Publish,
        to_dra: Publish,
    ) -> None:
        self._allocation_of = allocation_of
        self._held = held
        self._withdraw = withdraw
        self._to_device_plugin = to_device_plugin
        self._to_dra = to_dra
        self._wanted: dict[str, Allocation] = {}  # as `nodes` says
        self._by: dict[str, Allocation] = {}  # who has each
        self._staying: frozenset[str] = frozenset()  # with whom `nodes` says no more

    def by_nodes(self, gpu: Gpu) -> Allocation:
        """Say who is to allocate a GPU, once nobody else holds anything of it."""
        return self._wanted.get(gpu.uuid) or self._allocation_of(gpu)

    def by_plugin(self, gpu: Gpu) -> bool:
        """Whether the kubelet allocates a GPU, with the device plugin."""
        return (self._by.get(gpu.uuid) or self.by_nodes(gpu)) != DRA

    def publish(self, gpus: Sequence[SharedGpu]) -> None:
        """
        Tell both which GPUs there are, and how they are.

        Raises:
            PluginError: If one that is new cannot be advertised; it is tried again the next time.
        """
        self._assign(gpus)
        self._to_dra([one for one in gpus if not self.by_plugin(one.gpu)])
        self._to_device_plugin([one for one in gpus if self.by_plugin(one.gpu)])

    def _assign(self, gpus: Sequence[SharedGpu]) -> None:
        """See who is to have each GPU, and take it from who has it, where nobody holds anything of it."""
        held = self._held()
        next_by: dict[str, Allocation] = {}
        for gpu in (one.gpu for one in gpus):
            if gpu.uuid not in self._wanted:
                self._wanted[gpu.uuid] = self._allocation_of(gpu)
            held_by = [by for by, uuids in held.items() if gpu.uuid in uuids]
            next_by[gpu.uuid] = _allocator(self._wanted[gpu.uuid], held_by)
        self._tell_of_staying({uuid: by for uuid, by in next_by.items() if by != self._wanted[uuid]})
        for by, withdraw in self._withdraw.items():
            if leaving := [uuid for uuid, other in next_by.items() if self._by.get(uuid, other) == by != other]:
                self._by |= {uuid: next_by[uuid] for uuid in withdraw(leaving)}
        self._by = next_by | self._by  # of those that are new nobody has given anything away

    def _tell_of_staying(self, staying: Mapping[str, Allocation]) -> None:
        for uuid in staying.keys() - self._staying:
            by, wanted = staying[uuid], self._wanted[uuid]
            reason = f"containers hold shares of it by {by}, and by `nodes` it is one of {wanted} now"
            _log.warning("a GPU stays with who has allocated it", extra={"gpu": uuid, "reason": reason})
        self._staying = frozenset(staying)


def _allocator(wanted: Allocation, held_by: Sequence[Allocation]) -> Allocation:
    """Say who is to allocate a GPU: who has allocated what is held of it; *wanted* where that is both, or nobody."""
    return wanted if not held_by or wanted in held_by else held_by[0]
