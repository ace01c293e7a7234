"""
Who has which share of each GPU, in a file: for `gpu-share plugin status`, for scrapers, and for the next plugin.

The next plugin may be another version. What is added here has a default, and unknown fields are ignored. All that is
read is within the bounds of what a node publishes of itself (`policies/node_state.py`), so nobody fails by it.
"""

import logging
from datetime import datetime
from pathlib import Path
from typing import Annotated

import msgspec

from plugin.state_files import read_small_file, write_reserved
from policies.node_state import MOST_TENANTS
from policies.node_values import Count, Moment, Name, Part, Resource, Seconds, Word
from program.log import WarnOnce
from program.structs import decoder

_log = logging.getLogger(__name__)
_warn = WarnOnce(_log)

FILE = "occupancy.json"
LOOK_SECONDS = 5.0  # between two looks
FRESH_SECONDS = 30.0  # after the last look: nobody looks any more, or the kubelet does not answer

_Mib = Annotated[int, msgspec.Meta(ge=0, le=2**33 - 1)]  # in bytes it is a `Count` too
_Percentage = Annotated[int, msgspec.Meta(ge=0, le=100)]
_Whole = Annotated[int, msgspec.Meta(ge=1, le=1000)]  # in parts


class Occupant(msgspec.Struct, frozen=True, kw_only=True):
    """A container with a share of a GPU."""

    namespace: Name
    pod: Name
    container: Name
    parts: Part
    memory_limit_mib: _Mib | None = None
    thread_percentage: _Percentage | None = None  # None where nothing limits threads
    since: Moment | None = None  # None if it was there before anyone looked

    def __post_init__(self) -> None:
        """Check what the types cannot say."""
        if self.since is not None and datetime.fromisoformat(self.since).tzinfo is None:
            raise ValueError("expected a time with its zone")


class GpuOccupancy(msgspec.Struct, frozen=True, kw_only=True):
    """One GPU, in parts: vGPUs, or thousandths by DRA and while vGPUs of several numbers are held."""

    strategy: Word
    allocation: Word
    resource: Resource = ""
    device: Word = ""  # that shares of it are of, as policies name it
    vgpus_per_gpu: _Whole | None = None  # that it is divided into now; None by DRA
    parts: _Whole
    advertised: Count | None = None  # vGPUs, whatever their number, that the kubelet is told are healthy; None by DRA
    granted: Part | None = None  # None if the kubelet has never said who holds what
    hidden: Part | None = None
    outlived: Part = 0  # of what is granted, that processes use which outlive their pods
    free: Part | None = None  # that would be allocated if the GPU is healthy
    largest_free: Part | None = None
    all_named: bool = False  # whatever is held of it, one of the occupants holds
    occupants: Annotated[tuple[Occupant, ...], msgspec.Meta(max_length=MOST_TENANTS)] = ()


class NodeOccupancy(msgspec.Struct, frozen=True, kw_only=True):
    """All GPUs of a node, and when the kubelet said it."""

    boot_id: str
    asked_seconds: Seconds | None = None  # `state_files.boot_seconds` of the question to which it answered last
    looked_seconds: Seconds | None = None  # of that answer
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
    path = state_dir / FILE
    try:
        content = read_small_file(path)
        read = decoder(NodeOccupancy).decode(content) if content is not None else None
    except OSError:  # it is not there
        return None
    except (ValueError, RecursionError) as error:  # ValueError: no JSON, no UTF-8, or not of that type
        _warn("who has which share cannot be read: the file counts as none", f"{path}: {error}")
        return None
    return read if read is not None and read.boot_id == boot_id else None
