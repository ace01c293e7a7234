"""Whether a plugin runs on this node and says how the GPUs are, for the commands that read what it has written."""

import os
import stat
from collections.abc import Sequence
from pathlib import Path

from plugin.health.state import FRESH_SECONDS, NODE_FILE, NodeHealth, read_node_health
from plugin.health.words import safe
from plugin.presence import PLUGIN, lives
from plugin.state_files import STATE_DIR, boot_id, boot_seconds
from program.duration import duration

_PROC = Path("/proc")
_SUBCOMMANDS = frozenset({"status", "recover"})
_OPTION, _VARIABLE = "--state-dir", "GPU_SHARE_STATE_DIR"


class NotRunningError(Exception):
    """No plugin says how the GPUs are; the message says how that is known, and what to do."""


def running(state_dir: Path, *, proc: Path = _PROC) -> tuple[NodeHealth, float]:
    """
    Read what a plugin that runs has written, and say how many seconds ago.

    Raises:
        NotRunningError: If there is none, or it has written nothing that still counts.
    """
    alive = lives(state_dir, PLUGIN)  # before the file is read: what was written last by one that has ended is no news
    path = state_dir / NODE_FILE
    node = read_node_health(state_dir)
    if alive is None and (node is None or _is_stale(node)):
        alive = is_among_processes(state_dir, proc) or None
    if node is None:
        raise NotRunningError(_why_unread(path, alive=alive))
    age_seconds = boot_seconds() - node.heartbeat_seconds
    if why := _why_not(node, safe(str(path)), age_seconds, alive=alive):
        raise NotRunningError(why)
    return node, age_seconds


def is_among_processes(state_dir: Path, proc: Path = _PROC) -> bool:
    """Whether a process that can be seen from here is a plugin of this directory: perhaps one that cannot write."""
    for entry in proc.glob("[0-9]*"):
        try:
            arguments, variables = (
                (entry / name).read_bytes().decode(errors="replace").split("\0") for name in ("cmdline", "environ")
            )
        except OSError:  # it has ended, or is another user's
            continue
        if is_plugin(arguments) and _state_dir_of(arguments, variables) == str(state_dir):
            return True
    return False


def is_plugin(arguments: Sequence[str]) -> bool:
    """Whether a process with these *arguments* is `gpu-share plugin`, and none of its commands."""
    for place, argument in enumerate(arguments[:-1]):
        named = Path(argument).name == "gpu-share" or argument == "gpu_share"
        if named and arguments[place + 1] == "plugin":
            return not _SUBCOMMANDS.intersection(arguments[place + 2 : place + 3])
    return False


def _state_dir_of(arguments: Sequence[str], variables: Sequence[str]) -> str:
    for place, argument in enumerate(arguments):
        name, is_joined, value = argument.partition("=")
        if name == _OPTION:
            return value if is_joined else next(iter(arguments[place + 1 :]), "")
    return next((one.partition("=")[2] for one in variables if one.startswith(f"{_VARIABLE}=")), str(STATE_DIR))


def _is_stale(node: NodeHealth) -> bool:
    return node.boot_id != boot_id() or node.ended or not 0 <= boot_seconds() - node.heartbeat_seconds <= FRESH_SECONDS


def _why_not(node: NodeHealth, path: str, age_seconds: float, *, alive: bool | None) -> str:
    when = f"{duration(age_seconds)} ago" if age_seconds > 0 else "at a time in the future"
    of_this_boot = node.boot_id == boot_id()
    if alive and (not of_this_boot or node.ended or not 0 <= age_seconds <= FRESH_SECONDS):
        last = f"was last updated {when}" if of_this_boot else "is from before this node started"
        return f"gpu-share plugin runs here, but hangs or cannot write its state: {path} {last}: see the plugin's log"
    if not of_this_boot:
        return f"no plugin runs here: {path} is from before this node started: start gpu-share plugin"
    if node.ended:
        return f"no plugin runs here: {path} says that process {node.pid} was stopped: start gpu-share plugin"
    if alive is False:
        shared = f", and no GPU was shared: {safe(node.waiting.why)}" if node.waiting else ""
        return (
            f"no plugin runs here: {path} was last updated {when}, its process {node.pid} is gone{shared}: "
            "see the log of its last run, and start it again"
        )
    if not 0 <= age_seconds <= FRESH_SECONDS:
        return (
            f"the plugin has ended or hangs: {path} was last updated {when} by process {node.pid}, expected every few "
            "seconds: see the plugin's log, and start it again"
        )
    return ""


def _why_unread(path: Path, *, alive: bool | None) -> str:
    shown = safe(str(path))
    try:
        forbidden = stat.S_ISREG(path.lstat().st_mode) and not os.access(path, os.R_OK, effective_ids=True)
    except FileNotFoundError:
        if alive:
            return (
                f"gpu-share plugin runs here, but has just started or cannot write its state: {shown} does not exist: "
                "see the plugin's log"
            )
        return f"no plugin runs here: {shown} does not exist: start gpu-share plugin, or give its --state-dir"
    except PermissionError:
        forbidden = True
    except (OSError, ValueError):
        forbidden = False
    if forbidden:
        return f"{shown} may not be read by this user: run this as root"
    return f"{shown} was not written by a plugin: remove it, and start gpu-share plugin again"
