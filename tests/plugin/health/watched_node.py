"""A node whose GPUs are watched as in the real process, by the same threads, only faster."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any

import pytest

from plugin.device_plugin.held import HeldVgpus
from plugin.device_plugin.resources import Resources
from plugin.device_plugin.service import Resource
from plugin.gpus.numbers import GpuNumbers
from plugin.gpus.nvml import Nvml
from plugin.health.inventory import GpuInventory
from plugin.health.monitor import Monitor, Periods
from plugin.health.reconciler import Reconciler, ReconcilerContext
from plugin.health.recovery_request import RecoveryRequests
from plugin.health.reports import Report, first_probe
from plugin.health.state import NodeHealth, read_node_health
from plugin.mps.state import MpsFaults
from plugin.pod_resources.tenants import Tenant
from plugin.settings import Settings
from plugin.shares.division import Division
from plugin.shares.handover import handover_settings
from plugin.shares.strategy import StrategyOf, check_of, strategies
from plugin.state_files import boot_seconds
from policies.cluster import Cluster
from policies.nodes import NodeRule
from tests.plugin.nvml_library import Script
from tests.plugin.waiting import wait_until

MANY_PROBES = 10
QUICK = Periods(
    probe_seconds=0.02,
    wait_seconds=0.02,
    between_probes_seconds=0.005,
    first_retry_seconds=0.01,
    longest_retry_seconds=0.04,
    between_starts_seconds=0.04,
    settling_seconds=0.2,
)
SETTINGS: dict[str, Any] = {
    "policies": Path("policies/files"),
    "simulate": None,
    "kubelet_dir": Path("/nowhere"),
    "state_dir": Path("/nowhere"),
    "lib_dir": Path("/nowhere"),
    "cdi_dir": Path("/nowhere"),
    "cdi_static_dir": Path("/nowhere"),
    "toolkit_config": Path("/nowhere"),
    "pod_resources": Path("/nowhere"),
    "pod_name": "",
    "pod_uid": "",
    "cgroups": Path("/nowhere"),
    "allocation_policy": "pack",
    "strategy": "time-slicing",
    "node_name": "node",
    "application_xids": frozenset({13, 31, 43, 45, 68, 109}),
    "wait_for_gpus": False,
    "allocation": "device-plugin",
    "kubelet_plugins_dir": Path("/nowhere"),
    "kubelet_registrar_dir": Path("/nowhere"),
    "service_account": Path("/nowhere"),
    "fit_guard": "on",
}


def strategies_of(settings: Settings, cluster: Cluster) -> StrategyOf:
    number_of = GpuNumbers(None, ()).of
    return strategies(cluster, node_name=settings.node_name, number_of=number_of, default=settings.strategy)


def resources_of(
    settings: Settings, cluster: Cluster, *, serve: Callable[[Resource], None], held: HeldVgpus | None = None
) -> Resources:
    handover = handover_settings(cluster.handover, cdi_dir=settings.cdi_dir, static_dir=settings.cdi_static_dir)
    return Resources(
        cluster,
        Division(cluster, node_name=settings.node_name, number_of=GpuNumbers(None, ()).of),
        allocation_policy=settings.allocation_policy,
        handover=handover,
        serve=serve,
        held=held,
    )


def no_mps_faults(_uuids: object) -> Mapping[str, str]:
    return {}


@dataclass(kw_only=True)
class WatchedNode:
    """Start it, and see what the kubelet and the administrator would."""

    nvml: Nvml
    state_dir: Path
    strategy: str = "time-slicing"
    rules: tuple[NodeRule, ...] = ()
    vgpus_per_instance: dict[str, int] = field(default_factory=dict)
    mps_faults: MpsFaults = no_mps_faults
    tenants: Callable[[], tuple[Tenant, ...]] = tuple
    sysfs: Path | None = None
    periods: Periods = QUICK
    steady_seconds: float = 0.0  # evidence is enough: that it must hold is tested with the rules
    clock: Callable[[], float] = boot_seconds
    boot_id: str = "this start"
    resources: list[Resource] = field(default_factory=list)

    @contextmanager
    def running(self) -> Iterator["WatchedNode"]:
        reports = SimpleQueue[Report | None]()
        settings = Settings(**{**SETTINGS, "strategy": self.strategy})
        cluster = Cluster(nodes=self.rules, vgpus_per_gpu=10, vgpus_per_instance=self.vgpus_per_instance)
        number_of = GpuNumbers(None, ()).of
        strategy_of = strategies(cluster, node_name="node", number_of=number_of, default=settings.strategy)
        division = Division(cluster, node_name=settings.node_name, number_of=number_of)
        check = check_of(strategy_of, division.parts)
        monitor = Monitor(self.nvml, reports.put, periods=self.periods, sysfs=self.sysfs, check=check)
        monitoring = Thread(target=monitor.run, daemon=True)
        monitoring.start()
        resources = resources_of(settings, cluster, serve=self.resources.append)
        probe = first_probe(reports, strategy_of, wait_seconds=inf, ended=lambda *_: False)
        assert probe is not None
        before = read_node_health(self.state_dir)
        inventory = GpuInventory(
            strategy_of=strategy_of,
            application_xids=settings.application_xids,
            before=before if before and before.boot_id == self.boot_id else None,
            steady_seconds=self.steady_seconds,
        )
        context = ReconcilerContext(
            boot_id=self.boot_id,
            state_dir=self.state_dir,
            mps_faults=self.mps_faults,
            tenants=self.tenants,
            publish=resources.publish,
            resource_of=division.resource_of,
            recovery_request=RecoveryRequests(self.state_dir, boot_id=self.boot_id).take,
            clock=self.clock,
        )
        reconciler = Reconciler(inventory, reports, context)
        reconciler.look(probe)
        reconciling = Thread(target=reconciler.run)
        reconciling.start()
        try:
            yield self
        finally:
            monitor.stop()
            reconciler.stop()
            reconciling.join()
            monitoring.join()

    @property
    def health(self) -> NodeHealth:
        found = read_node_health(self.state_dir)
        assert found is not None
        return found

    def allocatable(self) -> dict[str, list[int]]:
        """Count the healthy vGPUs of each resource, by GPU in the order in which they were found."""
        return {resource.name: _healthy(resource) for resource in self.resources}

    def healthy(self) -> list[int]:
        """Count the healthy vGPUs of the one resource."""
        (counts,) = self.allocatable().values()
        return counts

    def becomes(self, *healthy: int) -> None:
        wait_until(lambda: self.healthy() == list(healthy))

    def sources(self, gpu: int) -> list[str]:
        return [fault.source for fault in self.health.gpus[gpu].faults]


def _healthy(resource: Resource) -> list[int]:
    devices = next(iter(resource.devices.watch()))
    return [
        sum(device.healthy for device in devices if device.gpu_uuid == gpu.uuid) for gpu in resource.devices.pool.gpus
    ]


def looks_often(script: Script) -> None:
    """Wait for many more probes: time enough to do what should not be done."""
    goal = script.calls["look"] + MANY_PROBES
    wait_until(lambda: script.calls["look"] >= goal)


def logged(caplog: pytest.LogCaptureFixture, message: str) -> list[dict[str, Any]]:
    return [vars(record) for record in caplog.records if record.message == message]
