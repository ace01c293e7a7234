"""
The thread that talks to NVML; no other does. A driver that hangs holds up this thread alone.

NVML finds GPUs at its start only, and one that was lost stays lost until NVML is started anew. While it is, the driver
tells of nothing: so it is started anew where that can help, and not more often than needed.
"""

import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from threading import Event as Signal

from plugin.gpus.nvml import NvmlHealth, explained
from plugin.gpus.pci import PciBus
from plugin.gpus.reading import SYSFS, Check, any_gpu
from plugin.health.event_window import EventWindow
from plugin.health.nvml_connection import KnownGpus, NvmlConnection
from plugin.health.nvml_events import NvmlEvents
from plugin.health.reports import NvmlFailure, Report
from plugin.state_files import boot_seconds
from program.log import WarnOnce

_log = logging.getLogger(__name__)

_MANY_FAILURES = 3  # of waiting for events, in a row


@dataclass(frozen=True, slots=True, kw_only=True)
class Periods:
    """How long things take at most, or at least, and by which clock."""

    probe_seconds: float = 5.0  # between two probes
    wait_seconds: float = 0.5  # for an event, before a look at whether to end
    # A program can cause thousands of events, and an unhealthy GPU's may be behind them: so many in a row are taken as
    # fast as they come. Beyond, they take half a core: after each lot a pause for as long as it took.
    unpaced_events: int = 100_000
    paced_events: int = 5000
    shortest_pause_seconds: float = 0.01
    repeated_events_seconds: float = 0.2  # those alike are told together
    between_probes_seconds: float = 0.2
    first_retry_seconds: float = 1.0  # twice as long each time
    longest_retry_seconds: float = 10.0
    between_starts_seconds: float = 10.0  # of NVML, while a GPU is away
    settling_seconds: float = 60.0  # after a change on the PCI bus: a driver may take a GPU in later
    between_blind_starts_seconds: float = 60.0  # where the kernel lists no GPUs: nothing else tells of new ones
    clock: Callable[[], float] = boot_seconds


class Monitor:
    """
    Gives each of its reports to *report*. *sysfs* is None where the GPUs are not of this machine.

    While NVML does not list those *expected*, by UUID, it is started anew as for one that this has found itself.
    """

    def __init__(  # noqa: PLR0913 - what it watches, by what, and for whom
        self,
        nvml: NvmlHealth,
        report: Callable[[Report], None],
        *,
        periods: Periods,
        sysfs: Path | None = SYSFS,
        check: Check = any_gpu,
        expected: Collection[str] = (),
        ended: Signal | None = None,
    ) -> None:
        self._nvml = nvml
        self._report = report
        self._periods = periods
        self._sysfs = sysfs
        self._clock = periods.clock
        self._ended = ended or Signal()
        self._bus = PciBus(sysfs)
        self._bus_seen: Mapping[str, str] = self._bus.gpus()
        self._known = KnownGpus(check=check, expected=frozenset(expected))
        self._generation = 0
        self._retry_seconds = periods.first_retry_seconds
        self._wait_failures = 0  # in a row
        self._events_failure = ""  # why nobody hears of XIDs; empty while somebody does
        self._window = EventWindow(periods.repeated_events_seconds)
        self._events_in_a_row = 0  # without a moment in which there was none
        self._lot_began_seconds = 0.0
        self._unsettled_until_seconds = 0.0
        self._warn = WarnOnce(_log)

    def run(self) -> None:
        """Watch until `stop`."""
        while not self._ended.is_set():
            try:
                self._watch()
            except self._nvml.NVMLError as error:
                self._report(NvmlFailure(seconds=self._clock(), why=explained(error)))
                self._ended.wait(self._retry_seconds)
                self._retry_seconds = min(2 * self._retry_seconds, self._periods.longest_retry_seconds)

    def stop(self) -> None:
        """Let `run` return, from any thread; it does when NVML answers."""
        self._ended.set()

    def _watch(self) -> None:
        """Watch until NVML must be started anew."""
        began = self._clock()
        self._nvml.nvmlInit()
        self._generation += 1
        self._wait_failures = 0
        connection = NvmlConnection(
            self._nvml, self._known, generation=self._generation, clock=self._clock, sysfs=self._sysfs or Path()
        )
        try:
            while not self._ended.is_set():
                probed = self._clock()
                self._report(connection.probe(events_failure=self._events_failure))
                if self._should_start_anew(connection, age_seconds=self._clock() - began):
                    return
                self._listen(connection)
                self._retry_seconds = self._periods.first_retry_seconds
                self._follow(connection, probed_seconds=probed)
        finally:
            self._report_repeated(connection.events)
            connection.close()

    def _should_start_anew(self, connection: NvmlConnection, *, age_seconds: float) -> bool:
        now = self._clock()
        bus = self._bus.gpus()
        if bus != self._bus_seen:
            self._bus_seen = bus
            self._unsettled_until_seconds = now + self._periods.settling_seconds
            return True
        if age_seconds < self._periods.between_starts_seconds:
            return False
        if now < self._unsettled_until_seconds or self._wait_failures >= _MANY_FAILURES or connection.found_some_again:
            return True
        if self._sysfs is not None and not bus and age_seconds >= self._periods.between_blind_starts_seconds:
            return True
        reached = {self._known.addresses.get(uuid) for uuid in connection.reached}
        return connection.misses_some and self._bus.may_have_more(reached)

    def _listen(self, connection: NvmlConnection) -> None:
        for uuid in sorted(connection.listen()):
            self._warn("the driver does not report XIDs", f"GPU {uuid}")

    def _follow(self, connection: NvmlConnection, *, probed_seconds: float) -> None:
        """Take events until it is time to probe: at once where one asks for it, unless the last was a moment ago."""
        until = probed_seconds + self._periods.probe_seconds
        while not self._ended.is_set() and (left := until - self._clock()) > 0:
            seconds = min(left, self._periods.wait_seconds)
            if not connection.events.listens:
                self._ended.wait(seconds)
            elif not self._take_event(connection.events, seconds):
                until = min(until, probed_seconds + self._periods.between_probes_seconds)

    def _take_event(self, events: NvmlEvents, seconds: float) -> bool:
        """Wait for an event; False asks for a probe."""
        began = self._clock()
        if self._window.is_over(began):
            self._report_repeated(events)
        try:
            told = events.wait(seconds)
        except self._nvml.NVMLError as error:
            self._fail_to_wait(events, error)
            return False
        self._wait_failures = 0
        self._events_failure = ""
        if told is None:
            self._report_repeated(events)
            self._events_in_a_row = 0
            self._ended.wait(began + seconds - self._clock())  # nothing, if NVML has waited
            return True
        self._pause_between_many(began)
        if told == "look":
            return False
        if self._window.is_first(told, began):
            self._report(events.event(told))
        return True

    def _report_repeated(self, events: NvmlEvents) -> None:
        for told, times in self._window.close():
            self._report(events.event(told, times=times))

    def _pause_between_many(self, now_seconds: float) -> None:
        self._events_in_a_row += 1
        beyond = self._events_in_a_row - self._periods.unpaced_events
        if beyond < 0 or beyond % self._periods.paced_events:
            return
        if beyond:
            self._ended.wait(max(now_seconds - self._lot_began_seconds, self._periods.shortest_pause_seconds))
        self._lot_began_seconds = self._clock()

    def _fail_to_wait(self, events: NvmlEvents, error: Exception) -> None:
        """Have the probe say what is wrong and listen anew, ever slower if that does not help."""
        self._report_repeated(events)
        events.stop()
        self._warn("NVML does not deliver events, polling instead", explained(error))
        if self._wait_failures:
            pause_seconds = self._periods.first_retry_seconds * 2 ** (self._wait_failures - 1)
            self._ended.wait(min(pause_seconds, self._periods.probe_seconds))
        self._wait_failures += 1
        if self._wait_failures >= _MANY_FAILURES:
            self._events_failure = f"NVML does not deliver events: {explained(error)}"
