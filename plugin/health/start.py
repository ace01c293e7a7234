"""How the watch over the GPUs begins: what is watched, and the first probe, before which nothing is offered."""

import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from time import monotonic

from plugin.boot_clock import boot_id
from plugin.device_plugin.resources import Offers
from plugin.errors import InventoryError
from plugin.gpus.discovery import SYSFS, no_gpus
from plugin.gpus.gpu import Gpu
from plugin.gpus.nvml import Nvml, load_nvml
from plugin.health.inventory import SILENT, SILENT_SECONDS, Ledger
from plugin.health.mps_faults import MpsFaults, PublishedMpsFaults
from plugin.health.reconciler import Judge, Surroundings
from plugin.health.reports import NvmlFailure, Probe, Report
from plugin.health.state import read_node_health
from plugin.pod_resources.tenants import Tenant, read_tenants
from plugin.settings import Settings
from policies.contract import SharingStrategy

_log = logging.getLogger(__name__)

_LOOK_SECONDS = 0.02  # between two looks for the first probe
_LOOK_AGAIN_SECONDS = 0.5  # once it is known that there is no GPU yet
_TENANTS_TIMEOUT_SECONDS = 0.5  # a kubelet that hangs must not hold up the news of a fault


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """What tells how the GPUs are: this machine, or one that is not there."""

    nvml: Nvml
    sysfs: Path | None  # None says nothing of a PCI bus
    mps_faults: MpsFaults


def node_of(settings: Settings) -> Node:
    """
    Choose what is watched.

    Raises:
        InventoryError: If the bindings of NVML are not installed.
        SimulationError: If `--simulate` names no GPUs.
    """
    if settings.simulate is not None:
        return _simulated(settings.simulate)
    return Node(nvml=load_nvml(), sysfs=SYSFS, mps_faults=PublishedMpsFaults(settings.state_dir, boot_id=boot_id()))


def _simulated(specification: str) -> Node:
    from plugin.simulated.gpus import simulated_mps_faults, simulated_node  # noqa: PLC0415
    from plugin.simulated.nvml import SimulatedNvml  # noqa: PLC0415 - a node with GPUs needs none of it

    node = simulated_node(specification)
    began = monotonic()
    return Node(
        nvml=SimulatedNvml(node, clock=lambda: monotonic() - began),
        sysfs=None,
        mps_faults=lambda _uuids: simulated_mps_faults(node, monotonic() - began),
    )


def first_probe(
    reports: "SimpleQueue[Report | None]",
    offer: Callable[[Gpu], SharingStrategy | None],
    *,
    wait: bool,
    ended: Callable[[float], bool],
    clock: Callable[[], float] = monotonic,
) -> Probe | None:
    """
    Take reports until one shows a GPU that is to be offered.

    *ended* waits that many seconds and says whether to give up; None is returned then. With *wait*, the reason why
    there is no GPU is logged when it changes: a driver can take hours to come.

    Raises:
        InventoryError: If there is no GPU to offer, without *wait*.
    """
    said = ""
    heard = clock()
    while not ended(_LOOK_AGAIN_SECONDS if said else _LOOK_SECONDS):
        why = SILENT if clock() - heard > SILENT_SECONDS else ""
        with suppress(Empty):
            report = reports.get_nowait()
            heard = clock()
            if isinstance(report, Probe) and any(offer(gpu) for gpu in report.gpus):
                return report
            why = _why_none(report)
        if why and not wait:
            raise InventoryError(why)
        if why and why != said:
            said = why
            _log.warning("waiting for GPUs", extra={"reason": why})
    return None


def judge_of(settings: Settings, node: Node, offers: Offers, reports: "SimpleQueue[Report | None]") -> Judge:
    """Make the judge of what comes in *reports*; it goes on with what an earlier plugin knew."""
    with suppress(OSError):  # which the judge is going to tell of when it cannot write
        settings.state_dir.mkdir(parents=True, exist_ok=True)
    boot = boot_id()
    before = read_node_health(settings.state_dir)
    ledger = Ledger(
        offer=offers.offer,
        application_xids=settings.application_xids,
        before=before if before and before.boot_id == boot and settings.simulate is None else None,
    )

    def tenants() -> tuple[Tenant, ...]:
        names = offers.names.values()
        return read_tenants(settings.pod_resources, frozenset(names), timeout_seconds=_TENANTS_TIMEOUT_SECONDS)

    surroundings = Surroundings(boot_id=boot, state_dir=settings.state_dir, mps_faults=node.mps_faults, tenants=tenants)
    return Judge(ledger, offers, reports, surroundings)


def _why_none(report: Report | None) -> str:
    match report:
        case NvmlFailure(why=why):
            return why
        case Probe(gpus=()):
            return no_gpus(report.skipped)
        case Probe(gpus=gpus):
            return f"no GPU to share: nodes in _cluster.yaml leaves all {len(gpus)} GPUs of this node to others"
        case _:
            return ""
