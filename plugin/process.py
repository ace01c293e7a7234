"""The plugin's process: discovers, serves and monitors the GPUs until SIGTERM, and says in one line why it cannot."""

import logging
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from queue import SimpleQueue

from plugin.allocators import Allocators, DraPlaces, LookForDevices, allocations, dividing, dra_driver, told_with_dra
from plugin.device_plugin.held import held_vgpus
from plugin.device_plugin.resources import Resources, Servers
from plugin.device_plugin.tenant_watch import TenantWatch
from plugin.errors import PluginError, SimulationError, SocketError, StateDirectoryError
from plugin.gpu_source import GpuSource, gpu_source
from plugin.gpus.gpu import Gpu
from plugin.health.inventory import Entry, GpuInventory
from plugin.health.monitor import Monitor, Periods
from plugin.health.reconciler import Reconciler, ReconcilerContext
from plugin.health.recovery_request import RecoveryRequests
from plugin.health.reports import Report, first_probe
from plugin.health.state import PROGRAM, NodeHealth, read_node_health
from plugin.health.waiting import WaitingNode
from plugin.lifecycle import Ending, Threads
from plugin.occupancy_watch import watch_occupancy
from plugin.pod_resources.tenants import Matching, read_tenants
from plugin.presence import alone
from plugin.restart import ClusterChanges, RestartNeeded
from plugin.settings import Settings
from plugin.shares.division import Division
from plugin.shares.handover import forget_others, handover_settings
from plugin.shares.strategy import StrategyOf, check_of, strategies
from plugin.shares.toolkit import ToolkitConfiguration
from plugin.state_files import boot_id
from plugin.telemetry.server import NOBODY_LOOKS, TelemetrySettings, serve
from policies.cluster import Cluster
from policies.errors import PolicyError
from policies.reading.layers import CLUSTER_FILE
from policies.reading.store import PolicyStore
from policies.reading.troubles import TroubleLog
from program.front import FAILED, UNUSABLE, failed
from program.log import start_logging

_log = logging.getLogger(__name__)

_TENANTS_TIMEOUT_SECONDS = 0.5  # a kubelet that hangs must not hold up the news of a fault


def run(settings: Settings, telemetry: TelemetrySettings = NOBODY_LOOKS) -> int:
    """Serve until SIGTERM or SIGINT; the exit code is 0 then, 1 if there is nothing to serve, 2 for bad input."""
    start_logging()
    serve(telemetry, part=PROGRAM, node=settings.node_name, state_dir=settings.state_dir)
    with Ending() as ending:
        threads = Threads(on_death=lambda: os.kill(os.getpid(), signal.SIGTERM))
        code = _exit_code(settings, threads, ending)
        all_ended = threads.end()
        code = FAILED if threads.died else code
        if not all_ended:
            # The driver hangs, and what its library does at a graceful exit could hang as well.
            logging.shutdown()
            os._exit(code)
    return code


def _exit_code(settings: Settings, threads: Threads, ending: Ending) -> int:
    try:
        with _alone(settings.state_dir):
            waiting = WaitingNode(settings.state_dir, boot_id=boot_id(), before=earlier(settings))
            try:
                waiting.tell("")
                _run(settings, threads, ending, waiting)
            except (PluginError, PolicyError) as error:
                waiting.tell(str(error))
                raise
    except (PolicyError, SimulationError) as error:
        return failed("plugin", error, UNUSABLE)
    except PluginError as error:
        return failed("plugin", error, FAILED)
    return 0


@contextmanager
def _alone(state_dir: Path) -> Iterator[None]:
    """
    Be the only plugin of the node: of two, each would be disconnected when the kubelet hears of the other.

    Raises:
        AlreadyRunsError: If there is one already.
    """
    with ExitStack() as stack:
        try:
            stack.enter_context(alone(state_dir, PROGRAM))
        except StateDirectoryError as error:  # it shares GPUs all the same; that nobody can read how, it says later
            _log.warning("no lock: another plugin on this node would not be noticed", extra={"reason": str(error)})
        yield


def _run(settings: Settings, threads: Threads, ending: Ending, waiting: WaitingNode) -> None:
    cluster = _cluster(settings.policies)
    strategy_of = strategies(cluster, node_name=settings.node_name, default=settings.strategy)
    source = gpu_source(settings.simulate, settings.state_dir)
    _check_kubelet_dir(settings.kubelet_dir)
    handover = handover_settings(cluster.handover, cdi_dir=settings.cdi_dir, static_dir=settings.cdi_static_dir)
    servers = Servers(settings.kubelet_dir, threads)
    division = Division(cluster, node_name=settings.node_name)
    held = held_vgpus(settings.kubelet_dir, settings.pod_resources, cluster, state_dir=settings.state_dir)
    resources = Resources(
        cluster,
        division,
        allocation_policy=settings.allocation_policy,
        handover=handover,
        serve=servers.add,
        held=held,
        fit_guard=settings.fit_guard == "on",
    )
    reports: SimpleQueue[Report | None] = SimpleQueue()
    monitor = Monitor(
        source.nvml, reports.put, periods=Periods(), sysfs=source.sysfs, check=check_of(strategy_of, division.parts)
    )
    threads.start("nvml", monitor.run, stop=monitor.stop, may_hang=True)

    def ended(seconds: float, why: str) -> bool:
        waiting.tell(why)
        return ending.within(seconds) is not None

    probe = first_probe(reports, strategy_of, wait=settings.wait_for_gpus, ended=ended)
    if probe is None:
        waiting.end()
        return
    inventory = restored_inventory(settings, strategy_of)
    driver = dra_driver(cluster, division, handover, dra_places(settings), environment=os.environ)
    allocators = Allocators(
        allocations(cluster, node_name=settings.node_name, default=settings.allocation),
        to_device_plugin=resources.publish,
        to_dra=lambda gpus: driver.publish(gpus, driver_version=inventory.driver) if driver is not None else None,
    )
    look = told_with_dra(resources.look_for_devices, driver)
    changes = ClusterChanges(
        settings.policies,
        RestartNeeded(cluster, node_name=settings.node_name, hands_over=True),
        vgpus_per_gpu=cluster.vgpus_per_gpu,
        divide_by=dividing(resources.divide_by, driver),
        restart=lambda: os.kill(os.getpid(), signal.SIGTERM),
    )
    context = reconciler_context(settings, source, division, look, allocators.publish)
    context = replace(context, tenants=held.located(context.tenants))
    toolkit = ToolkitConfiguration(settings.toolkit_config, handover)
    watched = replace(context, restart_needed=changes.look, fit_guard=resources.fit_guard, toolkit=toolkit.look)
    reconciler = Reconciler(inventory, reports, watched)
    waiting.is_over = True
    tenants = TenantWatch(held)
    tenants.look()  # before the kubelet hears of what is free
    reconciler.look(probe)
    if not probe.skipped:  # a GPU that could not be seen may be all there is of a resource
        forget_others(handover, resources.advertised)
    _log_start(settings, cluster, [(gpu, _shared_as(gpu, strategy_of, division)) for gpu in probe.gpus], probe.driver)
    servers.start()  # before the reconciler, which adds to them from its own thread
    if driver is not None:
        driver.start(threads)
    watch_occupancy(threads, settings.state_dir, context.tenants, resources, driver)
    threads.start("tenants", tenants.run, stop=tenants.stop)
    threads.start("reconciler", reconciler.run, stop=reconciler.stop, may_hang=True)
    _log.info("shutting down", extra={"signal": ending.wait().name})


def _cluster(policies: Path) -> Cluster:
    """
    Read `_cluster.yaml`, and log what is wrong with the other files, which other processes need.

    Raises:
        PolicyError: If it cannot be used.
    """
    store = PolicyStore(policies, needs=(CLUSTER_FILE,))
    TroubleLog(_log, effect=f"none here: the plugin needs {CLUSTER_FILE} only").tell(store.troubles)
    return store.current.cluster


def earlier(settings: Settings) -> NodeHealth | None:
    """Read what an earlier plugin knew since the same boot; None if that is nothing, or of simulated GPUs."""
    before = read_node_health(settings.state_dir)
    return before if before and before.boot_id == boot_id() and settings.simulate is None else None


def restored_inventory(settings: Settings, strategy_of: StrategyOf) -> GpuInventory:
    """Make the inventory, with what an earlier plugin knew; simulated GPUs are new each time."""
    return GpuInventory(strategy_of=strategy_of, application_xids=settings.application_xids, before=earlier(settings))


def reconciler_context(
    settings: Settings,
    source: GpuSource,
    division: Division,
    look_for_devices: LookForDevices,
    publish: Callable[[Sequence[Entry]], None],
) -> ReconcilerContext:
    """Say what the reconciler asks, and where it writes; the directory of its state is made if it is missing."""
    with suppress(OSError):  # which the reconciler is going to log when it cannot write
        settings.state_dir.mkdir(parents=True, exist_ok=True)

    ours = Matching(division.is_ours)
    return ReconcilerContext(
        boot_id=boot_id(),
        state_dir=settings.state_dir,
        mps_faults=source.mps_faults,
        tenants=partial(read_tenants, settings.pod_resources, ours, timeout_seconds=_TENANTS_TIMEOUT_SECONDS),
        publish=publish,
        handover=look_for_devices,
        resource_of=division.resource_of,
        recovery_request=RecoveryRequests(settings.state_dir, boot_id=boot_id()).take,
    )


def dra_places(settings: Settings) -> DraPlaces:
    """Say where a driver of DRA meets this node."""
    return DraPlaces(
        node=settings.node_name,
        default=settings.allocation,
        plugins_dir=settings.kubelet_plugins_dir,
        registrar_dir=settings.kubelet_registrar_dir,
        service_account=settings.service_account,
    )


def _check_kubelet_dir(directory: Path) -> None:
    if not directory.is_dir() or not os.access(directory, os.W_OK | os.X_OK):
        raise SocketError(f"--kubelet-dir {directory}: not a directory that can be written to: is a kubelet here?")


def _shared_as(gpu: Gpu, strategy_of: StrategyOf, division: Division) -> str | None:
    """Name the resource of a GPU; None if it is left to others."""
    strategy = strategy_of(gpu)
    return division.resource(gpu, strategy) if strategy else None


def _log_start(settings: Settings, cluster: Cluster, gpus: Sequence[tuple[Gpu, str | None]], driver: str) -> None:
    _log.info(
        "starting",
        extra={
            "settings": asdict(settings),
            "vgpus_per_gpu": cluster.vgpus_per_gpu,
            "pipe_directory": cluster.mps.pipe_directory,
            "driver": driver,
            "gpus": [{**gpu.facts(), "resource": resource} for gpu, resource in gpus],
        },
    )
