"""
The thread that asks the kubelet who holds what, adds up what is left of each GPU, and writes it down.

It takes part in no allocation: whoever wants to see the node reads what it has written last, and how old that is.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

from plugin.device_plugin.resources import Resources
from plugin.errors import TenantsError
from plugin.lifecycle import Threads
from plugin.pod_resources.occupancy import (
    LOOK_SECONDS,
    GpuOccupancy,
    NodeOccupancy,
    Occupant,
    read_occupancy,
    write_occupancy,
)
from plugin.pod_resources.tenants import Tenant
from plugin.shares.limits import MPS_SERVER_MIB, memory_mib, thread_percentage
from plugin.shares.offer import Offer
from plugin.state_files import boot_id, boot_seconds
from policies.contract import DEVICE_PLUGIN, MPS
from policies.device_names import device_name
from program.log import WarnOnce

if TYPE_CHECKING:
    from plugin.dra.driver import DraDriver

_log = logging.getLogger(__name__)

Since = Callable[[str, Tenant], str | None]  # by UUID and container
PartsOf = Callable[[str], Mapping[str, int]]  # of a device of DRA, by its name


def occupancy(
    offers: Sequence[Offer], tenants: Sequence[Tenant], parts_of: PartsOf, *, since: Since
) -> dict[str, GpuOccupancy]:
    """Add up who holds what of each GPU, and what is left of it."""
    return {offer.gpu.uuid: _of_gpu(offer, tenants, parts_of, since) for offer in offers}


def unknown_occupancy(offers: Sequence[Offer]) -> dict[str, GpuOccupancy]:
    """Say how each GPU is shared where nobody has said yet who is on it."""
    return {offer.gpu.uuid: _offered(offer) for offer in offers}


@dataclass(frozen=True, slots=True, kw_only=True)
class OccupancyContext:
    """What the watch asks, and where it writes."""

    state_dir: Path
    boot_id: str
    offers: Callable[[], Sequence[Offer]]  # of this node now
    read: Callable[[], Sequence[Tenant]]  # asks the kubelet; raises TenantsError
    parts_of: PartsOf
    clock: Callable[[], float] = boot_seconds


class OccupancyWatch:
    """Looks every few seconds until it is stopped, in a thread of its own."""

    def __init__(self, context: OccupancyContext) -> None:
        self._context = context
        self._ended = Event()
        self._warn = WarnOnce(_log)
        before = read_occupancy(context.state_dir, boot_id=context.boot_id)
        self._looked_before = before is not None and before.looked_seconds is not None
        self._since = _since(before.gpus if before else {})
        self._tenants: dict[str, Tenant] = {}  # of the last look, by name
        self._latest = NodeOccupancy(boot_id=context.boot_id)

    def run(self) -> None:
        """Look until `stop`."""
        while not self._ended.is_set():
            self.look()
            self._ended.wait(LOOK_SECONDS)

    def stop(self) -> None:
        """Let `run` return, from any thread."""
        self._ended.set()

    def look(self) -> None:
        """Ask once, and write down what follows."""
        boot, asked_seconds = self._context.boot_id, self._context.clock()
        offers = self._context.offers()
        try:
            tenants = self._context.read()
        except TenantsError as error:
            known = self._latest
            gpus = {**unknown_occupancy(offers), **known.gpus}
            self._latest = NodeOccupancy(
                boot_id=boot, looked_seconds=known.looked_seconds, unknown=str(error), gpus=gpus
            )
        else:
            gpus = occupancy(offers, tenants, self._context.parts_of, since=self._since_when)
            self._since = _since(gpus)
            self._tenants = {one.name: self._kept(one) for one in tenants}
            self._looked_before = True
            looked_seconds = self._context.clock()
            self._latest = NodeOccupancy(
                boot_id=boot, asked_seconds=asked_seconds, looked_seconds=looked_seconds, gpus=gpus
            )
        try:
            write_occupancy(self._context.state_dir, self._latest)
        except OSError as error:
            reason = f"--state-dir {self._context.state_dir}: {error.strerror}"
            self._warn("who has which share cannot be written: nobody can see it", reason)

    def _since_when(self, uuid: str, tenant: Tenant) -> str | None:
        """Say since when a container holds a share; None if it did before anyone looked."""
        key = (uuid, tenant.name)
        earlier = self._tenants.get(tenant.name)
        is_another = earlier is not None and tenant.is_given_another(earlier)
        if not self._looked_before or (key in self._since and not is_another):
            return self._since.get(key)
        return datetime.now(UTC).isoformat(timespec="seconds")

    def _kept(self, tenant: Tenant) -> Tenant:
        """Keep of a container by which allocation it has its share, also where that is not known at this moment."""
        earlier = self._tenants.get(tenant.name)
        if tenant.given_by or earlier is None or tenant.is_given_another(earlier):
            return tenant
        return replace(tenant, given_by=earlier.given_by)


def _since(gpus: Mapping[str, GpuOccupancy]) -> dict[tuple[str, str], str | None]:
    return {(uuid, _name(one)): one.since for uuid, gpu in gpus.items() for one in gpu.occupants}


def watch_occupancy(
    threads: Threads,
    state_dir: Path,
    read: Callable[[], Sequence[Tenant]],
    resources: Resources,
    driver: "DraDriver | None",
) -> None:
    """Watch from now on what the kubelet allocates, and what DRA does."""
    context = OccupancyContext(
        state_dir=state_dir,
        boot_id=boot_id(),
        offers=lambda: (*resources.offers(), *(driver.offers() if driver else ())),
        read=read,
        parts_of=driver.parts_of if driver else lambda _device: {},
    )
    watch = OccupancyWatch(context)
    threads.start("occupancy", watch.run, stop=watch.stop, may_hang=True)


def _parts(tenant: Tenant, offer: Offer, parts_of: PartsOf) -> int:
    by_dra = sum(parts_of(device).get(offer.gpu.uuid, 0) for device in tenant.devices)
    return min(offer.parts, by_dra + offer.parts_of(tenant.vgpus_on(offer.gpu.uuid)))


def _of_gpu(offer: Offer, tenants: Sequence[Tenant], parts_of: PartsOf, since: Since) -> GpuOccupancy:
    here = [(tenant, parts) for tenant in tenants if (parts := _parts(tenant, offer, parts_of))]
    free, hidden = offer.free_parts(sum(parts for _, parts in here))
    return _offered(
        offer,
        granted=offer.parts - free - hidden,
        hidden=hidden,
        outlived=offer.outlived_parts,
        free=free,
        largest_free=offer.largest(free),
        all_named=offer.are_all_named(
            (vgpu for tenant, _ in here for vgpu in tenant.vgpus_on(offer.gpu.uuid)),
            (device for tenant, _ in here for device in tenant.devices),
        ),
        occupants=tuple(_occupant(offer, tenant, parts, since(offer.gpu.uuid, tenant)) for tenant, parts in here),
    )


def _offered(offer: Offer, **counted: object) -> GpuOccupancy:
    return GpuOccupancy(
        strategy=offer.strategy,
        allocation=offer.allocation,
        resource=offer.resource,
        device=device_name(offer.device),
        vgpus_per_gpu=offer.vgpus_per_gpu if offer.allocation == DEVICE_PLUGIN else None,
        parts=offer.parts,
        advertised=offer.advertised,
        **counted,  # type: ignore[arg-type] # the fields of what is counted
    )


def _occupant(offer: Offer, tenant: Tenant, parts: int, since: str | None) -> Occupant:
    allocation = offer.limits_of(tenant.vgpus_on(offer.gpu.uuid), parts)
    is_mps = offer.strategy == MPS
    return Occupant(
        namespace=tenant.namespace,
        pod=tenant.pod,
        container=tenant.container,
        parts=parts,
        memory_limit_mib=memory_mib(allocation, kept_mib=MPS_SERVER_MIB if is_mps else 0),
        thread_percentage=thread_percentage(allocation) if is_mps else None,
        since=since,
    )


def _name(one: Occupant) -> str:
    return f"{one.namespace}/{one.pod}/{one.container}"
