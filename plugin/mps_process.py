"""The process `gpu-share mps`: supervises an MPS daemon for each GPU that is shared by MPS, until SIGTERM."""

import logging
import os
from collections.abc import Iterable
from concurrent.futures import Future, wait
from dataclasses import asdict
from functools import partial
from math import inf
from pathlib import Path
from threading import Event, Thread
from time import monotonic

from plugin.errors import PluginError, RemovedError
from plugin.gpus.discovery import Discovered, discover, wait_for_gpus
from plugin.gpus.gpu import Gpu
from plugin.gpus.numbers import GpuNumbers
from plugin.gpus.nvml import load_nvml
from plugin.gpus.reading import Check
from plugin.last_cluster import KeptPolicies
from plugin.lifecycle import Ending, started
from plugin.mps.holders import has_a_right, holders
from plugin.mps.settings import MpsSettings, supervisor_context
from plugin.mps.state import PROGRAM, forget_state
from plugin.mps.supervisor import Supervisor, every
from plugin.mps.timing import TIMING, Timing
from plugin.mps.unreachable import PIPE_DIRECTORY
from plugin.pod_resources.occupancy import read_occupancy
from plugin.presence import Presence, alone
from plugin.removal import end_if_removed, removed
from plugin.restart import RestartNeeded
from plugin.rpc import keep_running
from plugin.shares.strategy import check_of, strategies
from plugin.state_files import boot_id, boot_seconds
from plugin.telemetry.server import NOBODY_LOOKS, TelemetrySettings, serve
from plugin.usage.measurement import Measurement, Surroundings
from plugin.usage.outsiders import Holders
from policies.contract import MPS
from policies.errors import PolicyError
from policies.reading.troubles import TroubleLog
from program.front import FAILED, UNUSABLE, failed
from program.log import WarnOnce, start_logging

_log = logging.getLogger(__name__)

_LOOKED_AT_SECONDS = 1.0  # _cluster.yaml, likewise
_NOTICED_WITHIN_SECONDS = 0.1  # a signal, while GPUs are looked for
_IN_CEILINGS = "ceilings count the last good policy, or a whole GPU where none is known"
_FOR_OTHERS = 0o022  # umask: the plugin and tenants of all users reach what is made here


def run(settings: MpsSettings, telemetry: TelemetrySettings = NOBODY_LOOKS, *, timing: Timing = TIMING) -> int:
    """Supervise the daemons until SIGTERM or SIGINT; the exit code is 0 then, 1 if that fails, 2 for bad input."""
    start_logging()
    os.umask(_FOR_OTHERS)
    serve(telemetry, part=PROGRAM, node=settings.node_name, state_dir=settings.state_dir)
    try:
        with (
            Ending() as ending,
            alone(settings.state_dir, PROGRAM, before_seen=partial(forget_state, settings.state_dir)) as presence,
        ):
            store = KeptPolicies(settings.policies, lib_dir=settings.lib_dir)
            process = _Process(settings, store, timing)
            found = _discovered(settings, process, ending, presence)
            return 0 if found is None else process.serve(found, ending, presence)
    except PolicyError as error:
        return failed("mps", error, UNUSABLE)
    except PluginError as error:
        return failed("mps", error, FAILED)


class _Process:
    """What the threads of the process do."""

    def __init__(self, settings: MpsSettings, store: KeptPolicies, timing: Timing) -> None:
        self._settings = settings
        self._store = store
        self._cluster = store.current.cluster  # of the start, as the plugin has it
        name, cluster = settings.node_name, self._cluster
        own = {"--state-dir": settings.state_dir, "--log-dir": settings.log_dir}
        self.directories = {**own, PIPE_DIRECTORY: Path(cluster.mps.pipe_directory)}
        number_of = GpuNumbers(settings.lib_dir, cluster.nodes_of(name)).of
        self._strategy_of = strategies(cluster, node_name=name, number_of=number_of, default=settings.strategy)
        # Whether MPS serves a client in each vGPU is the plugin's to say: the number can change while this runs.
        self.check = check_of(self._strategy_of, lambda _gpu, _strategy: 1)
        self._timing = timing
        self._warn = WarnOnce(_log)
        self._troubles = TroubleLog(_log, effect=_IN_CEILINGS)
        self._restart = RestartNeeded(cluster, node_name=name)
        around = Surroundings(
            logs=settings.container_logs,
            holders=partial(_holders, settings.state_dir, boot_id()),
            is_ours=has_a_right,
        )
        self._measurement = Measurement(settings.state_dir, load_nvml, boot_id=boot_id(), around=around)
        self._supervisor = Supervisor(supervisor_context(settings, cluster, number_of, timing))

    def needs_restart(self) -> bool:
        """Whether `_cluster.yaml` says something else by now that a start takes up."""
        self._store.refresh()
        self._troubles.tell(self._store.troubles)
        self._restart.compare(self._store.current.cluster)
        return bool(self._restart.changes)

    def serve(self, found: Discovered, ending: Ending, presence: Presence) -> int:
        """Supervise daemons on the GPUs found, and on those that come, until the process is told to end."""
        shared = self._shared(found)
        self._log_start(found, shared)
        stopping = Event()
        first = partial(self._supervisor.clean_up, keep=[gpu.uuid for gpu in shared])
        keep_running()  # before there are daemons, which end with this process
        try:
            self._supervisor.adopt(shared)
            for acts in (
                (self._timing.gpus, first, self._look_at_gpus),
                (self._timing.ceilings, self._set_ceilings, self._set_ceilings),
                (self._timing.look, self._supervisor.keep_shared_directories, self._supervisor.keep_shared_directories),
                (self._timing.use, self._measurement.measure, self._measurement.measure),
            ):
                # One that hangs in the driver must not keep the process from ending.
                started(Thread(target=every, args=[*acts, stopping], daemon=True))
            self._supervisor.publish()  # at once: what an earlier run published may look good
            while (received := ending.within(self._timing.publish)) is None:
                presence.look()
                self._supervisor.publish()
                self._end_if_removed()
            _log.info("shutting down", extra={"signal": received.name})
        finally:
            stopping.set()
            self._supervisor.end()
        return 0

    def _end_if_removed(self) -> None:
        """
        See that there are the directories by which others know the daemons; RemovedError if not, and none is awaited.

        With this process the MPS daemons end, and the CUDA contexts of all who hold a share. So it waits for them.
        """
        if why := removed(self.directories):
            if not (awaited := self._supervisor.awaited()):
                raise RemovedError(why)
            self._warn("a directory was removed: this ends as soon as no container holds a share", f"{why}; {awaited}")
        if why := removed({"--pod-resources": self._settings.pod_resources.parent}):
            self._warn("nobody says any more who holds a share: once no container does, delete this pod", why)

    def _look_at_gpus(self) -> None:
        try:
            self._supervisor.adopt(self._shared(_discover(self.check)))
        except PluginError as error:
            self._warn("discovery failed, the known GPUs stay", str(error))
        self._supervisor.hold_modes()
        self._supervisor.clean_up_left()

    def _set_ceilings(self) -> None:
        self.needs_restart()
        self._supervisor.set_ceilings(self._store.current)

    def _shared(self, found: Discovered) -> list[Gpu]:
        """Pick the GPUs that are shared by MPS."""
        for reason in found.skipped:
            self._warn("GPU skipped", reason)
        return [gpu for gpu in found.gpus if self._strategy_of(gpu) == MPS]

    def _log_start(self, found: Discovered, shared: Iterable[Gpu]) -> None:
        gpus = [gpu.facts() for gpu in shared]
        _log.info(
            "starting",
            extra={
                "settings": asdict(self._settings),
                "pipe_directory": self._cluster.mps.pipe_directory,
                "driver": found.driver,
                "gpus": gpus,
            },
        )
        if not gpus:
            _log.info("no GPU of this node is shared by MPS: there is nothing to do until one comes")


def _holders(state_dir: Path, boot: str) -> Holders | None:
    return holders(read_occupancy(state_dir, boot_id=boot), now_seconds=boot_seconds())


def _discovered(settings: MpsSettings, process: _Process, ending: Ending, presence: Presence) -> Discovered | None:
    """Find the GPUs; None if the process was told to end before there were any, or a restart may find some."""
    given_up = Event()
    found: Future[Discovered | None] = Future()

    def find() -> None:
        try:
            look, wait_seconds = partial(_discover, process.check), inf if settings.wait_for_gpus else 0.0
            found.set_result(
                wait_for_gpus(look, wait_seconds=wait_seconds, ended=lambda seconds, _: given_up.wait(seconds))
            )
        except BaseException as error:  # noqa: BLE001 - raised again by whoever waits for it
            found.set_exception(error)

    # In a thread that may be left behind: a driver that hangs would keep the signal from being seen.
    started(Thread(target=find, daemon=True))
    looked = monotonic()
    while not wait([found], timeout=_NOTICED_WITHIN_SECONDS).done:
        is_time = monotonic() - looked > _LOOKED_AT_SECONDS
        looked = monotonic() if is_time else looked
        if ending.within(0) is not None or (is_time and process.needs_restart()):
            given_up.set()
            return None
        presence.look()
        end_if_removed(process.directories)
    return found.result()


def _discover(check: Check) -> Discovered:
    return discover(load_nvml(), check=check)
