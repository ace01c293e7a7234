"""What this node shares and how, as far as its options and `_cluster.yaml` say it: before a GPU has answered."""

import os
from collections.abc import Callable, Container
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from plugin.allocators import DraPlaces, allocations
from plugin.device_plugin.checkpoint import Checkpoint
from plugin.device_plugin.held import HeldVgpus
from plugin.device_plugin.holdings import Holdings
from plugin.device_plugin.resources import Resources
from plugin.device_plugin.servers import Servers
from plugin.errors import SocketError
from plugin.gpu_source import GpuSource, gpu_source
from plugin.gpus.gpu import Gpu
from plugin.gpus.numbers import GpuNumbers, NumberOf, indexes_of
from plugin.grid_checks import AllocationOf
from plugin.lifecycle import Threads
from plugin.pod_resources.tenants import OurResources, Tenant, read_tenants
from plugin.settings import Settings
from plugin.shares.division import Division
from plugin.shares.handover import HandoverSettings, handover_settings
from plugin.shares.strategy import PartsOf, StrategyOf, strategies
from plugin.sockets import KUBELET_SOCKET
from plugin.state_files import boot_id
from plugin.usage.pod_cgroups import HasProcesses, PodCgroups
from policies.cluster import Cluster
from policies.reading.store import load_cluster

_TENANTS_TIMEOUT_SECONDS = 0.5  # a kubelet that hangs must not hold up the news of a fault


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedNode:
    """The parts of the plugin that are the same whatever GPUs there are."""

    settings: Settings
    cluster: Cluster
    number_of: NumberOf
    strategy_of: StrategyOf
    source: GpuSource
    handover: HandoverSettings
    division: Division
    held: HeldVgpus
    servers: Servers
    resources: Resources
    tenants: Callable[[], tuple[Tenant, ...]]  # asks the kubelet who is on which GPU; raises TenantsError
    dra_places: DraPlaces

    def resource_of(self, gpu: Gpu) -> str | None:
        """Name the resource of a GPU; None if it is left to others."""
        strategy = self.strategy_of(gpu)
        return self.division.resource(gpu, strategy) if strategy else None

    def would_be(self, cluster: Cluster) -> tuple[AllocationOf, StrategyOf, PartsOf]:
        """Say what a start with another `_cluster.yaml` would make of each GPU, and change nothing."""
        settings, name = self.settings, self.settings.node_name
        is_numbered_so = indexes_of(cluster.nodes_of(name)) == indexes_of(self.cluster.nodes_of(name))
        number_of = self.number_of if is_numbered_so else GpuNumbers(None, ()).of
        division = Division(cluster, node_name=name, number_of=number_of)
        return (
            allocations(cluster, node_name=name, number_of=number_of, default=settings.allocation),
            strategies(cluster, node_name=name, number_of=number_of, default=settings.strategy),
            division.parts,
        )


def shared_node(settings: Settings, threads: Threads) -> SharedNode:
    """
    Put the parts together; *threads* are going to serve the kubelet.

    Raises:
        PolicyError: If `_cluster.yaml` cannot be used.
        PluginError: If GPUs cannot be asked for, or the kubelet's directory cannot be written to.
    """
    cluster = load_cluster(settings.policies)
    name, number_of = settings.node_name, _numbers(settings, cluster).of
    strategy_of = strategies(cluster, node_name=name, number_of=number_of, default=settings.strategy)
    source = gpu_source(settings.simulate, settings.state_dir, pipe_directory=cluster.mps.pipe_directory)
    _check_kubelet_dir(settings.kubelet_dir)
    handover = handover_settings(
        cluster.handover, cdi_dir=settings.cdi_dir, static_dir=settings.cdi_static_dir, mps=source.mps_serving
    )
    servers = Servers(settings.kubelet_dir, threads)
    division = Division(cluster, node_name=name, number_of=number_of)
    has_processes = PodCgroups(settings.cgroups, own_uid=settings.pod_uid).has_processes
    held = _held(settings, cluster, has_processes)
    resources = Resources(
        cluster,
        division,
        allocation_policy=settings.allocation_policy,
        handover=handover,
        serve=servers.add,
        held=held,
        fit_guard=settings.fit_guard == "on",
    )
    return SharedNode(
        settings=settings,
        cluster=cluster,
        number_of=number_of,
        strategy_of=strategy_of,
        source=source,
        handover=handover,
        division=division,
        held=held,
        servers=servers,
        resources=resources,
        tenants=held.located(_tenants_by_name(settings, held.resources)),
        dra_places=_dra_places(settings, has_processes),
    )


def _dra_places(settings: Settings, has_processes: HasProcesses) -> DraPlaces:
    return DraPlaces(
        node=settings.node_name,
        default=settings.allocation,
        plugins_dir=settings.kubelet_plugins_dir,
        registrar_dir=settings.kubelet_registrar_dir,
        service_account=settings.service_account,
        has_processes=has_processes,
    )


def _held(settings: Settings, cluster: Cluster, has_processes: HasProcesses) -> HeldVgpus:
    """Say what is held, as the kubelet names it, and as what an earlier plugin and the kubelet have kept says."""
    checkpoint = Checkpoint(
        vgpus_per_gpu=cluster.vgpus_per_gpu,
        state_dir=settings.state_dir,
        kubelet_dir=settings.kubelet_dir,
        is_ours=cluster.is_ours,
        boot_id=boot_id(),
    )
    # Of a vGPU that is in no file nobody knows which part it is: the largest that it can be, so that no more is free.
    checkpoint.unknown_of = min((checkpoint.unknown_of, *cluster.own_numbers))
    earlier = frozenset(one.resource for one in checkpoint.held.values())
    ours = OurResources(cluster.is_ours, lambda: earlier)
    read = partial(read_tenants, settings.pod_resources, ours, own_pod=settings.pod_name, everyone=True)
    kubelet = settings.kubelet_dir / KUBELET_SOCKET
    holdings = Holdings(read, kubelet=kubelet, checkpoint=checkpoint, has_processes=has_processes)
    return HeldVgpus(holdings, resources=ours)


def _numbers(settings: Settings, cluster: Cluster) -> GpuNumbers:
    """Count the GPUs for `indexes`; simulated ones are new each time."""
    directory = settings.lib_dir if settings.simulate is None else None
    return GpuNumbers(directory, cluster.nodes_of(settings.node_name))


def _check_kubelet_dir(directory: Path) -> None:
    # Path's is_dir raises where it cannot be seen.
    if not os.path.isdir(directory) or not os.access(directory, os.W_OK | os.X_OK):  # noqa: PTH112
        raise SocketError(f"--kubelet-dir {directory}: not a directory that can be written to: is a kubelet here?")


def _tenants_by_name(settings: Settings, resources: Container[str]) -> Callable[[], tuple[Tenant, ...]]:
    """Make the function that asks the kubelet, which names vGPUs and not the GPUs that they are on."""
    return partial(
        read_tenants,
        settings.pod_resources,
        resources,
        own_pod=settings.pod_name,
        timeout_seconds=_TENANTS_TIMEOUT_SECONDS,
    )
