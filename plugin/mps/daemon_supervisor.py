"""Keeps the MPS daemon of one GPU running, in a thread of its own, and says how it is."""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from threading import Event

from plugin.errors import ControlError, MpsError
from plugin.gpus.gpu import Gpu
from plugin.mps.busy_callers import BusyCallers
from plugin.mps.client_limits import ClientLimits, ceiling_of
from plugin.mps.compute_mode import ComputeModes
from plugin.mps.daemon import Daemon
from plugin.mps.in_use import GpusInUse
from plugin.mps.last_look import last_look
from plugin.mps.mount_sources import offer
from plugin.mps.place import Place
from plugin.mps.restart_policy import NOT_SERVING, Action, DaemonStatus, is_last, step
from plugin.mps.seen import (
    Answered,
    Blocked,
    Fault,
    Gone,
    NoAnswer,
    NotStarted,
    Seen,
    Unreachable,
    Unread,
    not_done,
    with_fault,
)
from plugin.mps.silent_callers import SilentCallers, free_of
from plugin.mps.state import StateName, report_of
from plugin.mps.timing import Timing
from plugin.mps.unreachable import is_removed, left_alone
from plugin.pod_resources.tenancy import Tenancy
from plugin.shares.last_parts import LastParts
from plugin.state_files import boot_seconds
from policies.cluster import Cluster

_log = logging.getLogger(__name__)

_KEPT_WAITING = "clients that say nothing keep it from all others: the log of gpu-share mps says whose they are"
_KEPT_RATIO = 0.3  # of a look; more than clients are forgiven for long, or they could keep a daemon that hangs
_NO_SERVER_STAYS = (
    "its MPS server ends as soon as it is started: end what else uses the GPU (nvidia-smi lists it), and see server.log"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SupervisorContext:
    """Shared by all supervisors, and the same from start to end."""

    place: Place
    state_dir: Path
    boot_id: str
    modes: ComputeModes
    tenancy: Tenancy
    parts: LastParts  # what is held, by the plugin's file
    timing: Timing
    device_of: Callable[[Cluster, Gpu], str]  # names what shares of a GPU are of
    container_logs: Path  # directory of the links to the logs of all containers


class DaemonSupervisor:
    """
    One GPU's supervisor. `report` is always how the daemon was at the last look.

    `ceiling` and `blocked` are set from outside at any time: the largest share of the GPU that one client may have, and
    why no container may start on the GPU whatever the daemon says (empty: nothing).
    """

    def __init__(self, gpu: Gpu, context: SupervisorContext) -> None:
        self.gpu = gpu
        self.ceiling = Fraction(1)
        self.blocked = ""
        self._context = context
        self._place = context.place
        self._daemon = Daemon(gpu.uuid, context.place, context.timing)
        self._daemon.control.meanwhile = self._still_looks
        self._daemon.control.frees = lambda group: free_of(self._daemon.pids, group)
        self._limits = ClientLimits(gpu.uuid, self._daemon.control, context.timing)
        self._in_use = GpusInUse(context.tenancy, context.parts)
        self._callers = SilentCallers(context.container_logs)
        self._status = DaemonStatus()
        self.report = report_of("starting", self._status.why)

    @property
    def runs(self) -> bool:
        """Whether there is a daemon, good or not, as far as the last look said."""
        return self._status.running

    def hang_up(self) -> None:
        """Hang up on clients that keep the daemon from all others; for a thread of its own."""
        self._callers.hang_up(self._daemon.pids)

    def run(self, ending: Event) -> None:
        """Supervise the daemon until *ending*, then stop it; nothing is left of it if that can be helped."""
        seen: Seen | None = Gone()  # whatever runs was not started by us: it is ended before the first start
        while not ending.is_set():
            pause_seconds = self._context.timing.look
            try:
                self._turn(seen or self._look(ending), ending)
                pause_seconds = self._status.pause_seconds(boot_seconds(), longest=pause_seconds)
            except Exception:  # noqa: BLE001 - a supervisor that dies unseen would leave a daemon that nobody looks at
                _log.exception("supervising the MPS daemon failed", extra={"gpu": self.gpu.uuid})
                self._report("failed", "an error in gpu-share itself: see the log of gpu-share mps")
            seen = None
            self._daemon.pause(pause_seconds, ending)
        self._stop()

    def _turn(self, seen: Seen, ending: Event) -> None:
        action = self._take(seen)
        if action == "start":
            action = self._take(self._started(ending))
        elif action == "serve":
            action = self._take(self._served(ending))
        if action == "kill":
            self._kill()

    def _take(self, seen: Seen) -> Action:
        self._status, action = step(self._status, seen, boot_seconds())
        self._report(self._status.state, self._status.why)
        return action

    def _look(self, ending: Event) -> Seen:
        began_seconds, kept_seconds = time.monotonic(), self._callers.kept_seconds
        if is_last(self._status) and self._is_left():
            seen = self._last_look(ending)
        else:
            seen = self._hold(self._daemon.look(), at_most_seconds=self._context.timing.answer)
        kept_seconds = self._callers.kept_seconds - kept_seconds
        in_vain = isinstance(seen, Answered) and seen.in_vain
        was_kept = kept_seconds >= _KEPT_RATIO * (time.monotonic() - began_seconds)
        if was_kept and (in_vain or isinstance(seen, NoAnswer)):
            return Blocked(_KEPT_WAITING)  # it answers others in its time, and ended it would take their work along
        has_failed = in_vain or self._status.state in NOT_SERVING
        if isinstance(seen, Unread | Unreachable) or (isinstance(seen, Answered) and has_failed):
            seen = self._left(seen)
        # A daemon that is gone needs a start, which looks at the compute mode itself.
        if self.blocked and not isinstance(seen, Gone):
            return Blocked(self.blocked)
        not_offered = offer(self._place.mount_sources, self._place.pipe_directory, self.gpu.uuid)
        return Blocked(not_offered) if not_offered and isinstance(seen, Answered) else seen

    def _last_look(self, ending: Event) -> Seen:
        timing = self._context.timing
        hold = partial(self._hold, at_most_seconds=timing.patience)
        busy = BusyCallers(self._context.container_logs)
        return last_look(self._daemon, timing, busy, lambda: not ending.is_set(), hold)

    def _hold(self, seen: Seen, *, at_most_seconds: float) -> Seen:
        """Hold the limits of clients as they should be, where there is a server; adds why they may not be so."""
        if self._daemon.was_moved:
            self._limits.doubt()
        if not isinstance(seen, Answered | Unreachable) or not seen.servers:
            return seen
        return with_fault(seen, self._hold_limits(seen, at_most_seconds=at_most_seconds))

    def _left(self, seen: Answered | Unread | Unreachable) -> Seen:
        if not (seen.in_use and self._is_left()):
            return replace(seen, in_use=False)
        if isinstance(seen, Unreachable):
            return replace(seen, why=left_alone(self._place.pipe_directory / self.gpu.uuid, seen.why))
        return seen

    def _is_left(self) -> bool:
        """Whether a daemon of no use is left alone: ended, it would take contexts along, or for nothing."""
        if is_removed(self._place.pipe_directory):  # none can be started here
            return True
        return bool(self._in_use.held(frozenset({self.gpu.uuid})))

    def _started(self, ending: Event) -> Seen:
        """Start the daemon and its first server, and look at them."""
        if fault := self._not_exclusive():
            return NotStarted(fault)
        try:
            self._daemon.start()
        except MpsError as error:
            return NotStarted(str(error))
        if ending.is_set():  # nothing more that may take its time
            return Answered({})
        self._limits.forget()
        # Before there is a server: the defaults reach those that are started later.
        self._hold_limits(Answered({}), at_most_seconds=self._context.timing.start)
        return self._served(ending)

    def _not_exclusive(self) -> str:
        """Have the GPU exclusive before anything serves it; why it cannot be, or nothing."""
        try:
            return self._context.modes.hold([self.gpu.uuid]).get(self.gpu.uuid, "")
        except MpsError as error:
            return str(error)

    def _served(self, ending: Event) -> Seen:
        """Have the daemon start a server, and look whether it stays."""
        if fault := self._not_exclusive():  # what ended an earlier server may have reset the GPU, and its mode
            return Answered({}, fault=fault)
        try:
            self._daemon.start_server()
        except ControlError as error:
            return self._left(with_fault(Answered({}), not_done("no MPS server can be started", error)))
        seen = self._look(ending)
        if isinstance(seen, Answered) and not seen.servers:
            return replace(seen, fault=_NO_SERVER_STAYS)
        return seen

    def _kill(self) -> None:
        """End a daemon that does not answer; the next look finds it gone."""
        try:
            self._daemon.stop(quit_seconds=self._context.timing.kill)
        except MpsError as error:
            self._status = replace(self._status, why=str(error), running=bool(self._daemon.hangs))
            self._report(self._status.state, self._status.why)

    def _hold_limits(self, seen: Answered | Unreachable, *, at_most_seconds: float) -> Fault:
        return self._limits.hold(ceiling_of(self.gpu, self.ceiling), seen.servers, at_most_seconds=at_most_seconds)

    def _stop(self) -> None:
        self._report("stopped", "gpu-share mps ends")
        try:
            self._daemon.stop()
        except MpsError as error:
            self._report("stopped", str(error))
        except Exception:  # noqa: BLE001 - as above
            _log.exception("stopping the MPS daemon failed", extra={"gpu": self.gpu.uuid})

    def _report(self, state: StateName, why: str) -> None:
        before, self.report = self.report, report_of(state, why, before=self.report)
        if (state, why) != (before.state, before.why):
            self._say(state, why)

    def _still_looks(self) -> None:
        """Have what is said of a daemon that is not good hold, while it takes its time."""
        if self.report.state not in ("ready", "stopped"):
            self.report = report_of(self.report.state, self.report.why, before=self.report)

    def _say(self, state: StateName, why: str) -> None:
        said: dict[str, object] = {"gpu": self.gpu.uuid, "state": state}
        if why:
            said["reason"] = why
        if state == "fault":
            said["tenants"] = self._context.tenancy.names_on(self.gpu.uuid)
        _log.log(logging.WARNING if state in ("failed", "fault") else logging.INFO, "MPS daemon", extra=said)
