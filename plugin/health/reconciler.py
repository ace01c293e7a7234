"""
The thread that reconciles what is known of the GPUs with what the kubelet, the log and `gpu-share plugin status` say.

It makes no call of NVML and takes no lock that anyone holds for long, so that it goes on where the driver hangs.
"""

import logging
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Final

import msgspec

from plugin.errors import PluginError, TenantsError
from plugin.health.entry import Entry
from plugin.health.gpu_state import Moment
from plugin.health.inventory import GpuInventory
from plugin.health.recovery_request import RecoveryRequest
from plugin.health.reports import Report
from plugin.health.state import (
    HEARTBEAT_SECONDS,
    ApplicationFault,
    FitGuardState,
    NodeHealth,
    NotRegistered,
    Pending,
    write_node_health,
)
from plugin.mps.state import MpsFaults
from plugin.pod_resources.tenants import Tenant
from plugin.shares.strategy import SharedGpu
from plugin.state_files import boot_seconds
from policies.contract import MPS
from policies.node_state import Toolkit
from program.log import WarnOnce

_LEFT_CLAIMED: Final = "claims hold something of it, and no driver of DRA runs here to take them back"
_log = logging.getLogger(__name__)

_TICK_SECONDS = 1.0  # MPS daemons and a silent NVML are seen by looking
_SAME_FAULT_SECONDS = 60.0  # a program that fails all the time is one line a minute


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconcilerContext:
    """What the reconciler asks, and where it writes."""

    boot_id: str
    state_dir: Path
    mps_faults: MpsFaults
    tenants: Callable[[], tuple[Tenant, ...]]  # raises TenantsError
    publish: Callable[[Sequence[Entry]], None]  # tells the kubelet; raises PluginError where a new GPU cannot be shared
    resource_of: Callable[[SharedGpu], str]
    mps_daemons: Callable[[], Collection[str]] = tuple  # the GPUs, by UUID, that have a daemon, good or not
    recovery_request: Callable[[], RecoveryRequest | None] = lambda: None  # what an administrator has asked for
    handover: Callable[[Sequence[Entry], str], str] = lambda _gpus, _driver: ""  # how containers get their GPU
    slices_not_published: Callable[[], str] = str  # why the scheduler does not see those of DRA as they are
    not_registered: Callable[[], tuple[NotRegistered, ...]] = tuple  # resources that the kubelet does not know
    toolkit: Callable[[], Toolkit | None] = lambda: None  # how NVIDIA's is set up
    pending: Callable[[], Pending] = Pending  # what of _cluster.yaml has changed and is not taken up
    fit_guard: Callable[[], FitGuardState | None] = lambda: None
    unwritten: Callable[[SharedGpu], str] = lambda _: ""  # why it cannot be written who holds what of a GPU
    unsafe: Callable[[SharedGpu], str] = lambda _: ""  # why pods could lift the limits of their shares of it
    misfit: Callable[[SharedGpu], str] = lambda _: ""  # why it cannot have as many vGPUs as it is to have
    unadvertised: Callable[[SharedGpu], str] = lambda _: ""  # why the last `publish` did not tell the kubelet of it
    left_claimed: Callable[[], Collection[str]] = tuple  # GPUs, by UUID, of which nobody takes claims back
    restores: Sequence[Callable[[], None]] = ()  # each makes again what somebody has removed; raises PluginError
    clock: Callable[[], float] = boot_seconds


class Reconciler:
    """Takes what comes in *reports* and publishes what follows. Call `look` first, then `run` in a thread."""

    def __init__(
        self, inventory: GpuInventory, reports: "SimpleQueue[Report | None]", context: ReconcilerContext
    ) -> None:
        self._inventory = inventory
        self._reports = reports
        self._context = context
        self._stopping = False
        self._faults_said: dict[str, frozenset[tuple[str, int | None]]] = {}
        self._application_faults: dict[tuple[str, int], int] = {}  # not told of yet
        self._application_fault_said: dict[tuple[str, int], float] = {}
        self._warn = WarnOnce(_log)
        self._written: NodeHealth | None = None
        self._handover = ""

    def run(self) -> None:
        """
        Go on until `stop`.

        Raises:
            PluginError: If what containers or this plugin need was removed, and cannot be made again: a plugin that
                starts would say so, or find it there.
        """
        while not self._stopping:
            arrived = self._arrived()
            for restore in self._context.restores:
                restore()
            try:
                self.look(*arrived)
            except PluginError as error:
                self._warn("a GPU that appeared is not shared", str(error))
        if self._written:
            self._save(msgspec.structs.replace(self._written, ended=True))

    def stop(self) -> None:
        """Let `run` return, from any thread."""
        self._stopping = True
        self._reports.put(None)

    def look(self, *reports: Report) -> None:
        """
        Reconcile once, with *reports* as what has come since the last time.

        Raises:
            PluginError: If a GPU that is new cannot be advertised; all else is done.
        """
        at = self._now()
        for report in reports:
            self._inventory.take(report, at)
        self._inventory.expect_nvml(at)
        self._recover(at)
        pending = self._context.pending()  # first: what is taken up of the file decides on what follows
        shared_by_mps = [entry.gpu.uuid for entry in self._inventory.entries if entry.strategy == MPS]
        self._inventory.set_mps_faults(self._context.mps_faults(shared_by_mps), at)
        self._inventory.set_reported_faults("held", self._context.unwritten, at)
        self._inventory.set_reported_faults("handover", self._context.unsafe, at)
        self._inventory.set_reported_faults("division", self._context.misfit, at)
        self._inventory.judge_modes(at, by_mps=self._context.mps_daemons())
        left = self._context.left_claimed()
        self._inventory.set_reported_faults("claims", lambda one: _LEFT_CLAIMED if one.gpu.uuid in left else "", at)
        self._handover = self._context.handover(self._inventory.entries, self._inventory.driver)
        try:
            self._context.publish(self._inventory.entries)
        finally:
            self._inventory.set_reported_faults("advertised", self._context.unadvertised, at)
            self._log_changes()
            self._log_application_faults(at)
            self._write(at, pending)

    def _recover(self, at: Moment) -> None:
        request = self._context.recovery_request()
        recovery = self._inventory.recover(request, at) if request else None
        if request is None or recovery is None:
            return
        fields = {"gpu": request.gpu_uuid, "by": recovery.by, "reason": recovery.reason}
        if recovery.refused:
            _log.warning("recovery refused", extra={**fields, "why": recovery.refused})
        else:
            _log.warning("fault cleared by an administrator", extra={**fields, "cleared": recovery.cleared})

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
        return Moment(self._context.clock(), datetime.now(UTC).isoformat(timespec="seconds"))

    def _log_changes(self) -> None:
        for sentence in self._inventory.skipped:
            self._warn("GPU skipped", sentence)
        for entry in self._inventory.entries:
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
        return {"gpu": entry.gpu.uuid, "index": entry.gpu.index, "resource": self._context.resource_of(entry)}

    def _log_application_faults(self, at: Moment) -> None:
        for key, times in self._inventory.application_faults().items():
            self._application_faults[key] = self._application_faults.get(key, 0) + times
        due = [key for key in self._application_faults if self._is_due(key, at)]
        if not due:
            return
        tenants, unknown = self._tenants()
        for uuid, xid in due:
            there = tuple(tenant.name for tenant in tenants if tenant.is_on(uuid))
            self._inventory.remember(uuid, ApplicationFault(xid=xid, at=at.text, tenants=there))
            fields: dict[str, object] = {"gpu": uuid, "xid": xid, "times": self._application_faults.pop((uuid, xid))}
            _log.warning("application fault on a GPU", extra={**fields, "tenants": there, **unknown})
            self._application_fault_said[uuid, xid] = at.seconds

    def _is_due(self, key: tuple[str, int], at: Moment) -> bool:
        said_seconds = self._application_fault_said.get(key)
        return said_seconds is None or at.seconds - said_seconds >= _SAME_FAULT_SECONDS

    def _tenants(self) -> tuple[tuple[Tenant, ...], Mapping[str, str]]:
        try:
            return self._context.tenants(), {}
        except TenantsError as error:
            return (), {"tenants_unknown": str(error)}

    def _write(self, at: Moment, pending: Pending) -> None:
        """Publish what changed, and now and then that we live."""
        before = self._written
        health = NodeHealth(
            boot_id=self._context.boot_id,
            heartbeat_seconds=before.heartbeat_seconds if before else at.seconds,
            pid=os.getpid(),
            driver=self._inventory.driver,
            gpus=self._inventory.health(self._context.resource_of),
            absent=self._inventory.absent,
            reached=self._inventory.reached,
            skipped=self._inventory.skipped,
            left_to_others=len(self._inventory.left_to_others),
            handover=self._handover,
            slices_not_published=self._context.slices_not_published(),
            not_registered=self._context.not_registered(),
            toolkit=self._context.toolkit(),
            restart_needed=pending.needs_restart,
            not_taken=pending.not_taken,
            fit_guard=self._context.fit_guard(),
        )
        if health == before and at.seconds - before.heartbeat_seconds < HEARTBEAT_SECONDS:
            return
        self._written = msgspec.structs.replace(health, heartbeat_seconds=at.seconds)
        self._save(self._written)

    def _save(self, health: NodeHealth) -> None:
        try:
            write_node_health(self._context.state_dir, health)
        except OSError as error:
            reason = (
                f"--state-dir {self._context.state_dir}: {error.strerror}: the GPUs are served, but `gpu-share plugin "
                "status` cannot show how they are, and a plugin that starts later does not know what failed"
            )
            self._warn("the state of the GPUs cannot be written", reason)
