"""The plugin's process: finds the GPUs, serves and watches them until SIGTERM, and says in one line why it cannot."""

import logging
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from queue import SimpleQueue

from plugin.device_plugin.resources import Offers
from plugin.errors import PluginError, SimulationError, SocketError
from plugin.health.monitor import NvmlWatcher, Periods
from plugin.health.reports import Probe, Report
from plugin.health.start import first_probe, judge_of, node_of
from plugin.settings import Settings
from plugin.shares.handover import forget_others
from plugin.threads import Servers, Threads
from policies.cluster import Cluster
from policies.errors import PolicyError
from policies.reading.store import load
from program.log import start_logging

_log = logging.getLogger(__name__)

_FAILED = 1
_BAD_INPUT = 2
_ENDING = {signal.SIGTERM, signal.SIGINT}


def run(settings: Settings) -> int:
    """Serve until SIGTERM or SIGINT; the exit code is 0 then, 1 if there is nothing to serve, 2 for bad input."""
    start_logging()
    with _signals_held():
        threads = Threads(on_death=lambda: os.kill(os.getpid(), signal.SIGTERM))
        code = _exit_code(settings, threads)
        all_ended = threads.end()
        code = _FAILED if threads.died else code
        if not all_ended:
            # The driver hangs, and what its library does at an orderly exit could hang as well.
            logging.shutdown()
            os._exit(code)
    return code


def _exit_code(settings: Settings, threads: Threads) -> int:
    try:
        _run(settings, threads)
    except (PolicyError, SimulationError) as error:
        return _failure(error, _BAD_INPUT)
    except PluginError as error:
        return _failure(error, _FAILED)
    return 0


def _run(settings: Settings, threads: Threads) -> None:
    cluster = load(settings.policies).cluster
    node = node_of(settings)
    _check_kubelet_dir(settings)
    servers = Servers(settings.kubelet_dir, threads)
    offers = Offers(settings, cluster, serve=servers.add)
    reports: SimpleQueue[Report | None] = SimpleQueue()
    watcher = NvmlWatcher(node.nvml, reports.put, periods=Periods(), sysfs=node.sysfs)
    threads.start("nvml", watcher.run, stop=watcher.stop, may_hang=True)
    probe = first_probe(reports, offers.offer, wait=settings.wait_for_gpus, ended=_ended_within)
    if probe is None:
        return
    judge = judge_of(settings, node, offers, reports)
    judge.look(probe)
    if not probe.skipped:  # a GPU that could not be seen may be all there is of a resource
        forget_others(settings, offers.offered)
    _log_start(settings, cluster=cluster, offers=offers, probe=probe)
    servers.start()  # before the judge, who adds to them from its own thread
    threads.start("judge", judge.run, stop=judge.stop, may_hang=True)
    received = signal.sigwait(_ENDING)
    _log.info("ending", extra={"signal": signal.Signals(received).name})


def _check_kubelet_dir(settings: Settings) -> None:
    folder = settings.kubelet_dir
    if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
        raise SocketError(f"--kubelet-dir {folder}: not a folder that can be written to: is a kubelet on this node?")


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


def _log_start(settings: Settings, *, cluster: Cluster, offers: Offers, probe: Probe) -> None:
    _log.info(
        "starting",
        extra={
            "settings": asdict(settings),
            "vgpus_per_gpu": cluster.vgpus_per_gpu,
            "pipe_directory": cluster.mps.pipe_directory,
            "driver": probe.driver,
            "gpus": [{**asdict(gpu), "resource": offers.resource_of(gpu)} for gpu in probe.gpus],
        },
    )
