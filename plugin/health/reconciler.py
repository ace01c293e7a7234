"""
The thread that says how the GPUs are: to the kubelet, to the log and to `gpu-share plugin status`.

It makes no call of NVML and takes no lock that anyone holds for long, so that it goes on where the driver hangs.
"""

import logging
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from queue import Empty, SimpleQueue

import msgspec

from plugin.boot_clock import boot_seconds
from plugin.device_plugin.resources import Offers
from plugin.errors import PluginError, TenantsError
from plugin.health.inventory import Entry, Ledger
from plugin.health.mps_faults import MpsFaults
from plugin.health.reports import Report
from plugin.health.rules import Moment
from plugin.health.state import HEARTBEAT_SECONDS, ApplicationFault, NodeHealth, write_node_health
from plugin.pod_resources.tenants import Tenant
from policies.contract import MPS

_log = logging.getLogger(__name__)

_TICK_SECONDS = 1.0  # MPS daemons and a silent NVML are seen by looking
_SAME_FAULT_SECONDS = 60.0  # a program that fails all the time is one line a minute


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What the judge asks, and where it writes."""

    boot_id: str
    state_dir: Path
    mps_faults: MpsFaults
    tenants: Callable[[], tuple[Tenant, ...]]  # raises TenantsError
    clock: Callable[[], float] = boot_seconds


class Judge:
    """Takes what comes in *reports* and makes *offers* follow. Call `look` first, then `run` in a thread."""

    def __init__(
        self, ledger: Ledger, offers: Offers, reports: "SimpleQueue[Report | None]", surroundings: Surroundings
    ) -> None:
        self._ledger = ledger
        self._offers = offers
        self._reports = reports
        self._around = surroundings
        self._stopping = False
        self._faults_said: dict[str, frozenset[tuple[str, int | None]]] = {}
        self._programs_faults: dict[tuple[str, int], int] = {}  # not told of yet
        self._programs_fault_said: dict[tuple[str, int], float] = {}
        self._said: set[str] = set()
        self._written: NodeHealth | None = None

    def run(self) -> None:
        """Go on until `stop`."""
        while not self._stopping:
            try:
                self.look(*self._arrived())
            except PluginError as error:
                self._say_once("a GPU that appeared is not offered", str(error))
        if self._written:
            self._save(msgspec.structs.replace(self._written, ended=True))

    def stop(self) -> None:
        """Let `run` return, from any thread."""
        self._stopping = True
        self._reports.put(None)

    def look(self, *reports: Report) -> None:
        """
        Judge once, with *reports* as what has come since the last time.

        Raises:
            PluginError: If a GPU that is new cannot be offered; all else is done.
        """
        at = self._now()
        for report in reports:
            self._ledger.take(report, at)
        self._ledger.expect_nvml(at)
        shared_by_mps = [entry.gpu.uuid for entry in self._ledger.entries if entry.offer == MPS]
        self._ledger.set_mps_faults(self._around.mps_faults(shared_by_mps), at)
        try:
            self._offers.publish(self._ledger.entries)
        finally:
            self._log_changes()
            self._tell_of_programs(at)
            self._write(at)

    def _arrived(self) -> list[Report]:
        """Wait a tick for reports, and take all there are."""
        arrived: list[Report] = []
        timeout_seconds = _TICK_SECONDS
        try:
            while (report := self._reports.get(timeout=timeout_seconds)) is not None:
                arrived.append(report)
                timeout_seconds = 0
        except Empty:
            pass
        return arrived

    def _now(self) -> Moment:
        return Moment(self._around.clock(), datetime.now(UTC).isoformat(timespec="seconds"))

    def _log_changes(self) -> None:
        for sentence in self._ledger.skipped:
            self._say_once("GPU skipped", sentence)
        for entry in self._ledger.entries:
            uuid = entry.gpu.uuid
            faults = frozenset((fault.source, fault.xid) for fault in entry.state.faults)
            before = self._faults_said.get(uuid, frozenset())
            if faults - before:
                come_back = [fault.comes_back for fault in entry.state.faults]
                _log.warning("GPU unhealthy", extra={**self._named(entry), "why": entry.why, "comes_back": come_back})
            elif before and not faults:
                _log.info("GPU healthy again", extra=self._named(entry))
            self._faults_said[uuid] = faults

    def _named(self, entry: Entry) -> dict[str, object]:
        return {"gpu": entry.gpu.uuid, "index": entry.gpu.index, "resource": self._offers.names[entry.offer]}

    def _tell_of_programs(self, at: Moment) -> None:
        for key, times in self._ledger.programs_faults().items():
            self._programs_faults[key] = self._programs_faults.get(key, 0) + times
        due = [key for key in self._programs_faults if self._is_due(key, at)]
        if not due:
            return
        tenants, unknown = self._tenants()
        for uuid, xid in due:
            there = tuple(tenant.name for tenant in tenants if tenant.vgpus_on(uuid))
            self._ledger.remember(uuid, ApplicationFault(xid=xid, at=at.text, tenants=there))
            fields: dict[str, object] = {"gpu": uuid, "xid": xid, "times": self._programs_faults.pop((uuid, xid))}
            _log.warning("application fault on a GPU", extra={**fields, "tenants": there, **unknown})
            self._programs_fault_said[uuid, xid] = at.seconds

    def _is_due(self, key: tuple[str, int], at: Moment) -> bool:
        said_seconds = self._programs_fault_said.get(key)
        return said_seconds is None or at.seconds - said_seconds >= _SAME_FAULT_SECONDS

    def _tenants(self) -> tuple[tuple[Tenant, ...], Mapping[str, str]]:
        try:
            return self._around.tenants(), {}
        except TenantsError as error:
            return (), {"tenants_unknown": str(error)}

    def _write(self, at: Moment) -> None:
        """Publish what changed, and now and then that we live."""
        before = self._written
        health = NodeHealth(
            boot_id=self._around.boot_id,
            heartbeat_seconds=before.heartbeat_seconds if before else at.seconds,
            pid=os.getpid(),
            driver=self._ledger.driver,
            gpus=self._ledger.health(self._offers.names),
            skipped=self._ledger.skipped,
        )
        if health == before and at.seconds - before.heartbeat_seconds < HEARTBEAT_SECONDS:
            return
        self._written = msgspec.structs.replace(health, heartbeat_seconds=at.seconds)
        self._save(self._written)

    def _save(self, health: NodeHealth) -> None:
        try:
            write_node_health(self._around.state_dir, health)
        except OSError as error:
            reason = (
                f"--state-dir {self._around.state_dir}: {error.strerror}: the GPUs are served, but `gpu-share plugin "
                "status` cannot show how they are, and a plugin that starts later does not know what failed"
            )
            self._say_once("the state of the GPUs cannot be written", reason)

    def _say_once(self, message: str, reason: str) -> None:
        if reason not in self._said:
            self._said.add(reason)
            _log.warning(message, extra={"reason": reason})
