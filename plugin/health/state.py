"""
How the plugin sees this node's GPUs, in a file: for `gpu-share plugin status`, and for the next plugin.

The next plugin may be another version. What is added here has a default, and unknown fields are ignored.
"""

from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from plugin.gpus.gpu import Gpu
from plugin.state_files import read_json, write_reserved
from policies.node_state import Toolkit

NODE_FILE = "plugin.json"
HEARTBEAT_SECONDS = 5.0  # between two writes, when nothing changes
FRESH_SECONDS = 20.0  # without a write: the plugin is gone, or hangs

Source = Literal[
    "xid",
    "recovery",
    "lost",
    "gone",
    "mig",
    "nvml",
    "mps",
    "held",
    "handover",
    "claims",
    "division",
    "mode",
    "advertised",
]


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """One reason why a GPU is unhealthy; there can be several at once, one of each source."""

    source: Source
    why: str
    since: str  # ISO 8601, UTC
    comes_back: str  # recovery condition; completes "recovers ..."
    xid: int | None = None
    energy_mj: int | None = None  # the GPU's total energy when it failed: below that later, it was reset
    shows_reset: bool = False  # lost or reset since then: a driver that is loaded anew and finds it shows a reset


class FaultName(msgspec.Struct, frozen=True, kw_only=True):
    """Which fault is meant: another one of the same source has another XID or beginning."""

    source: Source
    since: str
    xid: int | None = None

    @classmethod
    def of(cls, fault: Fault) -> "FaultName":
        """Name a fault."""
        return cls(source=fault.source, since=fault.since, xid=fault.xid)


class Recovery(msgspec.Struct, frozen=True, kw_only=True):
    """What `gpu-share plugin recover` has come to."""

    id: str  # of the request
    at: str  # ISO 8601, UTC
    by: str
    reason: str
    cleared: tuple[str, ...] = ()  # why the GPU was unhealthy
    refused: str = ""  # why nothing was cleared; empty if something was


class ApplicationFault(msgspec.Struct, frozen=True, kw_only=True):
    """A program's fault, which leaves the GPU healthy and may have hit whoever else was on it."""

    xid: int
    at: str  # ISO 8601, UTC
    tenants: tuple[str, ...] = ()  # namespace/pod/container of all on the GPU then


class GpuHealth(msgspec.Struct, frozen=True, kw_only=True):
    """One GPU."""

    uuid: str
    index: int  # NVML's number
    model: str
    resource: str  # that its vGPUs are advertised as; empty where DRA allocates it
    since: str  # ISO 8601, UTC: when it became healthy or unhealthy
    memory_mib: int = 0  # that shares are of
    reserved_mib: int | None = None  # that the driver keeps for itself; None where it does not say
    faults: tuple[Fault, ...] = ()
    application_fault: ApplicationFault | None = None  # the last one
    recovery: Recovery | None = None  # the last one that was asked for
    compute_mode: str = ""  # as `policies.node_state` names it; empty where the driver does not say

    @property
    def healthy(self) -> bool:
        """Whether containers may start on it."""
        return not self.faults


class GpuRoom(msgspec.Struct, frozen=True, kw_only=True):
    """What is free of one healthy GPU."""

    uuid: str
    resource: str  # that its vGPUs are advertised as
    free: int  # vGPUs that nobody holds
    hidden: int  # of them, so that the scheduler does not allocate them in vain


class FitGuardState(msgspec.Struct, frozen=True, kw_only=True):
    """What the guard against fragmentation does."""

    gpus: tuple[GpuRoom, ...] = ()
    unknown: str = ""  # why nothing is hidden: the kubelet does not say who holds what


class Waiting(msgspec.Struct, frozen=True, kw_only=True):
    """No GPU is shared yet."""

    why: str
    since: str  # ISO 8601, UTC


class Pending(NamedTuple):
    """Changes of `_cluster.yaml` that have not been taken up."""

    needs_restart: tuple[str, ...] = ()  # what a start takes up, such as `nodes`
    not_taken: str = ""  # what this node cannot take up, and why: `vgpusPerGpu 10 -> 50: ...`, or a broken file


class NotRegistered(msgspec.Struct, frozen=True, kw_only=True):
    """An extended resource that the kubelet has not known for a while: no pod gets any of it."""

    resource: str
    why: str  # with what to do


class NodeHealth(msgspec.Struct, frozen=True, kw_only=True):
    """All GPUs of a node, and when and by whom this was written."""

    boot_id: str
    heartbeat_seconds: float  # `state_files.boot_seconds` of the last write
    pid: int
    driver: str  # version; empty if unknown
    gpus: tuple[GpuHealth, ...] = ()
    absent: tuple[GpuHealth, ...] = ()  # unhealthy when last shared; not found since, in MIG mode, or left to others
    reached: dict[str, Gpu] = {}  # by UUID, both of these: what it was when it was last reached; its links are left out
    skipped: tuple[str, ...] = ()  # one sentence for each GPU that cannot be shared
    left_to_others: int | None = None  # GPUs that are not in MIG mode; None before one was looked at
    handover: str = ""  # how containers get their GPU, in words
    slices_not_published: str = ""  # why DRA does not see the GPUs as they are; empty if it does, or is not used
    not_registered: tuple[NotRegistered, ...] = ()
    toolkit: Toolkit | None = None
    restart_needed: tuple[str, ...] = ()  # changes of _cluster.yaml since it was read: `nodes`
    not_taken: str = ""  # a change of it that this node cannot take up, and why: `vgpusPerGpu 10 -> 50: ...`
    waiting: Waiting | None = None  # `gpus` are those that an earlier plugin knew then
    fit_guard: FitGuardState | None = None  # None: there is none
    ended: bool = False  # by a signal: nobody looks at the GPUs any more

    @property
    def known(self) -> dict[str, GpuHealth]:
        """All GPUs of which something is known, by UUID."""
        return {gpu.uuid: gpu for gpu in (*self.absent, *self.gpus)}


def write_node_health(state_dir: Path, health: NodeHealth) -> None:
    """
    Replace the file in *state_dir*.

    Raises:
        OSError: If the directory is not there or cannot be written to; the old file stays.
    """
    write_reserved(state_dir / NODE_FILE, msgspec.json.encode(health))


def read_node_health(state_dir: Path) -> NodeHealth | None:
    """Read the file in *state_dir*; None if there is none, it is too large, or no plugin can have written it."""
    return read_json(state_dir / NODE_FILE, NodeHealth)
