"""What containers take of the GPUs, in a file: `gpu-share mps` measures it, since it sees all processes of the node."""

from pathlib import Path

import msgspec

from plugin.state_files import read_json, write_reserved

FILE = "use.json"
MEASURE_SECONDS = 10.0  # between two measurements
FRESH_SECONDS = 45.0  # after the last one: NVML hangs, or nobody measures any more


class ContainerUse(msgspec.Struct, frozen=True, kw_only=True):
    """What the processes of one container take of one GPU; None where NVML does not tell."""

    namespace: str
    pod: str
    container: str
    processes: int
    memory_bytes: int | None = None
    sm_ratio: float | None = None


class ProcessesUse(msgspec.Struct, frozen=True, kw_only=True):
    """What some processes take of one GPU."""

    processes: int
    memory_bytes: int | None = None


class GpuUse(msgspec.Struct, frozen=True, kw_only=True):
    """One GPU."""

    containers: tuple[ContainerUse, ...] = ()  # with a process on it
    complete: bool = False  # it is known of every process whose it is: all other containers take nothing
    outsiders: tuple[ContainerUse, ...] | None = None  # those without a share of it; None where that is not known
    of_node: ProcessesUse | None = None  # programs of the node itself; None if there are none


class NodeUse(msgspec.Struct, frozen=True, kw_only=True):
    """All GPUs of a node that answered, and when."""

    boot_id: str
    measured_seconds: float  # `state_files.boot_seconds`
    gpus: dict[str, GpuUse] = {}  # by UUID


def write_use(state_dir: Path, use: NodeUse) -> None:
    """
    Replace the file in *state_dir*.

    Raises:
        OSError: If the directory is not there or cannot be written to; the old file stays.
    """
    write_reserved(state_dir / FILE, msgspec.json.encode(use))


def read_use(state_dir: Path, *, boot_id: str) -> NodeUse | None:
    """Read the file in *state_dir*; None if there is none of this boot."""
    read = read_json(state_dir / FILE, NodeUse)
    return read if read is not None and read.boot_id == boot_id else None


def fresh(use: NodeUse | None, *, now_seconds: float) -> dict[str, GpuUse]:
    """Give what was measured on each GPU, unless that was too long ago."""
    return use.gpus if use is not None and now_seconds - use.measured_seconds <= FRESH_SECONDS else {}
