"""What `gpu-share plugin status` says on a node, read from the files of the plugin and of the MPS daemons."""

import os
import stat
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import msgspec

from plugin.health.state import FRESH_SECONDS, NODE_FILE, GpuHealth, NodeHealth, read_node_health
from plugin.mps import state as mps
from plugin.state_files import boot_id, boot_seconds

_ALL_HEALTHY = 0
_SOME_UNHEALTHY = 1
_NO_PLUGIN = 2

_LONGEST_TEXT = 500
_UNITS = (("d", 86400), ("h", 3600), ("min", 60), ("s", 1))


class _NoPluginError(Exception):
    """No plugin runs here; the message says how that is known, and what to do."""


class _Daemon(msgspec.Struct, frozen=True, kw_only=True):
    """A GPU's MPS daemon."""

    state: str
    since: str
    fault: str | None  # why no container may start with it; None if it is ready


class _Gpu(msgspec.Struct, frozen=True, kw_only=True):
    """What is said of a GPU."""

    health: GpuHealth
    daemon: _Daemon | None  # None if nobody has told of one


def show(state_dir: Path, *, output: Literal["text", "json"]) -> int:
    """
    Print how each GPU is, as text or JSON.

    Returns:
        0 if all are healthy, 1 if some are not, 2 if no plugin runs here, which standard error then says in one line.
    """
    try:
        node, age_seconds = _running(state_dir)
    except _NoPluginError as error:
        sys.stderr.write(f"gpu-share plugin status: {error}\n")
        return _NO_PLUGIN
    gpus = _with_daemons(node, mps.read_state(state_dir))
    if output == "json":
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(_data(node, gpus, age_seconds))).decode() + "\n")
    else:
        sys.stdout.writelines(f"{line}\n" for line in _lines(node, gpus, age_seconds, now=datetime.now(UTC)))
    sys.stdout.flush()
    return _ALL_HEALTHY if all(gpu.health.healthy for gpu in gpus) else _SOME_UNHEALTHY


def _running(state_dir: Path) -> tuple[NodeHealth, float]:
    """Read what a plugin that runs has written, and say how many seconds ago."""
    path = _safe(str(state_dir / NODE_FILE))
    node = read_node_health(state_dir)
    if node is None:
        raise _NoPluginError(_why_unread(state_dir / NODE_FILE, path))
    if node.boot_id != boot_id():
        raise _NoPluginError(f"no plugin runs here: {path} is from before this node started: start gpu-share plugin")
    if node.ended:
        raise _NoPluginError(
            f"no plugin runs here: {path} says that process {node.pid} was stopped: start gpu-share plugin"
        )
    age_seconds = boot_seconds() - node.heartbeat_seconds
    if not 0 <= age_seconds <= FRESH_SECONDS:
        when = f"{_duration(age_seconds)} ago" if age_seconds > 0 else "at a time in the future"
        raise _NoPluginError(
            f"the plugin has ended or hangs: {path} was last updated {when} by process {node.pid}, expected every few "
            "seconds: see the plugin's log, and start it again"
        )
    return node, age_seconds


def _why_unread(path: Path, shown: str) -> str:
    try:
        forbidden = stat.S_ISREG(path.lstat().st_mode) and not os.access(path, os.R_OK, effective_ids=True)
    except FileNotFoundError:
        return f"no plugin runs here: {shown} does not exist: start gpu-share plugin, or give its --state-dir"
    except PermissionError:
        forbidden = True
    except (OSError, ValueError):
        forbidden = False
    if forbidden:
        return f"{shown} may not be read by this user: run this as root"
    return f"{shown} was not written by a plugin: remove it, and start gpu-share plugin again"


def _with_daemons(node: NodeHealth, state: mps.MpsState | None) -> list[_Gpu]:
    now_seconds = boot_seconds()  # once the file is read: what it says must not seem to be of the future
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
        )
        for gpu in node.gpus
    ]


def _data(node: NodeHealth, gpus: Sequence[_Gpu], age_seconds: float) -> dict[str, Any]:
    return {
        "driver": node.driver,
        "pid": node.pid,
        "age_seconds": round(age_seconds, 1),
        "gpus": [
            {"healthy": gpu.health.healthy, **msgspec.structs.asdict(gpu.health), "mps_daemon": gpu.daemon}
            for gpu in gpus
        ],
        "skipped": node.skipped,
        "restart_needed": node.restart_needed,
    }


def _lines(node: NodeHealth, gpus: Sequence[_Gpu], age_seconds: float, *, now: datetime) -> Iterator[str]:
    unhealthy = sum(not gpu.health.healthy for gpu in gpus)
    driver = _safe(node.driver) or "unknown"
    yield (
        f"GPUs: {len(gpus)}, {unhealthy or 'none'} of them unhealthy; driver: {driver}; "
        f"last updated {_duration(age_seconds)} ago"
    )
    rows = [_row(gpu.health, now) for gpu in gpus]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for gpu, row in zip(gpus, rows, strict=True):
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        yield from (f"  {line}" for line in _more(gpu, now))
    for sentence in node.skipped:
        yield f"not shared: {_safe(sentence)}"
    if node.restart_needed:
        yield f"restart needed: _cluster.yaml changed: {', '.join(map(_safe, node.restart_needed))}"


def _row(gpu: GpuHealth, now: datetime) -> tuple[str, ...]:
    state = "healthy" if gpu.healthy else "UNHEALTHY"
    named = (f"GPU {gpu.index}", *map(_safe, (gpu.uuid, gpu.model, gpu.resource)))
    return (*named, state, _since(gpu.since, now))


def _more(gpu: _Gpu, now: datetime) -> Iterator[str]:
    for fault in gpu.health.faults:
        yield f"cause: {_safe(fault.why)} ({_since(fault.since, now)})"
        yield f"       recovers {_safe(fault.comes_back)}"
    if gpu.daemon and all(fault.source != "mps" for fault in gpu.health.faults):
        ready = "ready" if gpu.daemon.fault is None else f"not ready, {_safe(gpu.daemon.fault)}"
        yield f"MPS daemon: {ready} ({_since(gpu.daemon.since, now)})"
    if last := gpu.health.application_fault:
        tenants = ", ".join(map(_safe, last.tenants)) or "no known tenant"
        at = _moment(last.at, now, "{} ago")
        yield f"last application fault: XID {last.xid} at {at}; on the GPU then: {tenants}"


def _since(text: str, now: datetime) -> str:
    return f"since {_moment(text, now, 'for {}')}"


def _moment(text: str, now: datetime, passed: str) -> str:
    """Show a time of the files, and in *passed* how long ago that is."""
    try:
        moment = datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError):
        return _safe(text) or "an unknown time"
    shown = f"{moment:%Y-%m-%d %H:%M:%S} UTC"
    seconds = (now - moment).total_seconds()
    if seconds < 0:  # somebody has set the clock back
        return shown
    return f"{shown}, {passed.format(_duration(seconds))}"


def _duration(seconds: float) -> str:
    name, length = next(((name, length) for name, length in _UNITS if seconds >= length), _UNITS[-1])
    return f"{int(seconds // length)} {name}"


def _safe(text: str) -> str:
    """Keep what a file holds from writing on the terminal."""
    shown = text if text.isascii() and text.isprintable() else ascii(text)[1:-1]
    return shown if len(shown) <= _LONGEST_TEXT else f"{shown[:_LONGEST_TEXT]}..."
