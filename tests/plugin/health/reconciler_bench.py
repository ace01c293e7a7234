"""A reconciler and all around it, one look at a time."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from queue import SimpleQueue

from plugin.device_plugin.service import Resource
from plugin.gpus.numbers import GpuNumbers
from plugin.health.inventory import GpuInventory
from plugin.health.reconciler import Reconciler, ReconcilerContext
from plugin.health.reports import Event, Look, Probe, Report
from plugin.pod_resources.tenants import Tenant
from plugin.settings import Settings
from plugin.shares.division import Division
from plugin.simulated.gpus import simulated_gpus
from policies.cluster import Cluster
from tests.plugin.health.watched_node import SETTINGS, resources_of, strategies_of

GPUS = simulated_gpus("3xH200")
FIRST, SECOND, THIRD = (gpu.uuid for gpu in GPUS)

Lines = Callable[[], list[tuple[str, str]]]


@dataclass
class Bench:
    directory: Path
    strategy: str = "mps"
    cluster: Cluster = field(default_factory=Cluster)
    seconds: float = 1000.0
    mps: dict[str, str] = field(default_factory=dict)
    tenants: tuple[Tenant, ...] | Exception = ()
    tenant_questions: int = 0
    resources: list[Resource] = field(default_factory=list)
    reports: "SimpleQueue[Report | None]" = field(default_factory=SimpleQueue)

    def __post_init__(self) -> None:
        settings = Settings(**{**SETTINGS, "strategy": self.strategy})
        cluster = self.cluster
        self.advertised = resources_of(settings, cluster, serve=self.resources.append)
        inventory = GpuInventory(strategy_of=strategies_of(settings, cluster), application_xids={31}, before=None)
        context = ReconcilerContext(
            boot_id="boot",
            state_dir=self.directory,
            mps_faults=lambda uuids: {uuid: why for uuid, why in self.mps.items() if uuid in uuids},
            tenants=self._tenants,
            publish=self.advertised.publish,
            resource_of=Division(cluster, node_name=settings.node_name, number_of=GpuNumbers(None, ()).of).resource_of,
            misfit=self.advertised.misfit,
            unadvertised=self.advertised.unadvertised,
            clock=lambda: self.seconds,
        )
        self.reconciler = Reconciler(inventory, self.reports, context)

    def look(self, *reports: Report, after_seconds: float = 1.0) -> None:
        self.seconds += after_seconds
        self.reconciler.look(*reports)

    def probe(
        self, *, count: int = 2, looks: Mapping[str, Look] | None = None, mps_clients: int | None = None
    ) -> Probe:
        gpus = tuple(replace(gpu, mps_clients=mps_clients) for gpu in GPUS[:count])
        found = {gpu.uuid: Look(recovery_action=0) for gpu in gpus} | dict(looks or {})
        return Probe(seconds=self.seconds, generation=1, looks=found, gpus=gpus, skipped=(), driver="580")

    def xid(self, uuid: str, number: int) -> Event:
        return Event(seconds=self.seconds, gpu_uuid=uuid, what=f"XID {number}", xid=number)

    def faults(self) -> dict[str, str]:
        (resource,) = self.resources
        found = {gpu.uuid: resource.devices.fault(gpu.uuid) for gpu in resource.devices.pool.gpus}
        return {uuid: why for uuid, why in found.items() if why}

    def _tenants(self) -> tuple[Tenant, ...]:
        self.tenant_questions += 1
        if isinstance(self.tenants, Exception):
            raise self.tenants
        return self.tenants
