"""The plugin's process: discovers, serves and monitors the GPUs until SIGTERM, and says in one line why it cannot."""

import logging
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from math import inf
from queue import SimpleQueue
from typing import TYPE_CHECKING

from plugin.allocators import (
    Allocators,
    allocations,
    dra_driver,
    held_of,
    left_to_nobody,
    needing_variable,
    slices_not_published,
    told_with_dra,
    unwritten_of,
    withdrawing,
)
from plugin.cluster_changes import changes_since_start, cluster_changes, end_for_a_restart
from plugin.device_plugin.tenant_watch import TenantWatch
from plugin.dra.tenants import located_with_dra
from plugin.earlier import earlier, expected_gpus, restored_inventory
from plugin.errors import PluginError, SimulationError, StateDirectoryError
from plugin.grid_checks import AllocationOf, check_of_grids
from plugin.health.monitor import Monitor, Periods
from plugin.health.reconciler import Reconciler, ReconcilerContext
from plugin.health.recovery_request import RecoveryRequests
from plugin.health.reports import Probe, Report, first_probe
from plugin.health.waiting import WaitingNode
from plugin.lifecycle import Ending, Threads
from plugin.occupancy_watch import watch_occupancy
from plugin.presence import PLUGIN, alone
from plugin.removal import end_if_removed
from plugin.settings import Settings
from plugin.shared_node import SharedNode, shared_node
from plugin.shares.strategy import check_of
from plugin.shares.toolkit import ToolkitConfiguration
from plugin.state_files import boot_id
from plugin.telemetry.server import NOBODY_LOOKS, TelemetrySettings, serve
from policies.contract import DRA
from policies.errors import PolicyError
from program.front import FAILED, UNUSABLE, failed
from program.log import start_logging

if TYPE_CHECKING:
    from plugin.dra.driver import DraDriver

_log = logging.getLogger(__name__)

# For which claims are taken back without a GPU: longer than a kubelet takes to ask again. A driver that has come since
# is seen by a new container alone, and a `_cluster.yaml` that leaves this node some GPU again is read by a new process.
_TAKING_BACK_SECONDS = 120.0


def run(settings: Settings, telemetry: TelemetrySettings = NOBODY_LOOKS) -> int:
    """Serve until SIGTERM or SIGINT; the exit code is 0 then, 1 if there is nothing to serve, 2 for bad input."""
    start_logging()
    serve(telemetry, part=PLUGIN, node=settings.node_name, state_dir=settings.state_dir)
    with Ending() as ending:
        threads = Threads(on_death=lambda: os.kill(os.getpid(), signal.SIGTERM))
        code = FAILED
        try:
            code = _exit_code(settings, threads, ending)
        except Exception:  # noqa: BLE001 - whatever it was: threads that serve on would keep half of the process alive
            _log.exception("the plugin failed")
        all_ended = threads.end()
        code = FAILED if threads.died else code
        if not all_ended:
            # The driver hangs, and what its library does at a graceful exit could hang as well.
            logging.shutdown()
            os._exit(code)
    return code


def _exit_code(settings: Settings, threads: Threads, ending: Ending) -> int:
    try:
        with _alone(settings) as be_seen:
            waiting = WaitingNode(settings.state_dir, boot_id=boot_id(), before=earlier(settings))
            try:
                waiting.tell("")
                _run(settings, threads, ending, waiting, be_seen)
            except (PluginError, PolicyError) as error:
                waiting.tell(str(error))
                raise
    except (PolicyError, SimulationError) as error:
        return failed("plugin", error, UNUSABLE)
    except PluginError as error:
        return failed("plugin", error, FAILED)
    return 0


@contextmanager
def _alone(settings: Settings) -> Iterator[Callable[[], None]]:
    """
    Be the only plugin of the node: of two, each would be disconnected when the kubelet hears of the other.

    Give what is to be called every second or so, for others to see that there is one. It raises RemovedError where a
    directory of the node is gone behind its mount: by that nobody sees it any more, or it sees no kubelet.

    Raises:
        AlreadyRunsError: If there is one already.
    """
    with ExitStack() as stack:
        presence = None
        try:
            presence = stack.enter_context(alone(settings.state_dir, PLUGIN))
        except StateDirectoryError as error:  # it shares GPUs all the same; that nobody can read how, it says later
            _log.warning("no lock: another plugin on this node would not be noticed", extra={"reason": str(error)})

        def be_seen() -> None:
            end_if_removed(settings.directories)
            if presence is not None:
                presence.look()

        yield be_seen


def _run(
    settings: Settings, threads: Threads, ending: Ending, waiting: WaitingNode, be_seen: Callable[[], None]
) -> None:
    node = shared_node(settings, threads)
    reports: SimpleQueue[Report | None] = SimpleQueue()
    _start_monitor(node, reports, threads)
    driver = dra_driver(node.cluster, node.division, node.handover, node.dra_places, environment=os.environ)
    is_claimed = driver is not None and bool(driver.held_gpus())
    wait_seconds = inf if settings.wait_for_gpus else _TAKING_BACK_SECONDS * is_claimed
    if driver is not None and wait_seconds:
        driver.start(threads)  # no GPU is needed to take claims back: without that, their pods would never go
    since_start = changes_since_start(node)

    def ended(seconds: float, why: str) -> bool:
        waiting.tell(why, slices_not_published=slices_not_published(driver))
        be_seen()
        if why and since_start.look():  # what is waited for may be there by the new one
            end_for_a_restart()
        if driver is not None and why:
            driver.publish_none(why)
        return ending.within(seconds) is not None

    probe = first_probe(reports, node.strategy_of, wait_seconds=wait_seconds, ended=ended)
    if probe is None:
        waiting.end()
        return
    reconciler = _reconciler(node, driver, reports, be_seen)
    waiting.is_over = True
    tenants = TenantWatch(node.held)
    tenants.look()  # before the kubelet hears of what is free
    reconciler.look(probe)
    _log_start(node, probe)
    node.servers.start()  # before the reconciler, which adds to them from its own thread
    if driver is not None and not wait_seconds:
        driver.start(threads)
    tenants_of_all = node.held.quiet.before(located_with_dra(node.tenants, driver))
    watch_occupancy(threads, settings.state_dir, tenants_of_all, node.resources, driver)
    threads.start("tenants", tenants.run, stop=tenants.stop)
    threads.start("reconciler", reconciler.run, stop=reconciler.stop, may_hang=True)
    _log.info("shutting down", extra={"signal": ending.wait().name})


def _start_monitor(node: SharedNode, reports: "SimpleQueue[Report | None]", threads: Threads) -> None:
    check = check_of_grids(
        check_of(node.strategy_of, node.division.parts), _allocation_of(node), node.strategy_of, node.division.parts
    )
    monitor = Monitor(
        node.source.nvml,
        reports.put,
        periods=Periods(),
        sysfs=node.source.sysfs,
        check=check,
        expected=expected_gpus(node.settings),
    )
    threads.start("nvml", monitor.run, stop=monitor.stop, may_hang=True)


def _allocation_of(node: SharedNode) -> AllocationOf:
    own = node.settings
    return allocations(node.cluster, node_name=own.node_name, number_of=node.number_of, default=own.allocation)


def _reconciler(
    node: SharedNode,
    driver: "DraDriver | None",
    reports: "SimpleQueue[Report | None]",
    be_seen: Callable[[], None],
) -> Reconciler:
    settings, resources = node.settings, node.resources
    inventory = restored_inventory(
        settings, node.strategy_of, held=lambda uuids: node.held.gpus(uuids).union(held()[DRA])
    )
    held = held_of(lambda: node.held.gpus(one.gpu.uuid for one in inventory.entries), driver, node.dra_places)
    allocators = Allocators(
        _allocation_of(node),
        held=held,
        withdraw=withdrawing(resources.withdraw, driver),
        to_device_plugin=lambda gpus: resources.publish(gpus, inventory.faults(node.held.located_on())),
        to_dra=lambda gpus: driver.publish(gpus, driver_version=inventory.driver) if driver is not None else None,
    )
    context = ReconcilerContext(
        boot_id=boot_id(),
        state_dir=settings.state_dir,
        mps_faults=node.source.mps_faults,
        mps_daemons=node.source.mps_daemons,
        tenants=located_with_dra(node.tenants, driver),
        publish=allocators.publish,
        resource_of=lambda one: node.division.resource_of(one) if allocators.by_plugin(one.gpu) else "",
        recovery_request=RecoveryRequests(settings.state_dir, boot_id=boot_id()).take,
        handover=told_with_dra(resources.look_for_devices, driver),
        slices_not_published=lambda: slices_not_published(driver),
        not_registered=node.servers.not_registered,
        toolkit=ToolkitConfiguration(settings.toolkit_config, needing_variable(node.handover, node.held, driver)).look,
        pending=cluster_changes(node, node.dra_places, allocators, inventory).look,
        fit_guard=resources.fit_guard,
        unwritten=unwritten_of(node.held, driver, by_plugin=allocators.by_plugin),
        unsafe=lambda one: resources.unsafe if allocators.by_plugin(one.gpu) else "",
        misfit=lambda one: resources.misfit(one) if allocators.by_plugin(one.gpu) else "",
        unadvertised=lambda one: resources.unadvertised(one) if allocators.by_plugin(one.gpu) else "",
        left_claimed=left_to_nobody(held, driver),
        restores=(be_seen, resources.restore, *((driver.restore,) if driver is not None else ())),
    )
    return Reconciler(inventory, reports, context)


def _log_start(node: SharedNode, probe: Probe) -> None:
    _log.info(
        "starting",
        extra={
            "settings": asdict(node.settings),
            "vgpus_per_gpu": node.cluster.vgpus_per_gpu,
            "pipe_directory": node.cluster.mps.pipe_directory,
            "driver": probe.driver,
            "gpus": [{**gpu.facts(), "resource": node.resource_of(gpu)} for gpu in probe.gpus],
        },
    )
