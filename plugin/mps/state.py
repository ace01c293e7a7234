"""
What `gpu-share mps` tells the plugin: how the MPS daemon of each GPU is, in one small file with a heartbeat.

Times are those of `boot_clock`; the ISO texts are for people.
"""

from pathlib import Path
from typing import Literal

import msgspec

from plugin.state_files import read_json, write_atomically

StateName = Literal["starting", "ready", "fault", "failed", "stopped"]

STATE_FILE = "mps.json"
FRESH_SECONDS = 20.0  # a daemon that nobody has looked at for longer may be anything


class MpsGpu(msgspec.Struct, frozen=True, kw_only=True):
    """How the daemon of one GPU is."""

    state: StateName
    since: str  # ISO, UTC
    why: str = ""  # one sentence; empty when ready
    checked_seconds: float  # when a look at the daemon was last completed


class MpsState(msgspec.Struct, frozen=True, kw_only=True):
    """How all daemons of this node are."""

    boot_id: str
    gpus: dict[str, MpsGpu]  # by UUID


def write_state(state_dir: Path, state: MpsState) -> None:
    """
    Publish *state*.

    Raises:
        OSError: If the folder is not there or cannot be written to; what was published before stays.
    """
    write_atomically(state_dir / STATE_FILE, msgspec.json.encode(state))


def read_state(state_dir: Path) -> MpsState | None:
    """Read what was published last; None if that is nothing, or nothing that this version can read."""
    return read_json(state_dir / STATE_FILE, MpsState)


def fault(state: MpsState | None, gpu_uuid: str, *, now_seconds: float, boot_id: str) -> str | None:
    """Say why no container may start on a GPU that is shared by MPS; None if its daemon was good a moment ago."""
    if state is None or state.boot_id != boot_id:
        return "no MPS daemon is looked after on this node: is gpu-share mps running?"
    gpu = state.gpus.get(gpu_uuid)
    if gpu is None:
        return "gpu-share mps runs no daemon for this GPU: has it the same policies and --strategy as the plugin?"
    if gpu.state == "stopped":
        return "gpu-share mps has ended, and the MPS daemon with it"
    if not 0 <= now_seconds - gpu.checked_seconds <= FRESH_SECONDS:
        return f"gpu-share mps has not looked at the MPS daemon for more than {FRESH_SECONDS:.0f} s: see its log"
    if gpu.state != "ready":
        return f"MPS daemon {gpu.state}: {gpu.why}"
    return None
