"""
Who has which share of each GPU, in a file: for `gpu-share plugin status`, for scrapers, and for the next plugin.

The next plugin may be another version. What is added here has a default, and unknown fields are ignored.
"""

from pathlib import Path

import msgspec

from plugin.state_files import read_json, write_reserved

FILE = "occupancy.json"
LOOK_SECONDS = 5.0  # between two looks
FRESH_SECONDS = 30.0  # after the last look: nobody looks any more, or the kubelet does not answer


class Occupant(msgspec.Struct, frozen=True, kw_only=True):
    """A container with a share of a GPU."""

    namespace: str
    pod: str
    container: str
    parts: int
    memory_limit_mib: int | None = None
    thread_percentage: int | None = None  # None where nothing limits threads
    since: str | None = None  # ISO 8601, UTC; None if it was there before anyone looked


class GpuOccupancy(msgspec.Struct, frozen=True, kw_only=True):
    """One GPU, in parts: vGPUs, or thousandths by DRA and while vGPUs of several numbers are held."""

    strategy: str
    allocation: str
    resource: str = ""
    device: str = ""  # that shares of it are of, as policies name it
    vgpus_per_gpu: int | None = None  # that it is divided into now; None by DRA
    parts: int
    advertised: int | None = None  # vGPUs, whatever their number, that the kubelet is told are healthy; None by DRA
    granted: int | None = None  # None if the kubelet has never said who holds what
    hidden: int | None = None
    free: int | None = None  # that would be allocated if the GPU is healthy
    largest_free: int | None = None
    occupants: tuple[Occupant, ...] = ()


class NodeOccupancy(msgspec.Struct, frozen=True, kw_only=True):
    """All GPUs of a node, and when the kubelet said it."""

    boot_id: str
    looked_seconds: float | None = None  # `state_files.boot_seconds` of the kubelet's last answer
    unknown: str = ""  # why the kubelet has said nothing since
    gpus: dict[str, GpuOccupancy] = {}  # by UUID


def write_occupancy(state_dir: Path, occupancy: NodeOccupancy) -> None:
    """
    Replace the file in *state_dir*.

    Raises:
        OSError: If the directory is not there or cannot be written to; the old file stays.
    """
    write_reserved(state_dir / FILE, msgspec.json.encode(occupancy))


def read_occupancy(state_dir: Path, *, boot_id: str) -> NodeOccupancy | None:
    """Read the file in *state_dir*; None if there is none of this boot that a plugin can have written."""
    read = read_json(state_dir / FILE, NodeOccupancy)
    return read if read is not None and read.boot_id == boot_id else None
