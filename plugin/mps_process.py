"""The process `gpu-share mps`: finds the GPUs that are shared by MPS, and keeps a daemon for each until SIGTERM."""

import logging
import os
import sys
from collections.abc import Iterable
from concurrent.futures import Future, wait
from dataclasses import asdict
from functools import partial
from pathlib import Path
from threading import Event, Thread
from typing import cast

from plugin.boot_clock import boot_id
from plugin.ending import Ending
from plugin.errors import PluginError
from plugin.gpus.discovery import Inventory, read_inventory, wait_for_gpus
from plugin.gpus.gpu import Gpu
from plugin.gpus.nvml import load_nvml
from plugin.mps.compute_mode import ComputeModes
from plugin.mps.compute_mode import Nvml as ComputeModeNvml
from plugin.mps.daemon import Place
from plugin.mps.presence import alone
from plugin.mps.settings import MpsSettings
from plugin.mps.supervisor import Node, every
from plugin.mps.surroundings import Surroundings
from plugin.mps.tenancy import Tenancy
from plugin.mps.timing import TIMING, Timing
from policies.cluster import Cluster
from policies.contract import MPS
from policies.errors import PolicyError
from policies.reading.store import PolicyStore
from program.log import start_logging

_log = logging.getLogger(__name__)

_FAILED = 1
_BAD_INPUT = 2
_MODES_FILE = "compute-modes.json"
_LOG_FOLDER = "mps-log"
_NOTICED_WITHIN_SECONDS = 0.1  # a signal, while GPUs are looked for
_FOR_OTHERS = 0o022  # umask: the plugin and tenants of all users reach what is made here


def run(settings: MpsSettings, *, timing: Timing = TIMING) -> int:
    """Keep the daemons until SIGTERM or SIGINT; the exit code is 0 then, 1 if that is not possible, 2 for bad input."""
    start_logging()
    os.umask(_FOR_OTHERS)
    try:
        with Ending() as ending, alone(settings.state_dir):
            store = PolicyStore(settings.policies)
            inventory = _inventory(settings, ending)
            if inventory is None:
                return 0
            return _Process(settings, store, timing).serve(inventory, ending)
    except PolicyError as error:
        return _failure(error, _BAD_INPUT)
    except PluginError as error:
        return _failure(error, _FAILED)


class _Process:
    """What the threads of the process do."""

    def __init__(self, settings: MpsSettings, store: PolicyStore, timing: Timing) -> None:
        self._settings = settings
        self._store = store
        self._cluster = store.current.cluster  # of the start, as the plugin has it
        self._timing = timing
        self._said: set[str] = set()
        self._node = Node(_surroundings(settings, self._cluster, timing))

    def serve(self, inventory: Inventory, ending: Ending) -> int:
        """Keep daemons on the GPUs found, and on those that come, until the process is told to end."""
        shared = self._shared(inventory)
        self._log_start(inventory, shared)
        stopping = Event()
        first = partial(self._node.clean_up, keep=[gpu.uuid for gpu in shared])
        try:
            self._node.adopt(shared)
            for acts in (
                (self._timing.gpus, first, self._look_at_gpus),
                (self._timing.ceilings, self._set_ceilings, self._set_ceilings),
            ):
                # One that hangs in the driver must not keep the process from ending.
                Thread(target=every, args=[*acts, stopping], daemon=True).start()
            self._node.publish()  # at once: what an earlier run published may look good
            while (received := ending.within(self._timing.publish)) is None:
                self._node.publish()
            _log.info("ending", extra={"signal": received.name})
        finally:
            stopping.set()
            self._node.end()
        return 0

    def _look_at_gpus(self) -> None:
        try:
            self._node.adopt(self._shared(_read()))
        except PluginError as error:
            self._say_once("GPUs not looked at", str(error))
        self._node.hold_modes()

    def _set_ceilings(self) -> None:
        self._store.refresh()
        if error := self._store.newest_error:
            self._say_once("policies not read, the last good ones hold", " ".join(str(error).split()))
        self._node.set_ceilings(self._store.current)

    def _shared(self, inventory: Inventory) -> list[Gpu]:
        """Pick the GPUs that are shared by MPS."""
        for reason in inventory.skipped:
            self._say_once("GPU skipped", reason)
        return [gpu for gpu in inventory.gpus if _offer(gpu, self._settings, self._cluster) == MPS]

    def _say_once(self, what: str, reason: str) -> None:
        if reason not in self._said:
            self._said.add(reason)
            _log.warning(what, extra={"reason": reason})

    def _log_start(self, inventory: Inventory, shared: Iterable[Gpu]) -> None:
        gpus = [asdict(gpu) for gpu in shared]
        _log.info(
            "starting",
            extra={
                "settings": asdict(self._settings),
                "pipe_directory": self._cluster.mps.pipe_directory,
                "driver": inventory.driver,
                "gpus": gpus,
            },
        )
        if not gpus:
            _log.info("no GPU of this node is shared by MPS: there is nothing to do until one comes")


def _surroundings(settings: MpsSettings, cluster: Cluster, timing: Timing) -> Surroundings:
    boot = boot_id()
    return Surroundings(
        place=Place(
            pipe_directory=Path(cluster.mps.pipe_directory),
            log_directory=settings.state_dir / _LOG_FOLDER,
            program=settings.control,
            multi_user=settings.multi_user,
        ),
        state_dir=settings.state_dir,
        boot_id=boot,
        vgpus_per_gpu=cluster.vgpus_per_gpu,
        modes=ComputeModes(_compute_mode_nvml, record=settings.state_dir / _MODES_FILE, boot_id=boot),
        tenancy=Tenancy(settings.pod_resources, cluster.resource_names[MPS]),
        timing=timing,
    )


def _compute_mode_nvml() -> ComputeModeNvml:
    return cast("ComputeModeNvml", load_nvml())  # one module, of which different parts are used


def _offer(gpu: Gpu, settings: MpsSettings, cluster: Cluster) -> str | None:
    return cluster.strategy(node=settings.node_name, model=gpu.model, index=gpu.index, otherwise=settings.strategy)


def _inventory(settings: MpsSettings, ending: Ending) -> Inventory | None:
    """Find the GPUs; None if the process was told to end before there were any."""
    given_up = Event()
    found: Future[Inventory | None] = Future()

    def find() -> None:
        try:
            found.set_result(wait_for_gpus(_read, ended=given_up.wait) if settings.wait_for_gpus else _read())
        except BaseException as error:  # noqa: BLE001 - raised again by whoever waits for it
            found.set_exception(error)

    # In a thread that may be left behind: a driver that hangs would keep the signal from being seen.
    Thread(target=find, daemon=True).start()
    while not wait([found], timeout=_NOTICED_WITHIN_SECONDS).done:
        if ending.within(0) is not None:
            given_up.set()
            return None
    return found.result()


def _read() -> Inventory:
    return read_inventory(load_nvml())


def _failure(error: Exception, code: int) -> int:
    sys.stderr.write(f"gpu-share mps: {' '.join(str(error).split())}\n")
    return code
