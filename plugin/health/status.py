"""What `gpu-share plugin status` says on a node, read from the files of the plugin and of the MPS daemons."""

import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import msgspec

from plugin.health.running import NotRunningError, running
from plugin.health.state import FitGuardState, GpuHealth, GpuRoom, NodeHealth, Recovery
from plugin.health.status_tenants import of_tenants
from plugin.health.words import moment_text, safe, since
from plugin.mps import state as mps
from plugin.mps.holders import holders, of_node, outsiders_of
from plugin.pod_resources.occupancy import FRESH_SECONDS, GpuOccupancy, NodeOccupancy, read_occupancy
from plugin.state_files import boot_seconds
from plugin.usage.record import NodeUse, fresh, read_use
from policies.outsiders import OfNode, Outsider, told
from program.duration import duration

_ALL_HEALTHY = 0
_SOME_UNHEALTHY = 1
_NO_PLUGIN = 2


class _Daemon(msgspec.Struct, frozen=True, kw_only=True):
    """A GPU's MPS daemon."""

    state: str
    since: str
    fault: str | None  # why no container may start with it; None if it is ready


class _Gpu(msgspec.Struct, frozen=True, kw_only=True):
    """What is said of a GPU."""

    health: GpuHealth
    daemon: _Daemon | None  # None if nobody has told of one
    occupancy: GpuOccupancy | None  # None if nobody has told who has which share
    outsiders: tuple[Outsider, ...] | None  # who uses it without a share; None if that is not known
    of_node: OfNode | None  # programs of the node that use it


def show(state_dir: Path, *, output: Literal["text", "json"]) -> int:
    """
    Print how each GPU is, as text or JSON.

    Returns:
        0 if all are healthy, 1 if some are not, none is shared yet, the kubelet does not know a resource or the slices
        of DRA are not published, 2 if no plugin runs here or none says how they are, which standard error then says in
        one line.
    """
    try:
        node, age_seconds = running(state_dir)
    except NotRunningError as error:
        sys.stderr.write(f"gpu-share plugin status: {error}\n")
        return _NO_PLUGIN
    # Those of a plugin that waits are from before: nobody has looked at them since.
    occupancy = read_occupancy(state_dir, boot_id=node.boot_id)
    gpus = (
        []
        if node.waiting
        else _known(node, mps.read_state(state_dir), occupancy, read_use(state_dir, boot_id=node.boot_id))
    )
    unknown = "" if node.waiting else _unknown(occupancy)
    if output == "json":
        sys.stdout.write(
            msgspec.json.format(msgspec.json.encode(_data(node, gpus, age_seconds, unknown))).decode() + "\n"
        )
    else:
        sys.stdout.writelines(f"{line}\n" for line in _lines(node, gpus, age_seconds, unknown))
    sys.stdout.flush()
    is_unseen = node.waiting or node.not_registered or _slices_missing(node)
    return _SOME_UNHEALTHY if is_unseen or not all(gpu.health.healthy for gpu in gpus) else _ALL_HEALTHY


def _slices_missing(node: NodeHealth) -> str:
    """Say why the scheduler does not see the GPUs of DRA as they are; empty if it does, or there are none."""
    return node.slices_not_published if any(not gpu.resource for gpu in node.gpus) else ""


def _known(
    node: NodeHealth, state: mps.MpsState | None, occupancy: NodeOccupancy | None, use: NodeUse | None
) -> list[_Gpu]:
    now_seconds = boot_seconds()  # once the files are read: what they say must not seem to be of the future
    used, known = fresh(use, now_seconds=now_seconds), holders(occupancy, now_seconds=now_seconds)
    daemons = state.gpus if state else {}
    return [
        _Gpu(
            health=gpu,
            daemon=_Daemon(
                state=daemons[gpu.uuid].state,
                since=daemons[gpu.uuid].since,
                fault=mps.fault(state, gpu.uuid, now_seconds=now_seconds, boot_id=node.boot_id),
            )
            if gpu.uuid in daemons
            else None,
            occupancy=occupancy.gpus.get(gpu.uuid) if occupancy else None,
            outsiders=outsiders_of(gpu.uuid, used.get(gpu.uuid), known),
            of_node=of_node(used.get(gpu.uuid)),
        )
        for gpu in node.gpus
    ]


def _unknown(occupancy: NodeOccupancy | None) -> str:
    """Say why it is not known any more who has which share; empty if it is, or if the plugin has just started."""
    if occupancy is None:
        return ""
    if occupancy.unknown or occupancy.looked_seconds is None:
        return occupancy.unknown or "the kubelet has not said yet"
    age_seconds = boot_seconds() - occupancy.looked_seconds
    return f"last known {duration(age_seconds)} ago" if age_seconds > FRESH_SECONDS else ""


def _data(node: NodeHealth, gpus: Sequence[_Gpu], age_seconds: float, unknown: str) -> dict[str, Any]:
    return {
        "driver": node.driver,
        "waiting": node.waiting,
        "pid": node.pid,
        "age_seconds": round(age_seconds, 1),
        "gpus": [
            {
                "healthy": gpu.health.healthy,
                **msgspec.structs.asdict(gpu.health),
                "mps_daemon": gpu.daemon,
                "occupancy": gpu.occupancy,
                "outsiders": gpu.outsiders,
                "of_node": gpu.of_node,
            }
            for gpu in gpus
        ],
        "skipped": node.skipped,
        "tenants_unknown": unknown,
        "handover": node.handover,
        "slices_not_published": node.slices_not_published,
        "not_registered": node.not_registered,
        "restart_needed": node.restart_needed,
        "not_taken": node.not_taken,
        "fit_guard": node.fit_guard,
    }


def _lines(node: NodeHealth, gpus: Sequence[_Gpu], age_seconds: float, unknown: str) -> Iterator[str]:
    now = datetime.now(UTC)
    if node.waiting:
        yield (
            f"no GPU is shared yet: {safe(node.waiting.why)} ({since(node.waiting.since, now)}); "
            f"last updated {duration(age_seconds)} ago"
        )
        if node.slices_not_published:
            yield f"slices not published: {safe(node.slices_not_published)}"
        return
    unhealthy = sum(not gpu.health.healthy for gpu in gpus)
    driver = safe(node.driver) or "unknown"
    yield (
        f"GPUs: {len(gpus)}, {unhealthy or 'none'} of them unhealthy; driver: {driver}; "
        f"last updated {duration(age_seconds)} ago"
    )
    rows = [_row(gpu.health, now) for gpu in gpus]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for gpu, row in zip(gpus, rows, strict=True):
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        yield from (f"  {line}" for line in _more(gpu, now))
    yield from _unseen(node)
    yield from _fit_guard(node.fit_guard)
    if unknown:
        yield f"tenants unknown: {safe(unknown)}"
    for sentence in node.skipped:
        yield f"not shared: {safe(sentence)}"
    if node.handover:
        yield f"hand-over: {safe(node.handover)}"
    if node.restart_needed:
        yield f"restart needed: _cluster.yaml changed: {', '.join(map(safe, node.restart_needed))}"
    if node.not_taken:
        yield f"not taken from _cluster.yaml: {safe(node.not_taken)}"


def _unseen(node: NodeHealth) -> Iterator[str]:
    for one in node.not_registered:
        yield f"not registered: no pod gets any {safe(one.resource)}: {safe(one.why)}"
    if missing := _slices_missing(node):
        yield f"slices not published: {safe(missing)}"


def _fit_guard(guard: FitGuardState | None) -> Iterator[str]:
    if guard is None or not (guard.gpus or guard.unknown):
        return
    if guard.unknown:
        yield f"fit guard: no vGPU is hidden: {safe(guard.unknown)}"
    for resource in dict.fromkeys(one.resource for one in guard.gpus):
        gpus = [one for one in guard.gpus if one.resource == resource]
        hidden, free = sum(one.hidden for one in gpus), sum(one.free for one in gpus)
        why = f": with them the scheduler could send what fits on no GPU; {_most_free(gpus)}" if hidden else ""
        yield f"fit guard: {hidden or 'none'} of {free} free {safe(resource)} hidden{why}"


def _most_free(gpus: Sequence[GpuRoom]) -> str:
    most = max(gpus, key=lambda one: one.free)
    return f"the most that is free on one is {most.free}, on {safe(most.uuid)}"


def _row(gpu: GpuHealth, now: datetime) -> tuple[str, ...]:
    state = "healthy" if gpu.healthy else "UNHEALTHY"
    named = (f"GPU {gpu.index}", *map(safe, (gpu.uuid, gpu.model, gpu.resource or "by DRA")))
    return (*named, state, since(gpu.since, now))


def _more(gpu: _Gpu, now: datetime) -> Iterator[str]:
    for fault in gpu.health.faults:
        yield f"cause: {safe(fault.why)} ({since(fault.since, now)})"
        yield f"       recovers {safe(fault.comes_back)}"
    if gpu.health.memory_mib and gpu.health.reserved_mib is None:
        yield f"memory: the driver does not say what it reserves, so shares are of all {gpu.health.memory_mib} MiB"
    if gpu.daemon and all(fault.source != "mps" for fault in gpu.health.faults):
        ready = "ready" if gpu.daemon.fault is None else f"not ready, {safe(gpu.daemon.fault)}"
        yield f"MPS daemon: {ready} ({since(gpu.daemon.since, now)})"
    if gpu.occupancy and gpu.occupancy.granted is not None:
        yield from of_tenants(gpu.occupancy, now, healthy=gpu.health.healthy)
    for sentence in told(gpu.outsiders or (), gpu.of_node):
        yield f"without a share: {safe(sentence)}"
    if gpu.health.recovery:
        yield _recovery(gpu.health.recovery, now)
    if last := gpu.health.application_fault:
        tenants = ", ".join(map(safe, last.tenants)) or "no known tenant"
        at = moment_text(last.at, now, "{} ago")
        yield f"last application fault: XID {last.xid} at {at}; on the GPU then: {tenants}"


def _recovery(last: Recovery, now: datetime) -> str:
    what = f"refused: {safe(last.refused)}" if last.refused else f"cleared: {'; '.join(map(safe, last.cleared))}"
    return f"last recovery: {what}; at {moment_text(last.at, now, '{} ago')} by {safe(last.by)}: {safe(last.reason)}"
