"""The plugin's process: finds the GPUs, serves them until SIGTERM, and says in one line why it cannot."""

import logging
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from threading import Thread

from plugin.devices import Devices
from plugin.errors import InventoryError, PluginError, SimulationError, SocketError
from plugin.inventory import Inventory, load_nvml, read_inventory
from plugin.kubelet import ResourceServer
from plugin.limits import Mps, TimeSlicing
from plugin.log import start_logging
from plugin.pool import Pool
from plugin.service import Resource
from plugin.settings import Settings
from plugin.simulation import simulated_gpus
from policies.cluster import Cluster
from policies.contract import MPS
from policies.errors import PolicyError
from policies.store import load

_log = logging.getLogger(__name__)

_FAILED = 1
_BAD_INPUT = 2
_RETRY_SECONDS = 5.0  # between two looks for GPUs
_ENDING = {signal.SIGTERM, signal.SIGINT}


def run(settings: Settings) -> int:
    """Serve until SIGTERM or SIGINT; the exit code is 0 then, 1 if there is nothing to serve, 2 for bad input."""
    start_logging()
    with _signals_held():
        try:
            cluster = load(settings.policies).cluster
            inventory = _inventory(settings)
            if inventory is None:
                return 0
            servers = _servers(settings, cluster=cluster, inventory=inventory)
        except (PolicyError, SimulationError) as error:
            return _failure(error, _BAD_INPUT)
        except PluginError as error:
            return _failure(error, _FAILED)
        _log_start(settings, cluster=cluster, inventory=inventory)
        return _serve(servers)


def _servers(settings: Settings, *, cluster: Cluster, inventory: Inventory) -> list[ResourceServer]:
    folder = settings.kubelet_dir
    if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
        raise SocketError(f"--kubelet-dir {folder}: not a folder that can be written to: is a kubelet on this node?")
    pool = Pool(gpus=inventory.gpus, vgpus_per_gpu=cluster.vgpus_per_gpu)
    resource = Resource(
        name=cluster.resource_names[settings.strategy],
        devices=Devices(pool),
        sharing=Mps(cluster.mps.pipe_directory) if settings.strategy == MPS else TimeSlicing(),
        allocation_policy=settings.allocation_policy,
    )
    return [ResourceServer(resource, folder)]


def _inventory(settings: Settings) -> Inventory | None:
    """Find the GPUs; None if the process was told to end before there were any."""
    if settings.simulate is not None:
        return Inventory(gpus=simulated_gpus(settings.simulate), driver="simulated")
    if settings.wait_for_gpus:
        return wait_for_gpus(lambda: read_inventory(load_nvml()), ended=_ended_within)
    return read_inventory(load_nvml())


def wait_for_gpus(read: Callable[[], Inventory], *, ended: Callable[[float], bool]) -> Inventory | None:
    """
    Call *read* until it finds GPUs; *ended* waits that many seconds and says whether to give up.

    The reason is logged when it changes: a driver can take hours to come.
    """
    said = ""
    while True:
        try:
            return read()
        except InventoryError as error:
            if str(error) != said:
                said = str(error)
                _log.warning("waiting for GPUs", extra={"reason": said, "retry_seconds": _RETRY_SECONDS})
        if ended(_RETRY_SECONDS):
            return None


def _serve(servers: list[ResourceServer]) -> int:
    """Run each server in a thread of its own until a signal comes; a server that dies ends all."""
    died: list[ResourceServer] = []

    def run_server(server: ResourceServer) -> None:
        try:
            server.run()
        except Exception:  # noqa: BLE001 - a thread that dies unseen would leave a plugin that serves nothing
            _log.exception("the plugin failed")
            died.append(server)
            os.kill(os.getpid(), signal.SIGTERM)

    threads = [Thread(target=run_server, args=[server], name="kubelet") for server in servers]
    for thread in threads:
        thread.start()
    received = signal.sigwait(_ENDING)
    _log.info("ending", extra={"signal": signal.Signals(received).name})
    for server in servers:
        server.stop()
    for thread in threads:
        thread.join()
    return _FAILED if died else 0


@contextmanager
def _signals_held() -> Iterator[None]:
    """Keep SIGTERM and SIGINT for `sigwait`, in every thread that is started meanwhile."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _ended_within(seconds: float) -> bool:
    return signal.sigtimedwait(_ENDING, seconds) is not None


def _failure(error: Exception, code: int) -> int:
    sys.stderr.write(f"gpu-share plugin: {' '.join(str(error).split())}\n")
    return code


def _log_start(settings: Settings, *, cluster: Cluster, inventory: Inventory) -> None:
    for reason in inventory.skipped:
        _log.warning("GPU skipped", extra={"reason": reason})
    _log.info(
        "starting",
        extra={
            "settings": asdict(settings),
            "resource": cluster.resource_names[settings.strategy],
            "vgpus_per_gpu": cluster.vgpus_per_gpu,
            "pipe_directory": cluster.mps.pipe_directory,
            "driver": inventory.driver,
            "gpus": [asdict(gpu) for gpu in inventory.gpus],
        },
    )
